"""A crawl in one SQLite file of its data directory."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rove.frontier.contract import MovedContent, Policy
from rove.frontier.rows import place_values
from rove.frontier.sqlite.catalog import SqliteCatalog
from rove.frontier.sqlite.contents import forget_contents, place_contents
from rove.frontier.sqlite.database import Database, holds_schema
from rove.frontier.sqlite.frontier import SqliteFrontier
from rove.frontier.sqlite.reader import SqliteReader
from rove.model.ledger import Location, RequestRow


class SqliteBackend:
    """The embedded default."""

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        on_news: Callable[[str], None] | None = None,
    ) -> None:
        """`on_news` is told when a file of an older version is brought up to date, which may take a while."""
        self._path = path
        self.place = str(path.parent)
        self._database = Database(path, read_only=read_only)
        if on_news is not None:
            self._database.on_news = on_news
        self.catalog = SqliteCatalog(self._database)
        self.reader = SqliteReader(self._database)

    async def exists(self) -> bool:
        return await self._database.run(lambda: holds_schema(self._path))

    async def open(self, *, create: bool = False) -> None:
        await self._database.open(create=create)

    async def begin_run(self) -> int:
        def work() -> int:
            now = self._database.clock()
            with self._database.transaction():
                rows = self._database.execute("begin_run", now=now(), wall=time.time())
            return int(rows[0][0])

        return await self._database.run(work)

    async def begin(self, policy: Policy, run: int | None) -> SqliteFrontier:
        frontier = SqliteFrontier(self._database, policy)
        await frontier.begin(run)
        return frontier

    async def place_again(self, rows: Sequence[RequestRow]) -> None:
        def work() -> None:
            with self._database.transaction():
                self._database.batch("place_again", [place_values(row) for row in rows])

        await self._database.run(work)

    async def place_contents(self, moved: Sequence[MovedContent]) -> None:
        await place_contents(self._database, moved)

    async def forget_contents(self, places: Sequence[tuple[int, Location]]) -> None:
        await forget_contents(self._database, places)

    async def close(self) -> None:
        await self._database.close()
