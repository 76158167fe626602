"""The locations of texts that are stored once for all pages that have them, on the embedded frontier."""

from __future__ import annotations

from collections.abc import Iterable

from rove.frontier.rows.contents import content_record
from rove.frontier.sqlite.database import SqliteDatabase
from rove.model.ledger import Content


async def read_contents(database: SqliteDatabase, hashes: Iterable[int]) -> dict[int, Content]:
    """Return the locations of those texts that are stored."""
    wanted = list(hashes)
    if not wanted:
        return {}
    rows = await database.run(lambda: database.batch("known_contents", wanted))
    return {row[0]: content_record(row) for row in rows}
