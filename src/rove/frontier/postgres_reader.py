"""What the inspecting commands read from a frontier on PostgreSQL, also while a crawl writes to it.

Everything is read in slices, each a statement of its own: no snapshot stays open that would keep vacuum away.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from rove.frontier.contract import Participant, Run, UrlRecord
from rove.frontier.postgres_counts import read_counts
from rove.frontier.postgres_database import Database
from rove.frontier.rows import REQUEST_COLUMNS, request_row
from rove.model import Counts, RequestKind, RequestRow, UrlState

SLICE = 500
_LOWEST = -(1 << 63)
_HIGHEST = (1 << 63) - 1


class PostgresReader:
    """A reader of one crawl, from the data directory of one machine."""

    def __init__(self, database: Database, machine_key: str) -> None:
        """`machine_key` names this data directory; pages of others are somewhere else."""
        self._database = database
        self._machine_key = machine_key
        self._places: dict[int, str] = {}

    async def counts(self) -> Counts:
        return await read_counts(self._database)

    async def runs(self) -> list[Run]:
        rows = await self._fetch("runs")
        return [
            Run(id=id, started=wall, begin=started / 1000, end=seen / 1000)
            for id, started, seen, wall in rows
        ]

    async def participants(self) -> list[Participant]:
        rows = await self._fetch("nodes")
        return [
            Participant(
                place=f"{host}:{path}",
                is_here=key == self._machine_key,
                process=process,
                pid=pid,
                has_left=has_left,
                pages=pages,
                pages_per_second=pages_per_second,
                in_flight=in_flight,
                since=since,
                silent_for=silent_for,
            )
            for (
                *(key, host, path, process, pid, has_left, pages, pages_per_second, in_flight),
                since,
                silent_for,
            ) in rows
        ]

    async def url(self, domain: int, fingerprint: int) -> UrlRecord | None:
        rows = await self._fetch("url_record", domain=domain, fingerprint=fingerprint)
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
        rows = await self._fetch("requests_of_visit", visit=visit)
        return [await self._request(row) for row in rows]

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
            found = await self._fetch("requests_before", visit=visit, seq=seq, limit=SLICE)
            for row in found:
                yield await self._request(row)
            if len(found) < SLICE:
                return
            visit, seq = found[-1][0], found[-1][1]

    async def _of_domain(self, domain: int) -> AsyncIterator[RequestRow]:
        last = _LOWEST
        while True:
            found = await self._fetch(
                "requests_of_domain", domain=domain, fingerprint=last, limit=SLICE
            )
            for row in found:
                if row[1] is not None:
                    yield await self._request(row[1:])
            if not found:
                return
            last = found[-1][0]

    async def _request(self, row: Sequence[Any]) -> RequestRow:
        machine = row[len(REQUEST_COLUMNS)]
        if machine not in self._places:
            self._places = {
                id: "" if key == self._machine_key else f"{host}:{path}"
                for id, key, host, path in await self._fetch("machines")
            }
        return request_row(row, self._places.get(machine, "a machine that is not known"))

    async def _fetch(self, query: str, /, **parameters: Any) -> list[Any]:
        return await self._database.run(
            "look into the crawl", lambda session: session.fetch(query, **parameters)
        )
