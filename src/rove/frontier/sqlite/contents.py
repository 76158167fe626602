"""Texts that are stored once, on the embedded frontier: where each lies, for all pages that have it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rove.frontier.contract import MovedContent
from rove.frontier.rows import content_record, contents_by_hash, moved_values, place_key
from rove.frontier.sqlite.database import Database
from rove.model.ledger import Content, Location
from rove.model.visits import VisitResult


class SqliteContents:
    """The part of the frontier that knows which texts are stored."""

    _database: Database

    async def known_contents(self, hashes: Iterable[int]) -> dict[int, Content]:
        return await read_contents(self._database, hashes)

    def _keep_contents(self, visits: Iterable[VisitResult]) -> None:
        """Note where visits have stored texts. Within the transaction that settles them."""
        self._database.insert("insert_contents", contents_by_hash(visits))


async def read_contents(database: Database, hashes: Iterable[int]) -> dict[int, Content]:
    """Those of the texts that are stored."""
    wanted = list(hashes)
    if not wanted:
        return {}
    rows = await database.run(lambda: database.batch("known_contents", wanted))
    return {row[0]: content_record(row) for row in rows}


async def place_contents(database: Database, moved: Sequence[MovedContent]) -> None:
    """Note where texts are now."""

    def work() -> None:
        with database.transaction():
            database.batch("place_contents", [moved_values(text) for text in moved])

    await database.run(work)


async def forget_contents(database: Database, places: Sequence[tuple[int, Location]]) -> None:
    """Let nobody refer to these texts any more."""

    def work() -> None:
        with database.transaction():
            database.batch("forget_contents", [place_key(*place) for place in places])

    await database.run(work)
