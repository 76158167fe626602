"""What happened in one visit, noted as it happens, so that it can be written down whatever ends the visit."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace

from rove.model import (
    Deferred,
    Failed,
    Fetched,
    Lease,
    NewUrl,
    OriginRecord,
    Outcome,
    Redirected,
    Refused,
    RequestKind,
    RequestRow,
    Settled,
    UrlState,
    VisitResult,
    WrongType,
)
from rove.store.contract import Page, Stored
from rove.url import CrawlUrl


class Journal:
    """The notes of one visit."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.requests: list[RequestRow] = []
        self.pages: list[Page] = []
        self.links: list[NewUrl] = []
        self.origins: list[OriginRecord] = []
        self.settled: dict[int, Settled] = {}
        self.deferred: dict[int, Deferred] = {}
        self.not_accepted: Counter[str] = Counter()
        self.finished_at = 0.0
        """Steady-clock seconds at the end of the last request."""
        self._page_rows: list[int] = []

    @property
    def asked(self) -> bool:
        """Whether the domain was asked anything."""
        return bool(self.requests)

    def note_request(
        self, url: CrawlUrl, kind: RequestKind, outcome: Outcome, *, started: float, now: float
    ) -> None:
        """Note a request that has ended; `started` and `now` are steady-clock seconds."""
        self.finished_at = now
        wall = time.time()
        row = RequestRow(
            visit=self.lease.token,
            seq=len(self.requests),
            domain=url.domain,
            kind=kind,
            url=url.text,
            fingerprint=url.fingerprint,
            started=wall - (now - started),
            finished=wall,
        )
        self.requests.append(_with_outcome(row, outcome))

    def note_page(self, page: Page, *, title: str, content_hash: int) -> None:
        """Note a page to be stored, which the last request brought."""
        self.pages.append(page)
        self._page_rows.append(len(self.requests) - 1)
        self.requests[-1] = replace(self.requests[-1], title=title, content_hash=content_hash)

    def note_stored(self, stored: list[Stored]) -> None:
        """Note where the pages went, in the order in which they were noted."""
        for index, where in zip(self._page_rows, stored, strict=True):
            self.requests[index] = replace(self.requests[index], text=where.text, raw=where.raw)

    def settle(self, fingerprint: int, state: UrlState, reason: str = "") -> None:
        """Note that a URL leaves pending."""
        self.settled[fingerprint] = Settled(fingerprint=fingerprint, state=state, reason=reason)

    def defer(self, fingerprint: int, seconds: float, *, attempts: int, failing: bool) -> None:
        """Note that a URL stays pending for a while."""
        self.deferred[fingerprint] = Deferred(
            fingerprint=fingerprint, seconds=seconds, attempts=attempts, failing=failing
        )

    def result(self, now: float) -> VisitResult:
        """The visit as the frontier settles it; `now` is steady-clock seconds."""
        return VisitResult(
            lease=self.lease,
            asked=self.asked,
            since_finish=now - self.finished_at if self.asked else 0.0,
            settled=tuple(self.settled.values()),
            deferred=tuple(self.deferred.values()),
            requests=tuple(self.requests),
            not_accepted=dict(self.not_accepted),
        )

    def asked_only(self, now: float) -> VisitResult:
        """The visit as one that settles no URL: what it found could not be written down."""
        return VisitResult(
            lease=self.lease,
            asked=self.asked,
            since_finish=now - self.finished_at if self.asked else 0.0,
        )


def _with_outcome(row: RequestRow, outcome: Outcome) -> RequestRow:
    match outcome:
        case Fetched(response=response, wire_body=body, truncated=truncated):
            return replace(
                row,
                status=response.status,
                media_type=response.media_type,
                size=len(body),
                truncated=truncated,
            )
        case Redirected(response=response, location=location):
            return replace(row, status=response.status, target=location)
        case Refused(response=response):
            return replace(
                row,
                status=response.status,
                media_type=response.media_type,
                error=f"status-{response.status}",
            )
        case WrongType(response=response):
            return replace(
                row, status=response.status, media_type=response.media_type, error="wrong-type"
            )
        case Failed(kind=kind, status=status):
            return replace(row, status=status, error=kind.value)
