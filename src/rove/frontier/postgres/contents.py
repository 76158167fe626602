"""Texts that are stored once, on PostgreSQL: where each lies, for all pages that have it, on whatever machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rove.frontier.contract import MovedContent
from rove.frontier.postgres.database import Database, Session
from rove.frontier.postgres.steps import columns_of
from rove.frontier.rows import content_record, contents_by_hash, moved_values, place_key
from rove.model.ledger import Content, Location
from rove.model.visits import VisitResult


class PostgresContents:
    """The part of the frontier that knows which texts are stored."""

    _database: Database
    _machine: int

    async def known_contents(self, hashes: Iterable[int]) -> dict[int, Content]:
        rows = await fetch_contents(self._database, hashes)
        return {row[0]: content_record(row) for row in rows}

    async def _keep_contents(self, session: Session, visits: Iterable[VisitResult]) -> None:
        """Note where visits have stored texts. Within the transaction that settles them."""
        rows = contents_by_hash(visits)
        if not rows:
            return
        hashes, checked, domains, numbers, files, offsets, lengths = columns_of(rows, 7)
        await session.fetch(
            "insert_contents",
            hashes=hashes,
            checked=checked,
            domains=domains,
            visits=numbers,
            files=files,
            offsets=offsets,
            lengths=lengths,
            machine=self._machine,
        )


async def fetch_contents(database: Database, hashes: Iterable[int]) -> list[Any]:
    """The rows of those of the texts that are stored; the machine of each is the last column."""
    wanted = list(hashes)
    if not wanted:
        return []
    return await database.run(
        "look for texts", lambda session: session.fetch("known_contents", hashes=wanted)
    )


async def place_contents(database: Database, machine: int, moved: Sequence[MovedContent]) -> None:
    """Note where texts of a machine are now."""
    columns = columns_of([moved_values(text) for text in moved], 8)
    hashes, files, offsets, domains, visits, new_files, new_offsets, new_lengths = columns
    await database.run(
        "place texts again",
        lambda session: session.fetch(
            "place_contents",
            hashes=hashes,
            files=files,
            offsets=offsets,
            domains=domains,
            visits=visits,
            new_files=new_files,
            new_offsets=new_offsets,
            new_lengths=new_lengths,
            machine=machine,
        ),
    )


async def forget_contents(
    database: Database, machine: int, places: Sequence[tuple[int, Location]]
) -> None:
    """Let nobody refer any more to these texts of a machine."""
    hashes, files, offsets = columns_of([place_key(*place) for place in places], 3)
    await database.run(
        "forget texts",
        lambda session: session.fetch(
            "forget_contents", hashes=hashes, files=files, offsets=offsets, machine=machine
        ),
    )
