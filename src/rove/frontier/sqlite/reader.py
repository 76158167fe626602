"""Reads the embedded frontier, also while a crawl writes to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rove.frontier.counters import counts_from
from rove.frontier.rows.contents import content_record
from rove.frontier.rows.records import participant
from rove.frontier.rows.requests import request_row
from rove.frontier.runs import Participant
from rove.frontier.sqlite.database import Row, SqliteDatabase
from rove.frontier.sqlite.explain import explain_query, query_names
from rove.frontier.sqlite.samples import machine_name
from rove.model.counts import Counts
from rove.model.ledger import Content, RequestRow


class SqliteTables:
    """The queries of a reader that are specific to SQLite."""

    def __init__(self, database: SqliteDatabase, clock: Callable[[], int] | None = None) -> None:
        """`clock` replaces the crawl's clock."""
        self._database = database
        self._clock = clock
        self.fetch = database.fetch

    async def request(self, row: Row) -> RequestRow:
        return request_row(row)

    async def counts(self) -> Counts:
        now = await self.now()

        def work() -> Counts:
            with self._database.snapshot():
                return counts_from(
                    dict(self._database.execute("counters")),
                    ready=self._database.execute("count_ready", now=now)[0][0],
                    leased=self._database.execute("count_leased", now=now)[0][0],
                    capped=self._database.execute("count_capped")[0][0],
                )

        return await self._database.run(work)

    async def participants(self) -> list[Participant]:
        node = machine_name(self._database)
        rows = await self.fetch("participants", now=await self.now())
        return [participant(node, True, row) for row in rows]

    async def machine_name(self, machine: int) -> str:
        return machine_name(self._database)

    async def next_due(self) -> float | None:
        now = await self.now()
        rows = await self._database.fetch("next_due", until=now)
        return max(0, rows[0][0] - now) / 1000 if rows else None

    async def domain(self, id: int) -> list[Row]:
        return await self._database.fetch("domain_record", id=id, now=await self.now())

    async def listed_domains(self, ids: list[int], now: int) -> list[Row]:
        return await self._database.run(lambda: self._database.batch("listed_domains", ids, now=now))

    async def queued_domains(self, ids: list[int], now: int, delay: int) -> list[Row]:
        return await self._database.run(lambda: self._database.batch("queued_domains", ids, now=now, delay=delay))

    async def queue_heads(self, ids: list[int], *, low: int, below: int, limit: int) -> list[Row]:
        return await self._database.run(
            lambda: self._database.batch("queue_heads", ids, low=low, below=below, limit=limit)
        )

    async def failing_domains(self, limit: int) -> list[Row]:
        return await self._database.fetch("failing_domains", limit=limit, now=await self.now())

    async def origins(self, keys: list[tuple[int, str]]) -> list[Row]:
        now = await self.now()
        return await self._database.run(lambda: self._database.batch("origins", keys, now=now))

    async def known_urls(self, keys: Sequence[tuple[int, int]]) -> list[Row]:
        return await self._database.run(lambda: self._database.batch("known_urls", keys))

    async def roots(self, domains: list[int]) -> list[Row]:
        return await self._database.run(lambda: self._database.batch("roots", domains))

    async def known_domains(self, ids: list[int]) -> list[Row]:
        return await self._database.run(lambda: self._database.batch("known_domains", ids))

    async def contents(self, hashes: Iterable[int]) -> dict[int, Content]:
        wanted = list(hashes)
        if not wanted:
            return {}
        rows = await self._database.run(lambda: self._database.batch("known_contents", wanted))
        return {row[0]: content_record(row) for row in rows}

    def query_names(self) -> list[str]:
        return query_names()

    async def explain_query(self, name: str) -> list[str]:
        return await explain_query(self._database, name)

    async def copy_counts(self, hashes: list[int]) -> list[Row]:
        return await self._database.run(lambda: self._database.batch("copy_counts", hashes))

    async def depths(self, keys: list[tuple[int, int]]) -> list[Row]:
        return await self._database.run(lambda: self._database.batch("depths", keys))

    async def now(self) -> int:
        if self._clock is not None:
            return self._clock()
        return await self._database.run(lambda: self._database.clock()())
