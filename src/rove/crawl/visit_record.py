"""Records what happens in one visit as it happens, so that it can be written whatever ends the visit."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable

import msgspec

from rove.crawl.skip_sample import SkipSample
from rove.model.ledger import Content, RequestKind, RequestRow, Settlement
from rove.model.marks import Mark
from rove.model.outcomes import Failed, FailureKind, Fetched, Outcome, Redirected, Refused, WrongType
from rove.model.reasons import RequestError, status_error
from rove.model.skipped import SkippedLink
from rove.model.text_hash import robots_name
from rove.model.urls import NewUrl, UrlState
from rove.model.usage import Purpose, Usage
from rove.model.visits import Deferred, Lease, OriginRecord, RobotsStatus, Settled, VisitResult
from rove.parse.html import Document
from rove.policy.gate import Refusal
from rove.policy.pacing import Answers, PacingDecision, decide_pacing
from rove.policy.rules import RuledOut
from rove.resources.memory import Share
from rove.store.contract import Page, Stored
from rove.urls.canonical import CrawlUrl

LINK_BYTES = 320
"""Memory that a link takes while it waits to be added."""
LATE_SECONDS = 5.0
"""A request that ends this long after the deadline of its lease is late."""


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
        *("not_accepted", "skipped", "answers", "request_began", "finished_at", "requesting_host", "contents"),
        *("postponed", "links_found", "_origins", "_page_rows"),
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
        self.links_found = 0
        """Links and redirect targets, whether the frontier takes them or not."""
        self.wanted_robots: list[NewUrl] = []
        """Robots.txt files of other domains that decide about origins of this one and are not known."""
        self.settled: dict[int, Settled] = {}
        """URLs that leave pending, by fingerprint."""
        self.deferred: dict[int, Deferred] = {}
        """URLs that stay pending for a while, by fingerprint."""
        self.not_accepted: Counter[str] = Counter()
        """Links that may not enter the frontier, counted by reason."""
        self.skipped: list[SkippedLink] = []
        """Examples of them."""
        self.answers = Answers()
        self.request_began = 0.0
        """Start of the last request, by the process's steady clock."""
        self.finished_at = 0.0
        """End of the last request, by the process's steady clock."""
        self.requesting_host = ""
        """Host of the request in flight, '' if there is none."""
        self.postponed = 0.0
        """Seconds after which to visit the domain again, if this visit made no request because an address was full."""
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
        self.request_began = now
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

    def margin(self, row: RequestRow) -> float:
        """Return how much longer than required the domain had rested when the first request of the visit began."""
        return self.lease.rested + (row.began - self.lease.claimed_ms) / 1000

    def end_request(self, row: RequestRow, outcome: Outcome, *, now: float) -> RequestRow:
        """Record the outcome of a request; `now` is by the process's steady clock.

        A request that ended after the deadline of its lease is late. Its process was suspended, and the deadline is the
        latest end that the server can have seen.
        """
        self.requesting_host = ""
        self.finished_at = now
        ended = max(row.began, self._crawl_ms(min(now, self.held.deadline)))
        if self.is_late(now):
            row = row.replace(settlement=Settlement.LATE)
        self.answers.note(outcome, (ended - row.began) / 1000)
        row = _with_outcome(row, outcome, ended)
        self.requests.append(row)
        return row

    def is_late(self, now: float) -> bool:
        """Whether the lease has run out. A timeout at the deadline may come a little after it."""
        return now > self.held.deadline + LATE_SECONDS

    def _crawl_ms(self, now: float) -> int:
        """Convert a time of the process's steady clock to milliseconds of the crawl's clock."""
        return int((now + self.held.clock_offset) * 1000)

    def note_robots(self, origin: OriginRecord) -> None:
        """Record with the last request which robots.txt is in force after it."""
        if origin.status is RobotsStatus.RULES:
            self.requests[-1] = self.requests[-1].replace(robots=robots_name(origin.body))

    def note_not_kept(self, names: Collection[str]) -> None:
        """Mark the requests for a robots.txt whose text the frontier did not keep."""
        self.requests = [
            row.replace(marks=tuple(dict.fromkeys((*row.marks, Mark.ROBOTS_NOT_KEPT)))) if row.robots in names else row
            for row in self.requests
        ]

    def note_origin(self, origin: OriginRecord) -> None:
        """Record a robots.txt record to be saved; the last request brought it."""
        self._origins.append((origin, self.finished_at))

    def origins(self, now: float) -> list[OriginRecord]:
        """Return the robots.txt records to be saved, with the validity that is left now."""
        return [origin.replace(valid_for=origin.valid_for - (now - at)) for origin, at in self._origins]

    def note_unread(self, kind: FailureKind) -> None:
        """Record that the response to the last request could not be read."""
        self.requests[-1] = self.requests[-1].replace(error=kind)

    def lose_unfinished(self) -> None:
        """Record that a visit broke off, so that requests without an effect on their URL do not count.

        Their URLs stay pending and will be requested again.
        """
        ended = self.settled.keys() | self.deferred.keys()
        for index, row in enumerate(self.requests):
            is_reason_enough = row.error == FailureKind.ABORTED or row.settlement is not Settlement.SETTLED
            if row.kind is not RequestKind.ROBOTS and row.fingerprint not in ended and not is_reason_enough:
                self.requests[index] = row.replace(settlement=Settlement.LOST)

    def note_challenge(self) -> None:
        """Record that the last request brought a bot wall, which slows the domain down as a 429 does."""
        self.answers.is_overloaded = True
        self.mark(Mark.CHALLENGED)
        if not self.requests[-1].error:
            self.requests[-1] = self.requests[-1].replace(error=RequestError.CHALLENGED)

    def note_usage(self, usage: Usage) -> None:
        """Record what the site states about the use of the page that the last request brought."""
        if usage.values:
            self.requests[-1] = self.requests[-1].replace(usage=usage.values, usage_from=usage.sources)

    def note_page(self, page: Page, document: Document, purpose: Purpose | None, simhash: int | None = None) -> None:
        """Record a page to be stored for a purpose; the last request brought it."""
        self.pages.append(page)
        self._page_rows.append(len(self.requests) - 1)
        self.requests[-1] = self.requests[-1].replace(
            title=document.title,
            content_hash=page.content_hash,
            languages=document.languages,
            simhash=simhash,
            purpose="" if purpose is None else purpose.value,
        )

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

    def refuse(self, links: Iterable[tuple[Refusal, CrawlUrl]], source: CrawlUrl, sample: SkipSample) -> None:
        """Count links that may not enter the frontier, and keep examples; `source` is the page that has them."""
        for refusal, link in links:
            reason = refusal.counter if isinstance(refusal, RuledOut) else refusal.value
            self.not_accepted[reason] += 1
            if sample.chooses(reason, link.fingerprint):
                self.skip(reason, link.domain, link.fingerprint, link.text, page=source.text)

    def skip(self, reason: str, domain: int, fingerprint: int, url: str, *, page: str = "") -> None:
        """Keep a link that was not taken as an example; without a page, the last request brought it."""
        self.skipped.append(
            SkippedLink(
                reason=reason,
                domain=domain,
                fingerprint=fingerprint,
                url=url,
                page=page or (self.requests[-1].url if self.requests else ""),
            )
        )

    def settle(self, fingerprint: int, state: UrlState, reason: str = "") -> None:
        """Record that a URL leaves pending."""
        self.settled[fingerprint] = Settled(fingerprint=fingerprint, state=state, reason=reason)

    def defer(self, fingerprint: int, seconds: float, *, attempts: int, failing: bool, reason: str = "") -> None:
        """Record that a URL stays pending and is not due for a while."""
        self.deferred[fingerprint] = Deferred(
            fingerprint=fingerprint, seconds=seconds, attempts=attempts, failing=failing, reason=reason
        )

    def postpone(self, seconds: float) -> None:
        """Record that the visit ends because there is no room at the address of its next request.

        If it made no request, the domain comes back after this time, as if it had not been due before.
        """
        self.postponed = seconds

    def disregard(self) -> None:
        """Forget what the last requests seem to say about the domain, because no site responded at that time.

        The requests stay, and so does the ordinary delay after them. What came before a response counts.
        """
        self.deferred.clear()
        if self.answers.has_answered:
            self.settled.pop(self.requests[-1].fingerprint, None)
        else:
            self.settled = {f: settled for f, settled in self.settled.items() if settled.state is UrlState.BLOCKED}
            self.links.clear()
            self.links_found = 0
            self.not_accepted.clear()
            self.skipped.clear()
            self._origins.clear()
            self.answers.failure = None
        self.requests = [row if row.status else row.replace(settlement=Settlement.OFFLINE) for row in self.requests]

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
            skipped=tuple(self.skipped),
            pace=pacing.pace,
            pause=pacing.pause if self.requested else self.postponed,
            pause_from=pacing.reason,
            contents=tuple(self.contents),
        )

    def requests_only(self, now: float, delay: float) -> VisitResult:
        """Return a result that settles no URL, for a visit whose pages could not be written."""
        requests = [row.replace(settlement=Settlement.LOST) for row in self.requests]
        return self.result(now, delay).replace(
            settled=(), deferred=(), requests=requests, not_accepted={}, skipped=(), contents=()
        )


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
