"""Records what happens in one visit as it happens, so that it can be written whatever ends the visit."""

from __future__ import annotations

import sys
import time
from collections import Counter

import msgspec

from rove.model.ledger import Content, RequestKind, RequestRow, Settlement
from rove.model.outcomes import Failed, FailureKind, Fetched, Outcome, Redirected, Refused, WrongType
from rove.model.reasons import RequestError, status_error
from rove.model.urls import NewUrl, UrlState
from rove.model.visits import Deferred, Lease, OriginRecord, RobotsStatus, Settled, VisitResult
from rove.policy.pacing import Answers, PacingDecision, decide_pacing
from rove.resources.memory import Share
from rove.store.contract import Page, Stored
from rove.urls.canonical import CrawlUrl
from rove.urls.fingerprint import fingerprint_bytes

LINK_BYTES = 320
"""Memory that a link takes while it waits to be added."""


class HeldLease(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A lease, and what this process needs to use it."""

    lease: Lease
    deadline: float
    """No request starts after this, by the process's steady clock."""
    clock_offset: float = 0.0
    """Seconds by which the crawl's clock is ahead of the process's steady clock."""
    origins: dict[str, OriginRecord | None]
    """The robots.txt records of the origins of the lease's URLs, None where the frontier has none."""


class VisitRecord:
    """The record of one visit."""

    __slots__ = (
        *("held", "lease", "share", "requests", "pages", "links", "wanted_robots", "settled", "deferred"),
        *("not_accepted", "answers", "finished_at", "requesting_host", "contents"),
        *("_origins", "_page_rows"),
    )

    def __init__(self, held: HeldLease, share: Share | None = None) -> None:
        """`share`: the visit's part of the process's memory; None if its memory is not accounted for."""
        self.held = held
        self.lease = held.lease
        self.share = share
        self.requests: list[RequestRow] = []
        self.pages: list[Page] = []
        self.links: list[NewUrl] = []
        """URLs to add to the frontier."""
        self.wanted_robots: list[NewUrl] = []
        """Robots.txt files of other domains that decide about origins of this one and are not known."""
        self.settled: dict[int, Settled] = {}
        """URLs that leave pending, by fingerprint."""
        self.deferred: dict[int, Deferred] = {}
        """URLs that stay pending for a while, by fingerprint."""
        self.not_accepted: Counter[str] = Counter()
        """Links that may not enter the frontier, counted by reason."""
        self.answers = Answers()
        self.finished_at = 0.0
        """End of the last request, by the process's steady clock."""
        self.requesting_host = ""
        """Host of the request in flight, '' if there is none."""
        self.contents: list[Content] = []
        """Locations of texts that the frontier does not know yet."""
        self._origins: list[tuple[OriginRecord, float]] = []
        self._page_rows: list[int] = []

    @property
    def requested(self) -> bool:
        """Whether the visit made a request."""
        return bool(self.requests)

    def begin_request(self, url: CrawlUrl, kind: RequestKind, *, now: float) -> RequestRow:
        """Return the row of a request that is about to be sent. It counts as lost until it has ended."""
        self.requesting_host = url.host
        began = self._crawl_ms(now)
        return RequestRow(
            visit=self.lease.token,
            seq=len(self.requests),
            domain=self.lease.domain,
            kind=kind,
            url=url.text,
            fingerprint=url.fingerprint,
            started=time.time(),
            began=began,
            ended=began,
            error=RequestError.LOST,
        )

    def end_request(self, row: RequestRow, outcome: Outcome, *, now: float) -> RequestRow:
        """Record the outcome of a request; `now` is by the process's steady clock."""
        self.requesting_host = ""
        self.finished_at = now
        ended = max(row.began, self._crawl_ms(now))
        self.answers.note(outcome, (ended - row.began) / 1000)
        row = _with_outcome(row, outcome, ended)
        self.requests.append(row)
        return row

    def _crawl_ms(self, now: float) -> int:
        """Convert a time of the process's steady clock to milliseconds of the crawl's clock."""
        return int((now + self.held.clock_offset) * 1000)

    def note_robots(self, origin: OriginRecord) -> None:
        """Record with the last request which robots.txt is in force after it."""
        if origin.status is RobotsStatus.RULES:
            content_hash = fingerprint_bytes(origin.body)
            self.requests[-1] = self.requests[-1].replace(content_hash=content_hash)

    def note_origin(self, origin: OriginRecord) -> None:
        """Record a robots.txt record to be saved; the last request brought it."""
        self._origins.append((origin, self.finished_at))

    def origins(self, now: float) -> list[OriginRecord]:
        """Return the robots.txt records to be saved, with the validity that is left now."""
        return [origin.replace(valid_for=origin.valid_for - (now - at)) for origin, at in self._origins]

    def note_unread(self, kind: FailureKind) -> None:
        """Record that the response to the last request could not be read."""
        self.requests[-1] = self.requests[-1].replace(error=kind)

    def note_page(self, page: Page, *, title: str, content_hash: int) -> None:
        """Record a page to be stored; the last request brought it."""
        self.pages.append(page)
        self._page_rows.append(len(self.requests) - 1)
        self.requests[-1] = self.requests[-1].replace(title=title, content_hash=content_hash)

    def mark(self, *names: str) -> None:
        """Record what was cut, dropped or doubtful about the response to the last request."""
        if not names:
            return
        row = self.requests[-1]
        marks = dict.fromkeys((*row.marks, *names))
        self.requests[-1] = row.replace(marks=tuple(marks))

    def note_stored(self, stored: list[Stored]) -> None:
        """Record where the pages are stored, in the order of `pages`."""
        for index, where in zip(self._page_rows, stored, strict=True):
            self.requests[index] = self.requests[index].replace(text=where.text, raw=where.raw, is_copy=where.is_copy)

    def note_text(self, *, is_repeat: bool, content: Content | None) -> None:
        """Record whether the domain repeated a text, and where the text is if the frontier must be told."""
        self.answers.texts.append(is_repeat)
        if content is not None:
            self.contents.append(content)

    def note_body(self, fetched: Fetched) -> None:
        """Account for a decoded body that waits to be read."""
        if self.share is not None:
            self.share.keep(_body_bytes(fetched))

    def update_memory(self) -> None:
        """Account for the pages and links that are held until the visit is written."""
        if self.share is not None:
            pages = sum(sys.getsizeof(page.text) + _body_bytes(page.source) for page in self.pages)
            self.share.keep(LINK_BYTES * len(self.links) + pages)

    def release(self) -> None:
        """Free the memory of a visit that is written."""
        self.pages.clear()
        self.links.clear()
        self.update_memory()

    def settle(self, fingerprint: int, state: UrlState, reason: str = "") -> None:
        """Record that a URL leaves pending."""
        self.settled[fingerprint] = Settled(fingerprint=fingerprint, state=state, reason=reason)

    def defer(self, fingerprint: int, seconds: float, *, attempts: int, failing: bool, reason: str = "") -> None:
        """Record that a URL stays pending and is not due for a while."""
        self.deferred[fingerprint] = Deferred(
            fingerprint=fingerprint, seconds=seconds, attempts=attempts, failing=failing, reason=reason
        )

    def pacing(self, delay: float) -> PacingDecision:
        """Decide from the responses so far how long to leave the domain alone; `delay` is the chosen delay."""
        return decide_pacing(self.answers, self.lease.pace, max(delay, self.lease.crawl_delay))

    def result(self, now: float, delay: float) -> VisitResult:
        """Return the visit as the frontier settles it; `now` is by the process's steady clock."""
        pacing = self.pacing(delay)
        return VisitResult(
            lease=self.lease,
            requested=self.requested,
            since_finish=now - self.finished_at if self.requested else 0.0,
            settled=tuple(self.settled.values()),
            deferred=tuple(self.deferred.values()),
            requests=tuple(self.requests),
            not_accepted=dict(self.not_accepted),
            pace=pacing.pace,
            pause=pacing.pause,
            pause_from=pacing.reason,
            contents=tuple(self.contents),
        )

    def requests_only(self, now: float, delay: float) -> VisitResult:
        """Return a result that settles no URL, for a visit whose pages could not be written."""
        requests = [row.replace(settlement=Settlement.LOST) for row in self.requests]
        return self.result(now, delay).replace(settled=(), deferred=(), requests=requests, not_accepted={}, contents=())


def _body_bytes(fetched: Fetched | None) -> int:
    if fetched is None:
        return 0
    is_coded = fetched.body is not fetched.wire_body
    return len(fetched.body) + (len(fetched.wire_body) if is_coded else 0)


def _with_outcome(row: RequestRow, outcome: Outcome, ended: int) -> RequestRow:
    if isinstance(outcome, Failed):
        return row.replace(
            ended=ended, status=outcome.status, error=outcome.kind.value, address=outcome.address, marks=outcome.marks
        )
    response = outcome.response
    row = row.replace(
        ended=ended,
        status=response.status,
        error="",
        address=response.address,
        marks=response.marks,
        media_type="" if isinstance(outcome, Redirected) else response.media_type,
        size=len(outcome.wire_body) if isinstance(outcome, Fetched) else 0,
    )
    match outcome:
        case Fetched(truncated=truncated):
            return row.replace(truncated=True) if truncated else row
        case Redirected(location=location):
            return row.replace(target=location)
        case Refused():
            return row.replace(error=status_error(response.status))
        case WrongType():
            return row.replace(error=RequestError.WRONG_TYPE)
