"""Reads the embedded frontier for the inspecting commands, also while a crawl writes to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rove.frontier.rows.requests import request_row
from rove.frontier.runs import Participant, Run
from rove.frontier.sqlite.contents import read_contents
from rove.frontier.sqlite.counters import read_counts
from rove.frontier.sqlite.database import Row, SqliteDatabase
from rove.model.ledger import Content, Counts, RequestRow


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
        now = await self._now()
        return await self._database.run(lambda: read_counts(self._database, now))

    async def runs(self) -> list[Run]:
        runs, processes = await self._database.run(self._runs_and_processes)
        ends: dict[int, float] = {}
        for _, run, _, _, seen, *_ in processes:
            ends[run] = max(seen, ends.get(run, 0))
        return [
            Run(id=id, started=wall, begin=started / 1000, end=max(started, ends.get(id, 0)) / 1000)
            for id, started, wall in runs
        ]

    async def participants(self) -> list[Participant]:
        _, processes = await self._database.run(self._runs_and_processes)
        now = await self._now()
        return [
            Participant(
                node=str(self._database.path.parent),
                is_here=True,
                process=process,
                pid=pid,
                has_left=bool(has_left),
                pages=pages,
                pages_per_second=pages_per_second,
                in_flight=in_flight,
                since=(now - started) / 1000,
                silent_for=(now - seen) / 1000,
            )
            for process, _, pid, started, seen, pages, pages_per_second, in_flight, has_left in processes
        ]

    async def domain(self, id: int) -> list[Row]:
        return await self._database.fetch("domain_record", id=id, now=await self._now())

    async def origins(self, keys: list[tuple[int, str]]) -> list[Row]:
        now = await self._now()
        return await self._database.run(lambda: self._database.batch("origins", keys, now=now))

    async def contents(self, hashes: Iterable[int]) -> dict[int, Content]:
        return await read_contents(self._database, hashes)

    async def _now(self) -> int:
        if self._clock is not None:
            return self._clock()
        return await self._database.run(lambda: self._database.clock()())

    def _runs_and_processes(self) -> tuple[list[Row], list[Row]]:
        with self._database.snapshot():
            return self._database.execute("runs"), self._database.execute("processes")
