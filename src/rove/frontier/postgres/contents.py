"""The locations of texts that are stored once for all pages that have them, on any node, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rove.frontier.contract import MovedContent
from rove.frontier.postgres.arrays import columns_of
from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.session import Session
from rove.frontier.rows.contents import content_rows, location_key, relocation_row
from rove.model.ledger import Location
from rove.model.visits import VisitResult


async def fetch_contents(database: PostgresDatabase, hashes: Iterable[int]) -> list[Any]:
    """Return the rows of those texts that are stored; the last column is the node of each."""
    wanted = list(hashes)
    return await database.fetch("known_contents", hashes=wanted) if wanted else []


async def insert_contents(session: Session, visits: Iterable[VisitResult], machine: int) -> None:
    """Save where visits stored texts, inside the transaction that settles them."""
    rows = content_rows(visits)
    if not rows:
        return
    hashes, sha1_64, domains, numbers, files, offsets, lengths = columns_of(rows, 7)
    await session.fetch(
        "insert_contents",
        hashes=hashes,
        sha1_64=sha1_64,
        domains=domains,
        visits=numbers,
        files=files,
        offsets=offsets,
        lengths=lengths,
        machine=machine,
    )


async def relocate_contents(database: PostgresDatabase, machine: int, moved: Sequence[MovedContent]) -> None:
    """Save the new locations of texts of a node."""
    columns = columns_of([relocation_row(text) for text in moved], 8)
    hashes, files, offsets, domains, visits, new_files, new_offsets, new_lengths = columns
    await database.fetch(
        "relocate_contents",
        hashes=hashes,
        files=files,
        offsets=offsets,
        domains=domains,
        visits=visits,
        new_files=new_files,
        new_offsets=new_offsets,
        new_lengths=new_lengths,
        machine=machine,
    )


async def forget_contents(database: PostgresDatabase, machine: int, texts: Sequence[tuple[int, Location]]) -> None:
    """Delete the records of texts of a node."""
    hashes, files, offsets = columns_of([location_key(*text) for text in texts], 3)
    await database.fetch("forget_contents", hashes=hashes, files=files, offsets=offsets, machine=machine)
