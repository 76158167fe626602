"""What the inspecting commands read from the embedded frontier, also while a crawl writes to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rove.frontier.contract import Participant, Run
from rove.frontier.paging import PagedReader
from rove.frontier.rows import origin_record, request_row
from rove.frontier.sqlite.contents import read_contents
from rove.frontier.sqlite.counts import read_counts
from rove.frontier.sqlite.database import Database, Row
from rove.model.ledger import Content, Counts, RequestRow
from rove.model.visits import OriginRecord


class SqliteReader(PagedReader):
    """A reader of one crawl."""

    def __init__(self, database: Database, clock: Callable[[], int] | None = None) -> None:
        self._database = database
        self._given_clock = clock

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
                place=str(self._database.path.parent),
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

    async def _now(self) -> int:
        if self._given_clock is not None:
            return self._given_clock()
        return await self._database.run(lambda: self._database.clock()())

    def _runs_and_processes(self) -> tuple[list[Row], list[Row]]:
        with self._database.snapshot():
            return self._database.execute("runs"), self._database.execute("processes")

    async def _fetch(self, query: str, /, **parameters: Any) -> list[Any]:
        return await self._database.run(lambda: self._database.execute(query, **parameters))

    async def _time(self) -> dict[str, int]:
        return {"now": await self._now()}

    async def origins(self, keys: Iterable[tuple[int, str]]) -> list[OriginRecord]:
        now, wanted = await self._now(), list(keys)
        rows = await self._database.run(lambda: self._database.batch("origins", wanted, now=now))
        return [origin_record(row) for row in rows]

    async def contents(self, hashes: Iterable[int]) -> dict[int, Content]:
        return await read_contents(self._database, hashes)

    async def _request(self, row: Sequence[Any]) -> RequestRow:
        return request_row(row)
