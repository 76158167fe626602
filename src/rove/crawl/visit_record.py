"""What happened in one visit, noted as it happens, so that it can be written down whatever ends the visit."""

from __future__ import annotations

import sys
import time
from collections import Counter

from rove.model.ledger import (
    Content,
    RequestKind,
    RequestRow,
    Settlement,
)
from rove.model.outcomes import (
    Failed,
    FailureKind,
    Fetched,
    Outcome,
    Redirected,
    Refused,
    WrongType,
)
from rove.model.reasons import RequestError, status_error
from rove.model.urls import NewUrl, UrlState
from rove.model.visits import (
    Deferred,
    Lease,
    OriginRecord,
    RobotsStatus,
    Settled,
    VisitResult,
)
from rove.policy.pacing import Answers, PacingDecision, decide_pacing
from rove.resources.memory import Share
from rove.store.contract import Page, Stored
from rove.urls.canonical import CrawlUrl
from rove.urls.fingerprint import fingerprint_bytes

LINK_BYTES = 320
"""What a link that waits to be added takes."""


class VisitRecord:
    """The notes of one visit."""

    __slots__ = (
        *("lease", "share", "requests", "pages", "links", "settled", "deferred", "not_accepted"),
        *("answers", "finished_at", "host", "contents", "_origins", "_page_rows"),
    )

    def __init__(self, lease: Lease, share: Share | None = None) -> None:
        """`share` is what it may hold of the process's memory; None: nobody keeps an account."""
        self.lease = lease
        self.share = share
        self.requests: list[RequestRow] = []
        self.pages: list[Page] = []
        self.links: list[NewUrl] = []
        self._origins: list[tuple[OriginRecord, float]] = []
        self.settled: dict[int, Settled] = {}
        self.deferred: dict[int, Deferred] = {}
        self.not_accepted: Counter[str] = Counter()
        self.answers = Answers()
        self.finished_at = 0.0
        """Steady-clock seconds at the end of the last request."""
        self.host = ""
        """The host that is being asked, '' while none is."""
        self._page_rows: list[int] = []
        self.contents: list[Content] = []
        """Where texts lie that the frontier is to know of."""

    @property
    def asked(self) -> bool:
        """Whether the domain was asked anything."""
        return bool(self.requests)

    def begin_request(self, url: CrawlUrl, kind: RequestKind, *, now: float) -> RequestRow:
        """The row of a request that is about to be made, as it stands if nothing more is ever heard of it."""
        self.host = url.host
        began = self._crawl_ms(now)
        return RequestRow(
            visit=self.lease.token,
            seq=len(self.requests),
            domain=self.lease.domain,
            other_domain=None if url.domain == self.lease.domain else url.domain,
            kind=kind,
            url=url.text,
            fingerprint=url.fingerprint,
            started=time.time(),
            began=began,
            ended=began,
            error=Settlement.LOST,
        )

    def end_request(self, row: RequestRow, outcome: Outcome, *, now: float) -> RequestRow:
        """Note a request that has ended, and what came of it; `now` is steady-clock seconds."""
        self.host = ""
        self.finished_at = now
        ended = max(row.began, self._crawl_ms(now))
        self.answers.note(outcome, (ended - row.began) / 1000)
        row = _with_outcome(row, outcome, ended)
        self.requests.append(row)
        return row

    def note_copy(self, record: OriginRecord) -> None:
        """Note which copy of a robots.txt is in force after the last request."""
        if record.status is RobotsStatus.RULES:
            copy = fingerprint_bytes(record.body)
            self.requests[-1] = self.requests[-1].replace(content_hash=copy)

    def note_origin(self, record: OriginRecord) -> None:
        """Note a robots.txt record that is to be kept, which the last request brought."""
        self._origins.append((record, self.finished_at))

    def origins(self, now: float) -> list[OriginRecord]:
        """The records to be kept, as they are now."""
        return [
            record.replace(valid_for=record.valid_for - (now - at)) for record, at in self._origins
        ]

    def note_unread(self, kind: FailureKind) -> None:
        """Note that nothing comes of the last request: its answer could not be read to the end."""
        self.requests[-1] = self.requests[-1].replace(error=kind)

    def _crawl_ms(self, now: float) -> int:
        """The crawl's clock at a moment of the process's own."""
        return int((now + self.lease.clock_offset) * 1000)

    def note_page(self, page: Page, *, title: str, content_hash: int) -> None:
        """Note a page to be stored, which the last request brought."""
        self.pages.append(page)
        self._page_rows.append(len(self.requests) - 1)
        self.requests[-1] = self.requests[-1].replace(title=title, content_hash=content_hash)

    def mark(self, *names: str) -> None:
        """Note what was cut, dropped or doubtful about the answer to the last request."""
        if not names:
            return
        row = self.requests[-1]
        marks = dict.fromkeys((*row.marks, *names))
        self.requests[-1] = row.replace(marks=tuple(marks))

    def note_stored(self, stored: list[Stored]) -> None:
        """Note where the pages went, in the order in which they were noted."""
        for index, where in zip(self._page_rows, stored, strict=True):
            self.requests[index] = self.requests[index].replace(
                text=where.text, raw=where.raw, is_copy=where.is_copy
            )

    def note_text(self, *, is_repeat: bool, content: Content | None) -> None:
        """Note whether the domain had given a page's text before, and where it lies if the frontier is to know."""
        self.answers.texts.append(is_repeat)
        if content is not None:
            self.contents.append(content)

    def note_body(self, fetched: Fetched) -> None:
        """Enter into the account of memory a body that waits, decoded, to be read."""
        if self.share is not None:
            is_coded = fetched.body is not fetched.wire_body
            self.share.keep(len(fetched.body) + (len(fetched.wire_body) if is_coded else 0))

    def account(self) -> None:
        """Enter into the account of memory what is kept until the visit is written down."""
        if self.share is not None:
            weight = LINK_BYTES * len(self.links)
            for page in self.pages:
                weight += _weight(page)
            self.share.keep(weight)

    def forget(self) -> None:
        """The visit is written down: nothing of it is needed any more."""
        self.pages.clear()
        self.links.clear()
        self.account()

    def settle(self, fingerprint: int, state: UrlState, reason: str = "") -> None:
        """Note that a URL leaves pending."""
        self.settled[fingerprint] = Settled(fingerprint=fingerprint, state=state, reason=reason)

    def defer(self, fingerprint: int, seconds: float, *, attempts: int, failing: bool) -> None:
        """Note that a URL stays pending for a while."""
        self.deferred[fingerprint] = Deferred(
            fingerprint=fingerprint, seconds=seconds, attempts=attempts, failing=failing
        )

    def result(self, now: float, delay: float) -> VisitResult:
        """The visit as the frontier settles it; `now` is steady-clock seconds, `delay` what the user chose."""
        verdict = self.verdict(delay)
        return VisitResult(
            lease=self.lease,
            asked=self.asked,
            since_finish=now - self.finished_at if self.asked else 0.0,
            settled=tuple(self.settled.values()),
            deferred=tuple(self.deferred.values()),
            requests=tuple(self.requests),
            not_accepted=dict(self.not_accepted),
            pace=verdict.pace,
            pause=verdict.pause,
            pause_from=verdict.reason,
            contents=tuple(self.contents),
        )

    def verdict(self, delay: float) -> PacingDecision:
        """How the domain is to be treated after what it has answered."""
        return decide_pacing(self.answers, self.lease.pace, max(delay, self.lease.crawl_delay))

    def asked_only(self, now: float, delay: float) -> VisitResult:
        """The visit as one that settles no URL: what it found could not be written down."""
        requests = [row.replace(fate=Settlement.LOST) for row in self.requests]
        return self.result(now, delay).replace(
            settled=(),
            deferred=(),
            requests=requests,
            not_accepted={},
            contents=(),
        )


def _weight(page: Page) -> int:
    weight = sys.getsizeof(page.text)
    if page.source is not None:
        weight += len(page.source.wire_body)
        if page.source.body is not page.source.wire_body:
            weight += len(page.source.body)
    return weight


def _with_outcome(row: RequestRow, outcome: Outcome, ended: int) -> RequestRow:
    if isinstance(outcome, Failed):
        return row.replace(
            ended=ended,
            status=outcome.status,
            error=outcome.kind.value,
            address=outcome.address,
            marks=outcome.marks,
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
