"""URLs and requests read from a frontier, whatever database it is in.

Everything is read in slices, each a statement of its own: no read transaction or snapshot stays open that would keep
SQLite's log from being emptied, or PostgreSQL's vacuum away, while a person pages through.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from typing import Any

from rove.frontier.contract import DomainRecord, UrlRecord
from rove.frontier.rows import domain_record
from rove.model.ledger import RequestKind, RequestRow
from rove.model.urls import UrlState

SLICE = 500
LEDGER_SLICE = 5_000
_LOWEST = -(1 << 63)
_HIGHEST = (1 << 63) - 1


class PagedReader(ABC):
    """The part of a reader that both databases share: they have the same named queries."""

    @abstractmethod
    async def _fetch(self, query: str, /, **parameters: Any) -> list[Any]:
        """What a named query brings."""

    async def _time(self) -> dict[str, int]:
        """The time as a parameter, where the database does not know it by itself."""
        return {}

    @abstractmethod
    async def _request(self, row: Sequence[Any]) -> RequestRow:
        """A request from its columns."""

    async def url(self, domain: int, fingerprint: int) -> UrlRecord | None:
        """One URL."""
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
        """All requests of one visit, in order."""
        rows = await self._fetch("requests_of_visit", visit=visit)
        return [await self._request(row) for row in rows]

    async def pages(
        self, *, domain: int | None = None, status: int | None = None
    ) -> AsyncIterator[RequestRow]:
        """Requests for pages, newest first; of one domain, oldest first."""
        rows = self._newest() if domain is None else self.visits(domain)
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

    def visits(self, domain: int) -> AsyncIterator[RequestRow]:
        """All requests of all visits to a domain, in order."""
        return self._by_visit("requests_of_domain", domain=domain)

    def elsewhere(self, domain: int) -> AsyncIterator[RequestRow]:
        """Requests to a domain in visits to others, whose robots.txt led there."""
        return self._by_visit("requests_elsewhere", domain=domain)

    def copies(self, hash: int) -> AsyncIterator[RequestRow]:
        """The pages that have no text of their own but this one."""
        return self._by_visit("copies", hash=hash)

    async def _by_visit(self, query: str, /, **of: int) -> AsyncIterator[RequestRow]:
        visit, seq = _LOWEST, 0
        while True:
            found = await self._fetch(query, **of, visit=visit, seq=seq, limit=SLICE)
            for row in found:
                yield await self._request(row)
            if len(found) < SLICE:
                return
            visit, seq = found[-1][0], found[-1][1]

    async def ledger(self) -> AsyncIterator[RequestRow]:
        """All requests there ever were, domain by domain, in order."""
        domain, visit, seq = _LOWEST, _LOWEST, 0
        while True:
            found = await self._fetch(
                "ledger", domain=domain, visit=visit, seq=seq, limit=LEDGER_SLICE
            )
            for row in found:
                yield await self._request(row)
            if len(found) < LEDGER_SLICE:
                return
            visit, seq, domain = found[-1][0], found[-1][1], found[-1][2]

    async def domain(self, id: int) -> DomainRecord | None:
        """One domain."""
        rows = await self._fetch("domain_record", id=id, **await self._time())
        return domain_record(rows[0]) if rows else None

    async def robots_text(self, hash: int) -> bytes | None:
        """A robots.txt that the ledger names."""
        rows = await self._fetch("robots_text", hash=hash)
        return zlib.decompress(rows[0][0]) if rows else None
