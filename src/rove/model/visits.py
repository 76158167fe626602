"""A lease, the visit made with it, and the result that the frontier settles."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

import msgspec

from rove.model.ledger import Content, DelaySource, RequestRow
from rove.model.reasons import NoRequestReason
from rove.model.struct import Record
from rove.model.urls import PendingUrl, UrlState


class Pace(Record, frozen=True, kw_only=True, gc=False):
    """What a domain's answers have taught about how often it may be asked; kept with it."""

    backoff: float = 0.0
    """Seconds between visits that its 429 and 503 answers have led to, 0 if none."""
    failures: int = 0
    """Visits in a row that brought no answer at all."""
    repeats: float = 0.0
    """The share of its latest pages whose text it had given before."""


class Lease(Record, frozen=True, kw_only=True, gc=False):
    """The right to visit one domain once, and the next URLs to visit there.

    A Struct, as are all the parts of a visit: it takes a fifth of the time that a dataclass takes to make, and most
    visits make all of them. None can be part of a cycle, and the garbage collector leaves them alone.
    """

    domain: int
    name: str
    token: int
    """Fencing: a settle counts only while the domain still carries it. Also the number of the visit."""
    crawl_delay: float
    """The longest Crawl-delay known for the domain, 0 if none."""
    urls: Sequence[PendingUrl]
    pace: Pace = Pace()
    claimed_ms: int = 0
    """When it was leased, by the crawl's clock."""
    deadline: float = 0.0
    """By the process's own steady clock: nothing may be asked after it."""
    clock_offset: float = 0.0
    """Seconds that the crawl's clock is ahead of the process's steady clock."""


class Settled(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A URL of the visit that leaves pending."""

    fingerprint: int
    state: UrlState
    reason: str = ""


class Deferred(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A URL of the visit that stays pending, behind all others, for at least so many seconds."""

    fingerprint: int
    seconds: float
    attempts: int
    failing: bool
    """It waits for an origin that keeps failing: a crawl does not stay up for it."""


class VisitResult(Record, frozen=True, kw_only=True, gc=False):
    """What one lease came to; the frontier's settle takes these."""

    lease: Lease
    asked: bool
    """A request was sent: the domain's delay is due."""
    since_finish: float
    """Seconds from the end of the last request to now, by the crawl's steady clock."""
    settled: Sequence[Settled] = ()
    deferred: Sequence[Deferred] = ()
    requests: Sequence[RequestRow] = ()
    not_accepted: Mapping[str, int] = msgspec.field(default_factory=dict)
    """URLs that were met and not offered to the frontier, by reason."""
    pace: Pace = Pace()
    """What is kept of how the domain answers."""
    pause: float = 0.0
    """Seconds after its end for which the visit itself gives reason to leave the domain alone."""
    pause_from: DelaySource = DelaySource.DELAY
    contents: Sequence[Content] = ()
    """Where the texts of its pages lie that the frontier did not know of."""

    @property
    def unasked_because(self) -> NoRequestReason | None:
        """Why no request was made; None if one was."""
        if self.asked:
            return None
        if self.settled:
            return NoRequestReason.BLOCKED
        return NoRequestReason.DEFERRED if self.deferred else NoRequestReason.GIVEN_BACK


class RobotsStatus(enum.StrEnum):
    """What asking for a robots.txt came to."""

    RULES = "rules"
    NONE = "none"
    UNREACHABLE = "unreachable"


class OriginRecord(Record, frozen=True, kw_only=True, gc=False):
    """The robots.txt of one origin, and how it fares."""

    domain: int
    origin: str
    status: RobotsStatus
    body: bytes = b""
    crawl_delay: float = 0.0
    failures: int = 0
    """How often in a row it could not be had."""
    valid_for: float
    """Seconds from now for which this record holds; not above 0 means: ask again."""
    age: float = 0.0
    """Seconds since it was asked for."""
    source: str = ""
    """The URL that gave the body, where redirects led; '' if there is no body."""
    etag: str = ""
    last_modified: str = ""
