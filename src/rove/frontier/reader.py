"""Reads a crawl for the inspecting commands, from either database.

Everything is read in slices, each a statement of its own. No read transaction stays open while a person pages through,
because it would keep SQLite from truncating its log and PostgreSQL from vacuuming.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Protocol

from rove.frontier.domain_list import SLICE_OF_DOMAINS, DomainList, DomainTables
from rove.frontier.records import DomainRecord, FailingDomain, UrlRecord
from rove.frontier.retries import KnownUrl
from rove.frontier.rows.origins import decompressed, origin_records
from rove.frontier.rows.records import domain_record, failing_domain, known_url, url_record
from rove.frontier.rows.skipped import skipped_link
from rove.frontier.runs import Participant, Run
from rove.frontier.sample_reader import SampleReader, SampleTables
from rove.frontier.url_queue import QueueTables, UrlQueue
from rove.model.counts import Counts
from rove.model.ledger import Content, RequestRow
from rove.model.request_counts import is_listed_with_pages
from rove.model.skipped import SkippedLink
from rove.model.visits import OriginRecord
from rove.policy.constants import VISIT_BUDGET

SLICE = 500
LEDGER_SLICE = 5_000
VISIT_SECONDS = VISIT_BUDGET + 420.0
"""A request is made at most this long after its visit was numbered, with seven minutes for clocks that disagree."""
_LAST_SEQ = (1 << 15) - 1
_LOWEST = -(1 << 63)
_HIGHEST = (1 << 63) - 1


class CrawlTables(DomainTables, QueueTables, SampleTables, Protocol):
    """The queries that differ between the databases."""

    async def request(self, row: Any) -> RequestRow:
        """Build a request from a row of the ledger."""

    async def counts(self) -> Counts:
        """Return the counters."""

    async def participants(self) -> list[Participant]:
        """Return all processes that ever took part."""

    async def next_due(self) -> float | None:
        """Return the seconds until a domain worth waiting for is due."""

    async def domain(self, id: int) -> list[Any]:
        """Return the row of one domain, if it exists."""

    async def failing_domains(self, limit: int) -> list[Any]:
        """Return the rows of the domains that keep failing."""

    def query_names(self) -> list[str]:
        """Return the names of the statements that can be explained."""

    async def explain_query(self, name: str) -> list[str]:
        """Return the plan of a statement."""

    async def origins(self, keys: list[tuple[int, str]]) -> list[Any]:
        """Return the rows of robots.txt records."""

    async def known_urls(self, keys: Sequence[tuple[int, int]]) -> list[Any]:
        """Return the rows of those URLs that are known."""

    async def roots(self, domains: list[int]) -> list[Any]:
        """Return the rows of the pages of depth 0 of these domains."""

    async def known_domains(self, ids: list[int]) -> list[Any]:
        """Return the ids of those domains that have a row."""

    async def contents(self, hashes: Iterable[int]) -> dict[int, Content]:
        """Return the locations of those texts that are stored."""

    async def copy_counts(self, hashes: list[int]) -> list[Any]:
        """Return rows of a hash and the number of pages that repeat its text."""

    async def depths(self, keys: list[tuple[int, int]]) -> list[Any]:
        """Return rows of domain, fingerprint and depth of those URLs that are known."""


class CrawlReader:
    """The FrontierReader of both databases."""

    def __init__(
        self,
        tables: CrawlTables,
        *,
        limit: int = SLICE,
        ledger_limit: int = LEDGER_SLICE,
        domain_limit: int = SLICE_OF_DOMAINS,
    ) -> None:
        """The limits are the numbers of rows in a slice."""
        self._tables = tables
        self._limit = limit
        self._ledger_limit = ledger_limit
        self.counts = tables.counts
        self.participants = tables.participants
        self.next_due = tables.next_due
        self.contents = tables.contents
        history = SampleReader(tables)
        self.samples = history.samples
        self.latest_samples = history.latest_samples
        self.domains = DomainList(tables, slice_size=domain_limit).page
        self.queue = UrlQueue(tables).read
        self.query_names = tables.query_names
        self.explain_query = tables.explain_query

    async def runs(self) -> list[Run]:
        return [
            Run(id=id, started=wall, begin=started / 1000, end=seen / 1000)
            for id, started, seen, wall in await self._tables.fetch("runs")
        ]

    async def losses(self) -> list[int]:
        return [int(time) for (times,) in await self._tables.fetch("losses") for time in str(times).split()]

    async def url(self, domain: int, fingerprint: int) -> UrlRecord | None:
        rows = await self._tables.fetch("url_record", domain=domain, fingerprint=fingerprint)
        return url_record(rows[0]) if rows else None

    async def known_urls(self, keys: Sequence[tuple[int, int]]) -> list[KnownUrl]:
        return [known_url(row) for row in await self._tables.known_urls(keys)] if keys else []

    async def skipped(self) -> list[SkippedLink]:
        return [skipped_link(row) for row in await self._tables.fetch("skipped_links")]

    async def roots(self, domains: Iterable[int]) -> dict[int, list[tuple[str, bool]]]:
        found: dict[int, list[tuple[str, bool]]] = {}
        for domain, url, is_seed in await self._tables.roots(sorted(domains)):
            found.setdefault(domain, []).append((url, bool(is_seed)))
        return found

    async def seeds(self) -> AsyncIterator[list[KnownUrl]]:
        last: int | None = _LOWEST
        while True:
            rows = await self._tables.fetch("seeds_after", seed=last, limit=self._limit)
            seeds = [known_url(row) for row in rows]
            if seeds:
                yield seeds
            if len(rows) < self._limit:
                return
            last = seeds[-1].seed

    def urls(self, *, after: int = _LOWEST) -> AsyncIterator[list[KnownUrl]]:
        return self._urls("urls_after", after, _HIGHEST)

    def troubled(self, domain: int | None = None) -> AsyncIterator[list[KnownUrl]]:
        if domain is None:
            return self._urls("troubled_after", _LOWEST, _LOWEST)
        return self._urls("troubled_of_domain", domain, _LOWEST)

    async def _urls(self, query: str, of: int, fingerprint: int) -> AsyncIterator[list[KnownUrl]]:
        """Iterate over a query that continues after the domain and the fingerprint of the last URL before."""
        while True:
            rows = await self._tables.fetch(query, domain=of, fingerprint=fingerprint, limit=self._limit)
            urls = [known_url(row) for row in rows]
            if urls:
                yield urls
            if len(rows) < self._limit:
                return
            of, fingerprint = urls[-1].key

    async def domain(self, id: int) -> DomainRecord | None:
        rows = await self._tables.domain(id)
        return domain_record(rows[0]) if rows else None

    async def failing_domains(self, limit: int) -> list[FailingDomain]:
        return [failing_domain(row) for row in await self._tables.failing_domains(limit)]

    async def origins(self, keys: Iterable[tuple[int, str]]) -> list[OriginRecord]:
        return origin_records(await self._tables.origins(list(keys)))

    async def robots_text(self, name: str) -> bytes | None:
        rows = await self._tables.fetch("robots_text", name=name)
        return decompressed(rows[0][0]) if rows else None

    async def requests(self, visit: int) -> list[RequestRow]:
        rows = await self._tables.fetch("requests_of_visit", visit=visit)
        return [await self._tables.request(row) for row in rows]

    async def pages(
        self, *, domain: int | None = None, since: float = -math.inf, until: float = math.inf
    ) -> AsyncIterator[RequestRow]:
        first = {"visit": _HIGHEST if domain is not None else await self._visit_after(until), "seq": 0}
        rows = (
            self._slices("requests_before", first, self._limit)
            if domain is None
            else self._slices("requests_of_domain_before", first, self._limit, domain=domain)
        )
        async for row in rows:
            if row.started < since - VISIT_SECONDS:
                return  # visits are numbered as they begin, so all that follow began even earlier
            if is_listed_with_pages(row) and since <= row.started < until:
                yield row

    async def _visit_after(self, time: float) -> int:
        """Return a visit after which no request was made before this time. It is close to the first of them."""
        newest = await self._request_before(_HIGHEST)
        if newest is None or newest.started <= time + VISIT_SECONDS:
            return _HIGHEST
        below, above = 0, newest.visit
        while above - below > 1:
            middle = (below + above) // 2
            row = await self._request_before(middle)
            if row is not None and row.started > time + VISIT_SECONDS:
                above = row.visit
            else:
                below = middle
        return above

    async def _request_before(self, visit: int) -> RequestRow | None:
        rows = await self._tables.fetch("requests_before", visit=visit, seq=0, limit=1)
        return await self._tables.request(rows[0]) if rows else None

    def visits_after(self, visit: int, *, domain: int | None = None) -> AsyncIterator[RequestRow]:
        first = {"visit": visit, "seq": _LAST_SEQ}
        if domain is None:
            return self._slices("requests_after", first, self._limit)
        return self._slices("requests_of_domain", first, self._limit, domain=domain)

    async def oldest_lease(self) -> int | None:
        ((visit,),) = await self._tables.fetch("oldest_lease")
        return None if visit is None else int(visit)

    async def known_domains(self, ids: Iterable[int]) -> set[int]:
        return {row[0] for row in await self._tables.known_domains(list(ids))}

    def visits(self, domain: int) -> AsyncIterator[RequestRow]:
        return self._by_visit("requests_of_domain", domain=domain)

    async def copy_counts(self, hashes: Iterable[int]) -> dict[int, int]:
        wanted = list(hashes)
        rows = await self._tables.copy_counts(wanted) if wanted else []
        return {row[0]: row[1] for row in rows}

    async def depths(self, keys: Iterable[tuple[int, int]]) -> dict[tuple[int, int], int]:
        wanted = list(keys)
        rows = await self._tables.depths(wanted) if wanted else []
        return {(domain, fingerprint): depth for domain, fingerprint, depth in rows}

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
