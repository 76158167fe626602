"""A crawl in one SQLite file of its data directory."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rove.frontier.era_file import EraFile
from rove.frontier.eras import older_text
from rove.frontier.reader import CrawlReader
from rove.frontier.records import MovedContent, Policy
from rove.frontier.rows.contents import location_key, relocation_row
from rove.frontier.rows.requests import location_values
from rove.frontier.sqlite.catalog import SqliteCatalog
from rove.frontier.sqlite.database import SqliteDatabase
from rove.frontier.sqlite.eras import begin_era_if_older
from rove.frontier.sqlite.frontier import SqliteFrontier
from rove.frontier.sqlite.reader import SqliteTables
from rove.model.ledger import Location, RequestRow
from rove.model.skipped import SkippedLink

log = logging.getLogger(__name__)


class SqliteBackend:
    """The embedded frontier, which is the default."""

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        in_use: Callable[[], bool] = lambda: True,
        on_news: Callable[[str], None] | None = None,
        era_file: EraFile | None = None,
    ) -> None:
        """`in_use` and `on_news` are as for SqliteDatabase. `era_file` tells an older copy of the file."""
        self._era_file = era_file or EraFile()
        self._on_news = on_news or log.warning
        self.location = str(path.parent)
        self._database = SqliteDatabase(path, read_only=read_only, in_use=in_use, on_news=on_news)
        self.catalog = SqliteCatalog(self._database)
        self.reader = CrawlReader(SqliteTables(self._database))

    async def exists(self) -> bool:
        return await self._database.holds_schema()

    async def open(self, *, create: bool = False) -> None:
        await self._database.open(create=create)

    async def begin_run(self) -> int:
        if await self._database.fetch("ended_uncleanly"):
            await self._database.check()

        def work() -> int:
            now = self._database.clock()
            with self._database.transaction():
                is_older = begin_era_if_older(self._database, self._era_file, now())
                rows = self._database.execute("begin_run", now=now(), wall=time.time())
            if is_older:
                self._on_news(older_text(self.location))
            return int(rows[0][0])

        return await self._database.run(work)

    async def begin(self, policy: Policy, run: int | None) -> SqliteFrontier:
        frontier = SqliteFrontier(self._database, policy, era_file=self._era_file)
        await frontier.begin(run)
        return frontier

    async def relocate_pages(self, rows: Sequence[RequestRow]) -> None:
        values = [location_values(row) for row in rows]
        await self._database.write(lambda: self._database.batch("relocate_pages", values))

    async def forget_titles(self, pages: Sequence[tuple[int, int]]) -> None:
        def work() -> None:
            self._database.overwrite_deleted()
            self._database.batch("forget_titles", pages)

        await self._database.write(work)

    async def forget_skipped(self, links: Sequence[SkippedLink]) -> None:
        rows = [(link.reason, link.fingerprint, link.domain) for link in links]

        def work() -> None:
            self._database.overwrite_deleted()
            self._database.batch("forget_skipped", rows)

        await self._database.write(work)

    async def relocate_contents(self, moved: Sequence[MovedContent]) -> None:
        rows = [relocation_row(text) for text in moved]
        await self._database.write(lambda: self._database.batch("relocate_contents", rows))

    async def forget_contents(self, texts: Sequence[tuple[int, Location]]) -> None:
        rows = [location_key(*text) for text in texts]
        await self._database.write(lambda: self._database.batch("forget_contents", rows))

    async def close(self) -> None:
        await self._database.close()
