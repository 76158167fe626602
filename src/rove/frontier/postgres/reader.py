"""What the inspecting commands read from a frontier on PostgreSQL, also while a crawl writes to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rove.frontier.contract import Participant, Run
from rove.frontier.paging import PagedReader
from rove.frontier.postgres.contents import fetch_contents
from rove.frontier.postgres.counts import read_counts
from rove.frontier.postgres.database import Database
from rove.frontier.rows import REQUEST_COLUMNS, content_record, origin_record, request_row
from rove.model.ledger import Content, Counts, RequestRow
from rove.model.visits import OriginRecord


class PostgresReader(PagedReader):
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

    async def origins(self, keys: Iterable[tuple[int, str]]) -> list[OriginRecord]:
        wanted = list(keys)
        rows = await self._fetch(
            "origins", domains=[domain for domain, _ in wanted], origins=[o for _, o in wanted]
        )
        return [origin_record(row) for row in rows]

    async def contents(self, hashes: Iterable[int]) -> dict[int, Content]:
        rows = await fetch_contents(self._database, hashes)
        return {row[0]: content_record(row, await self._place(row[-1])) for row in rows}

    async def _request(self, row: Sequence[Any]) -> RequestRow:
        return request_row(row, await self._place(row[len(REQUEST_COLUMNS)]))

    async def _place(self, machine: int) -> str:
        """Where a machine's pages are, '' for this one's."""
        if machine not in self._places:
            self._places = {
                id: "" if key == self._machine_key else f"{host}:{path}"
                for id, key, host, path in await self._fetch("machines")
            }
        return self._places.get(machine, "a machine that is not known")

    async def _fetch(self, query: str, /, **parameters: Any) -> list[Any]:
        return await self._database.run(
            "look into the crawl", lambda session: session.fetch(query, **parameters)
        )
