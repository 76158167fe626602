"""Makes the requests of one visit, within the limits of the visit.

Each request is logged before it is sent and again when it has ended. Whenever the process is killed, either the visit
record or the in-flight log knows about every request.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager

from rove.crawl.context import CrawlContext
from rove.crawl.inflight_log import Note, Reading
from rove.crawl.visit_record import VisitRecord
from rove.fetch.contract import NOTHING, Request
from rove.fetch.visit_connection import VisitConnection
from rove.model.ledger import RequestKind, RequestRow
from rove.model.outcomes import Failed, FailureKind, Outcome
from rove.model.urls import PendingUrl
from rove.notation.log_line import log_line
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
        self.reading: AbstractContextManager[None] = NOTHING
        """Enter it while the process reads a response."""

    def turn_to(self, url: PendingUrl) -> None:
        """Make the next requests on behalf of this URL: the suspect, if the process dies while it reads a response."""
        self.reading = Reading(self._context.inflight_log, self._record.lease.token, url)

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
        if len(record.requests) >= MAX_REQUESTS_PER_VISIT:
            raise VisitOver
        seconds_left = self._seconds_left()
        record.update_memory()
        row = record.begin_request(url, kind, now=context.clock())
        await self._reserve(url, seconds_left)
        if not record.requests:
            context.meter.note_margin(record.margin(row))
        request = Request(
            url=url,
            max_bytes=max_bytes,
            accept_types=types,
            timeout=self._seconds_left(),
            headers=headers,
            share=record.share,
            connection=self._connection,
            is_brief=self._is_brief(),
            keep_open=kind is RequestKind.ROBOTS,
            decoding=self.reading,
        )
        outcome: Outcome = _CANCELLED
        context.inflight_log.note(Note(row=row))
        try:
            outcome = await context.fetcher.fetch(request)
        finally:
            now = context.clock()
            context.meter.histogram(f"request.{kind}").add(now - record.request_began)
            row = record.end_request(row, outcome, now=now)
            if row.status:
                context.progress.note_answer(record.request_began, now)
                context.silence.end(record)
            pacing = record.pacing(context.settings.delay)
            context.inflight_log.note(Note(row=row, pause=pacing.pause, pause_from=pacing.reason))
            if log.isEnabledFor(logging.DEBUG):
                self._log_fetch(row, outcome)
        if record.is_late(now):
            raise VisitOver
        if isinstance(outcome, Failed) and outcome.kind is FailureKind.BUSY:
            context.pressure.note_failure(outcome)
            raise VisitOver
        return outcome

    def _seconds_left(self) -> float:
        """Return the seconds that a request may take; raise VisitOver if they are too few, or the crawl ends."""
        seconds = self._record.held.deadline - self._context.clock()
        if seconds < SHORTEST_REQUEST or self._context.shutdown.has_begun:
            raise VisitOver
        return seconds

    async def _reserve(self, url: CrawlUrl, within: float) -> None:
        """Take room at the address of a URL; if there is none, postpone the visit and raise VisitOver."""
        wait = await self._context.fetcher.reserve(url, self._connection, within=within)
        if wait:
            self._record.postpone(wait)
            raise VisitOver

    def _is_brief(self) -> bool:
        """Whether to be impatient with a domain of which nothing is known.

        Slots are short, or no connection was made over https in time, and http is tried.
        """
        pace, answers = self._record.lease.pace, self._record.answers
        if pace.answered or pace.failures or answers.has_answered:
            return False
        return answers.failure is FailureKind.TIMEOUT_CONNECT or self._context.silence.are_many

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
