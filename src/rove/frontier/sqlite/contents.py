"""The locations of texts that are stored once for all pages that have them, on the embedded frontier."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rove.frontier.contract import MovedContent
from rove.frontier.rows.contents import content_record, location_key, relocation_row
from rove.frontier.sqlite.database import SqliteDatabase
from rove.model.ledger import Content, Location


async def read_contents(database: SqliteDatabase, hashes: Iterable[int]) -> dict[int, Content]:
    """Return the locations of those texts that are stored."""
    wanted = list(hashes)
    if not wanted:
        return {}
    rows = await database.run(lambda: database.batch("known_contents", wanted))
    return {row[0]: content_record(row) for row in rows}


async def relocate_contents(database: SqliteDatabase, moved: Sequence[MovedContent]) -> None:
    """Save the new locations of texts."""
    rows = [relocation_row(text) for text in moved]
    await database.write(lambda: database.batch("relocate_contents", rows))


async def forget_contents(database: SqliteDatabase, texts: Sequence[tuple[int, Location]]) -> None:
    """Delete the records of texts."""
    rows = [location_key(*text) for text in texts]
    await database.write(lambda: database.batch("forget_contents", rows))
