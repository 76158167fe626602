"""Where shared texts are stored, on any node (PostgreSQL)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.session import Session
from rove.frontier.rows.contents import content_rows
from rove.model.visits import VisitResult


async def fetch_contents(database: PostgresDatabase, hashes: Iterable[int]) -> list[Any]:
    """Return the rows of those texts that are stored; the last column is the node of each."""
    wanted = list(hashes)
    return await database.fetch("known_contents", hashes=wanted) if wanted else []


async def insert_contents(session: Session, visits: Iterable[VisitResult], machine: int) -> None:
    """Save where visits stored texts, inside the transaction that settles them."""
    columns = ("hashes", "sha1_64", "domains", "visits", "files", "offsets", "lengths")
    await session.batch("insert_contents", columns, content_rows(visits), machine=machine)
