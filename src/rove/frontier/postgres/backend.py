"""A crawl in a schema of a PostgreSQL database."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rove.errors import UsageError
from rove.frontier.era_file import EraFile
from rove.frontier.move.bookmark import is_moving
from rove.frontier.postgres.catalog import PostgresCatalog
from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.frontier import PostgresFrontier
from rove.frontier.postgres.reader import PostgresTables
from rove.frontier.reader import CrawlReader
from rove.frontier.records import MovedContent, Node, Policy
from rove.frontier.rows.contents import location_key, relocation_row
from rove.frontier.rows.requests import LOCATION_COLUMNS, location_values
from rove.model.ledger import Location, RequestRow
from rove.model.skipped import SkippedLink

GONE_AFTER_MS = 15_000
"""A process without a heartbeat for this long counts as dead."""


class PostgresBackend:
    """The frontier for several machines."""

    def __init__(
        self,
        url: str,
        schema: str,
        machine: Node,
        *,
        register: bool = True,
        on_news: Callable[[str], None] | None = None,
        era_file: EraFile | None = None,
    ) -> None:
        """With `register`, this node takes part. `on_news` is called when the server is lost and when it is back.

        With `era_file`, a server that lacks a part of the crawl's past is noticed.
        """
        self._database = PostgresDatabase(
            url, schema, on_news=on_news, era_file=era_file, only_reads=not register, node=machine.name
        )
        self._node = machine if register else None
        self.machine = 0
        """The number of this node in the database, once it is open."""
        self.location = self._database.location
        self.catalog = PostgresCatalog(self._database, lambda: self.machine)
        self.reader = CrawlReader(PostgresTables(self._database, machine.key))

    async def exists(self) -> bool:
        return await self._database.holds_schema()

    async def open(self, *, create: bool = False) -> None:
        await self._database.open(create=create)
        if await is_moving(self._database):
            raise UsageError(f"a move into {self.location} is not finished; run 'rove move' again")
        node = self._node
        if node is not None and not self.machine:
            await self._refuse_copy(node)
            self.machine = await self._database.value("this_machine", key=node.key, host=node.host, path=node.path)

    async def _refuse_copy(self, node: Node) -> None:
        originals = await self._database.fetch(
            "same_machine_elsewhere", key=node.key, host=node.host, path=node.path, gone_after_ms=GONE_AFTER_MS
        )
        for host, path in originals:
            raise UsageError(
                f"{node.path} is a copy of the data directory {host}:{path}, which is crawling; "
                "use a new one with 'rove join'"
            )

    async def begin_run(self) -> int:
        run: int = await self._database.value("begin_run", wall=time.time())
        return run

    async def begin(self, policy: Policy, run: int | None) -> PostgresFrontier:
        assert self.machine or run is None, "a process that crawls has a data directory"
        frontier = PostgresFrontier(self._database, policy, self.machine, node=self._node)
        await frontier.begin(run)
        return frontier

    async def relocate_pages(self, rows: Sequence[RequestRow]) -> None:
        await self._database.batch("relocate_pages", LOCATION_COLUMNS, [location_values(row) for row in rows])

    async def forget_titles(self, pages: Sequence[tuple[int, int]]) -> None:
        await self._database.batch("forget_titles", ("visits", "seqs"), pages)

    async def forget_skipped(self, links: Sequence[SkippedLink]) -> None:
        rows = [(link.reason, link.fingerprint, link.domain) for link in links]
        await self._database.batch("forget_skipped", ("reasons", "fingerprints", "domains"), rows)

    async def relocate_contents(self, moved: Sequence[MovedContent]) -> None:
        columns = ("hashes", "files", "offsets", "domains", "visits", "new_files", "new_offsets", "new_lengths")
        rows = [relocation_row(text) for text in moved]
        await self._database.batch("relocate_contents", columns, rows, machine=self.machine)

    async def forget_contents(self, texts: Sequence[tuple[int, Location]]) -> None:
        rows = [location_key(*text) for text in texts]
        await self._database.batch("forget_contents", ("hashes", "files", "offsets"), rows, machine=self.machine)

    async def close(self) -> None:
        await self._database.close()
