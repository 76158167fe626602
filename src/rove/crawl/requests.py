"""The requests of one visit: each within the visit's bounds, and noted before it is sent and when it has ended.

Whatever is killed when, the journal or the spool knows what the domain was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rove.crawl.inflight_log import InflightLog, Note
from rove.crawl.seen import SeenSet
from rove.crawl.visit_record import VisitRecord
from rove.fetch.contract import Fetcher, Request
from rove.fetch.visit_connection import VisitConnection
from rove.frontier.contract import Frontier
from rove.model.ledger import RequestKind
from rove.model.outcomes import Failed, FailureKind, Outcome
from rove.parse.reader import PageReader
from rove.parse.sitemap import MAX_SITEMAP_BYTES
from rove.policy.constants import MAX_REQUESTS_PER_VISIT
from rove.policy.gate import Gate
from rove.policy.robots import MAX_ROBOTS_BYTES
from rove.urls.canonical import CrawlUrl

READABLE_TYPES = frozenset({"text/html", "application/xhtml+xml", "text/plain"})
SHORTEST_REQUEST = 0.5
"""With fewer seconds than this left to the deadline, nothing is asked any more."""
_CUT_SHORT = Failed(kind=FailureKind.ABORTED, detail="the visit was cut short")


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlContext:
    """What all visits of a crawl share."""

    frontier: Frontier
    fetcher: Fetcher
    gate: Gate
    reader: PageReader
    inflight_log: InflightLog
    seen: SeenSet
    """Links that need not be offered to the frontier."""
    delay: float
    max_body: int
    redirect_hops: int
    """Redirects inside the domain that a visit follows at once."""
    sitemaps: bool
    """Sitemaps that robots.txt names are read."""
    keep_raw: bool
    """The store wants the answers as they came."""
    clock: Callable[[], float]
    is_stopping: Callable[[], bool]
    on_busy: Callable[[Failed], None] = lambda _: None
    """Told of a request that could not be made for want of something of ours."""


class VisitOver(Exception):
    """The visit has had its time or its requests; what is left stays pending."""


class Requester:
    """Asks for a visit."""

    def __init__(self, context: CrawlContext, journal: VisitRecord) -> None:
        self._context = context
        self._journal = journal
        self._line = VisitConnection()

    def close(self) -> None:
        """Leave no connection open."""
        self._line.close()

    async def page(self, url: CrawlUrl) -> Outcome:
        """Ask for a page."""
        return await self._ask(url, RequestKind.PAGE, self._context.max_body, types=READABLE_TYPES)

    async def sitemap(self, url: CrawlUrl) -> Outcome:
        """Ask for a sitemap."""
        return await self._ask(url, RequestKind.SITEMAP, MAX_SITEMAP_BYTES)

    async def robots(self, url: CrawlUrl, headers: Sequence[tuple[str, str]]) -> Outcome:
        """Ask for a robots.txt, wherever it is."""
        return await self._ask(url, RequestKind.ROBOTS, MAX_ROBOTS_BYTES, headers=headers)

    async def _ask(
        self,
        url: CrawlUrl,
        kind: RequestKind,
        max_bytes: int,
        *,
        types: frozenset[str] | None = None,
        headers: Sequence[tuple[str, str]] = (),
    ) -> Outcome:
        """Make a request, if the visit may make one more; VisitOver if not."""
        context, journal = self._context, self._journal
        started = context.clock()
        left = journal.lease.deadline - started
        if (
            left < SHORTEST_REQUEST
            or len(journal.requests) >= MAX_REQUESTS_PER_VISIT
            or context.is_stopping()
        ):
            raise VisitOver
        request = Request(
            url=url,
            max_bytes=max_bytes,
            accept_types=types,
            timeout=left,
            headers=headers,
            share=journal.share,
            connection=self._line,
            keep_open=kind is RequestKind.ROBOTS,
        )
        journal.account()
        outcome: Outcome = _CUT_SHORT
        row = journal.begin_request(url, kind, now=started)
        context.inflight_log.note(Note(visit=row.visit, domain=row.domain, row=row))
        try:
            outcome = await context.fetcher.fetch(request)
        finally:
            row = journal.end_request(row, outcome, now=context.clock())
            verdict = journal.verdict(context.delay)
            context.inflight_log.note(
                Note(
                    visit=row.visit,
                    domain=row.domain,
                    row=row,
                    pause=verdict.pause,
                    pause_from=verdict.reason,
                )
            )
        if isinstance(outcome, Failed) and outcome.kind is FailureKind.BUSY:
            context.on_busy(outcome)
            raise VisitOver
        return outcome
