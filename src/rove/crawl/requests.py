"""Makes the requests of one visit, within the limits of the visit.

Each request is logged before it is sent and again when it has ended. Whenever the process is killed, either the visit
record or the in-flight log knows about every request.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from rove.crawl.context import CrawlContext
from rove.crawl.inflight_log import Note
from rove.crawl.visit_record import VisitRecord
from rove.fetch.contract import Request
from rove.fetch.visit_connection import VisitConnection
from rove.log_line import log_line
from rove.model.ledger import RequestKind, RequestRow
from rove.model.outcomes import Failed, FailureKind, Outcome
from rove.parse.sitemap import MAX_SITEMAP_BYTES
from rove.policy.constants import MAX_REQUESTS_PER_VISIT
from rove.policy.robots_lines import MAX_ROBOTS_BYTES
from rove.urls.canonical import CrawlUrl

READABLE_TYPES = frozenset({"text/html", "application/xhtml+xml", "text/plain"})
SHORTEST_REQUEST = 0.5
"""No request starts with fewer seconds than this before the deadline."""
_CANCELLED = Failed(kind=FailureKind.ABORTED, detail="the visit was cancelled")


log = logging.getLogger(__name__)


class VisitOver(Exception):
    """The visit may make no more requests. URLs that are left stay pending."""


class Requester:
    """Makes the requests of one visit over one connection."""

    def __init__(self, context: CrawlContext, record: VisitRecord) -> None:
        self._context = context
        self._record = record
        self._connection = VisitConnection()

    def close(self) -> None:
        """Close the connection if it is still open."""
        self._connection.close()

    async def page(self, url: CrawlUrl) -> Outcome:
        """Request a page."""
        max_body = self._context.settings.max_page_size
        return await self._request(url, RequestKind.PAGE, max_body, types=READABLE_TYPES)

    async def sitemap(self, url: CrawlUrl) -> Outcome:
        """Request a sitemap."""
        return await self._request(url, RequestKind.SITEMAP, MAX_SITEMAP_BYTES)

    async def robots(self, url: CrawlUrl, headers: Sequence[tuple[str, str]]) -> Outcome:
        """Request a robots.txt, or the URL that it redirects to."""
        return await self._request(url, RequestKind.ROBOTS, MAX_ROBOTS_BYTES, headers=headers)

    async def _request(
        self,
        url: CrawlUrl,
        kind: RequestKind,
        max_bytes: int,
        *,
        types: frozenset[str] | None = None,
        headers: Sequence[tuple[str, str]] = (),
    ) -> Outcome:
        """Make a request; raise VisitOver if the visit may make no more."""
        context, record = self._context, self._record
        started = context.clock()
        seconds_left = record.held.deadline - started
        if (
            seconds_left < SHORTEST_REQUEST
            or len(record.requests) >= MAX_REQUESTS_PER_VISIT
            or context.shutdown.has_begun
        ):
            raise VisitOver
        request = Request(
            url=url,
            max_bytes=max_bytes,
            accept_types=types,
            timeout=seconds_left,
            headers=headers,
            share=record.share,
            connection=self._connection,
            keep_open=kind is RequestKind.ROBOTS,
        )
        record.update_memory()
        outcome: Outcome = _CANCELLED
        row = record.begin_request(url, kind, now=started)
        context.inflight_log.note(Note(row=row))
        try:
            outcome = await context.fetcher.fetch(request)
        finally:
            now = context.clock()
            row = record.end_request(row, outcome, now=now)
            if row.status:
                context.progress.note_answer(started, now)
            pacing = record.pacing(context.settings.delay)
            context.inflight_log.note(Note(row=row, pause=pacing.pause, pause_from=pacing.reason))
            if log.isEnabledFor(logging.DEBUG):
                self._log_fetch(row, outcome)
        if isinstance(outcome, Failed) and outcome.kind is FailureKind.BUSY:
            context.pressure.note_failure(outcome)
            raise VisitOver
        return outcome

    def _log_fetch(self, row: RequestRow, outcome: Outcome) -> None:
        log.debug(
            "%s",
            log_line(
                "fetch",
                process=self._context.frontier.process,
                domain=self._record.lease.name,
                visit=row.visit,
                kind=row.kind,
                url=row.url,
                status=row.status,
                error=row.error,
                bytes=row.size,
                seconds=(row.ended - row.began) / 1000,
                address=row.address,
                detail=outcome.detail if isinstance(outcome, Failed) else "",
            ),
        )
