"""What the inspecting commands read from the embedded frontier, also while a crawl writes to it.

Everything is read in slices, each a short read of its own: no read transaction stays open that would keep
the write-ahead log from being emptied.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from rove.frontier.contract import Participant, Run, UrlRecord
from rove.frontier.rows import request_row
from rove.frontier.sqlite_counts import read_counts
from rove.frontier.sqlite_database import Database, Row
from rove.model import Counts, RequestKind, RequestRow, UrlState

SLICE = 500
_LOWEST = -(1 << 63)
_HIGHEST = (1 << 63) - 1


class SqliteReader:
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

    async def url(self, domain: int, fingerprint: int) -> UrlRecord | None:
        rows = await self._database.run(
            lambda: self._database.execute("url_record", domain=domain, fingerprint=fingerprint)
        )
        if not rows:
            return None
        row = rows[0]
        return UrlRecord(
            domain=row[0],
            fingerprint=row[1],
            url=row[2],
            state=UrlState(row[3]),
            depth=row[4],
            attempts=row[5],
            reason=row[6],
            visit=row[7],
        )

    async def requests(self, visit: int) -> list[RequestRow]:
        rows = await self._database.run(
            lambda: self._database.execute("requests_of_visit", visit=visit)
        )
        return [request_row(row) for row in rows]

    async def pages(
        self, *, domain: int | None = None, status: int | None = None
    ) -> AsyncIterator[RequestRow]:
        rows = self._newest() if domain is None else self._of_domain(domain)
        async for row in rows:
            if row.kind is RequestKind.PAGE and status in (None, row.status):
                yield row

    async def _newest(self) -> AsyncIterator[RequestRow]:
        visit, seq = _HIGHEST, 0
        while True:
            found = await self._database.run(
                lambda visit=visit, seq=seq: self._database.execute(  # type: ignore[misc]
                    "requests_before", visit=visit, seq=seq, limit=SLICE
                )
            )
            for row in found:
                yield request_row(row)
            if len(found) < SLICE:
                return
            visit, seq = found[-1][0], found[-1][1]

    async def _of_domain(self, domain: int) -> AsyncIterator[RequestRow]:
        last = _LOWEST
        while True:
            found = await self._database.run(
                lambda last=last: self._database.execute(  # type: ignore[misc]
                    "requests_of_domain", domain=domain, fingerprint=last, limit=SLICE
                )
            )
            for row in found:
                if row[1] is not None:
                    yield request_row(row[1:])
            if not found:
                return
            last = found[-1][0]
