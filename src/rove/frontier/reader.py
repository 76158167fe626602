"""Reads a crawl for the inspecting commands, from either database.

Everything is read in slices, each a statement of its own. No read transaction stays open while a person pages through,
because it would keep SQLite from truncating its log and PostgreSQL from vacuuming.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, Protocol

from rove.frontier.contract import DomainRecord, FailingDomain, UrlRecord
from rove.frontier.rows.origins import decompressed, origin_record
from rove.frontier.rows.records import domain_record, failing_domain, url_record
from rove.frontier.runs import Participant, Run
from rove.model.ledger import Content, Counts, RequestKind, RequestRow
from rove.model.visits import OriginRecord

SLICE = 500
LEDGER_SLICE = 5_000
_LOWEST = -(1 << 63)
_HIGHEST = (1 << 63) - 1


class CrawlTables(Protocol):
    """The queries that differ between the databases."""

    async def fetch(self, query: str, /, **parameters: Any) -> list[Any]:
        """Return the rows of a named query that both databases have."""

    async def request(self, row: Any) -> RequestRow:
        """Build a request from a row of the ledger."""

    async def counts(self) -> Counts:
        """Return the counters."""

    async def participants(self) -> list[Participant]:
        """Return all processes that ever took part."""

    async def domain(self, id: int) -> list[Any]:
        """Return the row of one domain, if it exists."""

    async def failing_domains(self, limit: int) -> list[Any]:
        """Return the rows of the domains that keep failing."""

    async def origins(self, keys: list[tuple[int, str]]) -> list[Any]:
        """Return the rows of robots.txt records."""

    async def contents(self, hashes: Iterable[int]) -> dict[int, Content]:
        """Return the locations of those texts that are stored."""


class CrawlReader:
    """The FrontierReader of both databases."""

    def __init__(self, tables: CrawlTables, *, limit: int = SLICE, ledger_limit: int = LEDGER_SLICE) -> None:
        """The limits are the numbers of rows in a slice."""
        self._tables = tables
        self._limit = limit
        self._ledger_limit = ledger_limit
        self.counts = tables.counts
        self.participants = tables.participants
        self.contents = tables.contents

    async def runs(self) -> list[Run]:
        return [
            Run(id=id, started=wall, begin=started / 1000, end=seen / 1000)
            for id, started, seen, wall in await self._tables.fetch("runs")
        ]

    async def url(self, domain: int, fingerprint: int) -> UrlRecord | None:
        rows = await self._tables.fetch("url_record", domain=domain, fingerprint=fingerprint)
        return url_record(rows[0]) if rows else None

    async def domain(self, id: int) -> DomainRecord | None:
        rows = await self._tables.domain(id)
        return domain_record(rows[0]) if rows else None

    async def failing_domains(self, limit: int) -> list[FailingDomain]:
        return [failing_domain(row) for row in await self._tables.failing_domains(limit)]

    async def origins(self, keys: Iterable[tuple[int, str]]) -> list[OriginRecord]:
        return [origin_record(row) for row in await self._tables.origins(list(keys))]

    async def robots_text(self, hash: int) -> bytes | None:
        rows = await self._tables.fetch("robots_text", hash=hash)
        return decompressed(rows[0][0]) if rows else None

    async def requests(self, visit: int) -> list[RequestRow]:
        rows = await self._tables.fetch("requests_of_visit", visit=visit)
        return [await self._tables.request(row) for row in rows]

    async def pages(self, *, domain: int | None = None, status: int | None = None) -> AsyncIterator[RequestRow]:
        rows = (
            self._slices("requests_before", {"visit": _HIGHEST, "seq": 0}, self._limit)
            if domain is None
            else self.visits(domain)
        )
        async for row in rows:
            if row.kind is RequestKind.PAGE and status in (None, row.status):
                yield row

    def visits(self, domain: int) -> AsyncIterator[RequestRow]:
        return self._by_visit("requests_of_domain", domain=domain)

    def elsewhere(self, domain: int) -> AsyncIterator[RequestRow]:
        return self._by_visit("requests_elsewhere", domain=domain)

    def copies(self, hash: int) -> AsyncIterator[RequestRow]:
        return self._by_visit("copies", hash=hash)

    def ledger(self) -> AsyncIterator[RequestRow]:
        first = {"domain": _LOWEST, "visit": _LOWEST, "seq": 0}
        return self._slices("ledger", first, self._ledger_limit)

    def _by_visit(self, query: str, /, **of: int) -> AsyncIterator[RequestRow]:
        return self._slices(query, {"visit": _LOWEST, "seq": 0}, self._limit, **of)

    async def _slices(self, query: str, after: dict[str, int], limit: int, /, **of: int) -> AsyncIterator[RequestRow]:
        """Iterate over a query that continues after the last row of the slice before."""
        while True:
            rows = await self._tables.fetch(query, **of, **after, limit=limit)
            for row in rows:
                request = await self._tables.request(row)
                yield request
            if len(rows) < limit:
                return
            after = {name: getattr(request, name) for name in after}
