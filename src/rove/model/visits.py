"""A lease, and the result of the visit that is made with it."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence

import msgspec

from rove.model.ledger import Content, DelaySource, RequestRow
from rove.model.reasons import NoRequestReason
from rove.model.skipped import SkippedLink
from rove.model.struct import Record
from rove.model.urls import PendingUrl, UrlState


class Pace(Record, frozen=True, kw_only=True, gc=False):
    """How often a domain may be visited, judged by its responses; saved with the domain."""

    backoff: float = 0.0
    """Seconds between visits because of 429 and 503 responses, 0 if there is no back-off."""
    failures: int = 0
    """Consecutive visits without a response."""
    repeats: float = 0.0
    """Share of the latest pages whose text the domain had given before."""
    answered: bool = False
    """Whether the domain has ever responded in this crawl."""

    @property
    def is_responding(self) -> bool:
        """Whether the domain responded to its last visit."""
        return self.answered and not self.failures


class Lease(Record, frozen=True, kw_only=True, gc=False):
    """The right to visit one domain once, and its next URLs.

    All parts of a visit are Structs, because most visits create all of them and a Struct takes a fifth of the time of a
    dataclass. None of them can be part of a cycle, so the garbage collector need not track them.
    """

    domain: int
    name: str
    token: int
    """Fencing token: a settle counts only while the domain still carries it. It is also the number of the visit."""
    crawl_delay: float
    """The longest Crawl-delay known for the domain, 0 if there is none."""
    urls: Sequence[PendingUrl]
    pace: Pace = Pace()
    claimed_ms: int = 0
    """When the domain was claimed, by the crawl's clock."""
    rested: float = math.inf
    """Seconds between the end of the delay after the last visit and the claim; infinite before the first visit."""


class Settled(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A URL that leaves pending."""

    fingerprint: int
    state: UrlState
    reason: str = ""


class Deferred(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A URL that stays pending, behind all others, and is not due for a while."""

    fingerprint: int
    seconds: float
    attempts: int
    failing: bool
    """The URL waits for an origin that keeps failing. A crawl does not stay up for it."""
    reason: str = ""
    """Why the last attempt failed; '' if this one was not a new attempt."""


class VisitResult(Record, frozen=True, kw_only=True, gc=False):
    """The result of one visit, for the frontier to settle."""

    lease: Lease
    requested: bool
    """Whether a request was sent, so that the domain's delay applies."""
    since_finish: float
    """Seconds from the end of the last request to now."""
    settled: Sequence[Settled] = ()
    deferred: Sequence[Deferred] = ()
    requests: Sequence[RequestRow] = ()
    not_accepted: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Links that may not enter the frontier, counted by reason."""
    skipped: Sequence[SkippedLink] = ()
    """Links that were not taken, as examples."""
    pace: Pace = Pace()
    pause: float = 0.0
    """Seconds to leave the domain alone after the visit, because its responses ask for it; after a visit without a
    request, because there was no room at its address."""
    pause_from: DelaySource = DelaySource.DELAY
    contents: Sequence[Content] = ()
    """Locations of page texts that the frontier does not know yet."""

    @property
    def no_request_reason(self) -> NoRequestReason | None:
        """Why no request was made; None if one was."""
        if self.requested:
            return None
        if self.pause:
            return NoRequestReason.NO_ROOM
        if self.settled:
            return NoRequestReason.BLOCKED
        return NoRequestReason.DEFERRED if self.deferred else NoRequestReason.GIVEN_BACK


class RobotsStatus(enum.StrEnum):
    """The result of the last request for a robots.txt."""

    RULES = "rules"
    NONE = "none"
    UNREACHABLE = "unreachable"
    NOT_KEPT = "not kept"
    """It was read, but its domain has stored too many texts. It is read again before the next page."""


class OriginRecord(Record, frozen=True, kw_only=True, gc=False):
    """The robots.txt of one origin, and for how long it is valid."""

    domain: int
    origin: str
    status: RobotsStatus
    body: bytes = b""
    crawl_delay: float = 0.0
    failures: int = 0
    """How many requests for it in a row have failed."""
    valid_for: float
    """Seconds from now for which this record is valid; 0 or less if it has expired."""
    age: float = 0.0
    """Seconds since it was fetched."""
    source: str = ""
    """The URL that returned the body, at the end of the redirects; '' if there is no body."""
    etag: str = ""
    last_modified: str = ""
    hops: int = 0
    """Redirects that led to the answer, over all domains."""
    waits_for: str = ""
    """The robots.txt of another domain that decides about this origin and is not known; '' if there is none."""
