"""The records and outcomes that flow through a crawl; every other module speaks in these.

Outcomes are a closed set: a fetch returns one of them, whatever the web did, and callers `match` on it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

MAX_MEDIA_TYPE = 255
"""RFC 6838 4.2: two names of at most 127 characters and a slash; a server may send anything."""


class UrlState(enum.IntEnum):
    """Where a URL stands; the numbers are stored in the frontier."""

    PENDING = 0
    DONE = 1
    BLOCKED = 2
    FAILED = 3
    REDIRECTED = 4
    READ = 5
    """Fetched for the URLs that it lists, not stored: a sitemap."""


class FailureKind(enum.StrEnum):
    """Why a request brought no usable response."""

    DNS_NOT_FOUND = "dns-not-found"
    DNS = "dns"
    ADDRESS_REFUSED = "address-refused"
    PORT_REFUSED = "port-refused"
    CONNECT = "connect"
    TLS = "tls"
    TIMEOUT_CONNECT = "timeout-connect"
    TIMEOUT_FIRST_BYTE = "timeout-first-byte"
    TIMEOUT_TOTAL = "timeout-total"
    TOO_SLOW = "too-slow"
    """The answer began, and then came in by drops."""
    RESET = "reset"
    PROTOCOL = "protocol"
    ENCODING = "encoding"
    ABORTED = "aborted"
    BUSY = "busy"
    """Our own trouble: too many connections of ours to its address, for as long as a request may take (--per-ip), or
    none to be had, as files or ports had run out."""


TEMPORARY_FAILURES = frozenset(
    {
        FailureKind.DNS,
        FailureKind.CONNECT,
        FailureKind.TIMEOUT_CONNECT,
        FailureKind.TIMEOUT_FIRST_BYTE,
        FailureKind.TIMEOUT_TOTAL,
        FailureKind.TOO_SLOW,
        FailureKind.RESET,
        FailureKind.BUSY,
    }
)
UNREACHABLE_FAILURES = frozenset(
    {
        FailureKind.CONNECT,
        FailureKind.TLS,
        FailureKind.TIMEOUT_CONNECT,
        FailureKind.RESET,
        FailureKind.PROTOCOL,
    }
)
"""Failures after which a bare domain of the seeds is tried over http: https is not spoken there."""


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """The head of an answer."""

    url: str
    status: int
    status_line: str
    headers: Sequence[tuple[str, str]]
    """As sent, in order, names in the server's spelling, bytes decoded as latin-1."""
    address: str
    """The address that answered, without the port."""
    waited: float = 0.0
    """Seconds that passed for our sake: before it was asked, for other connections of ours to its address to end, and
    while its body was not taken, for want of memory."""
    marks: tuple[str, ...] = ()
    """What was cut, dropped or doubtful about the answer, by name."""

    def header(self, name: str) -> str | None:
        """The first value of a header, by its lower-case name."""
        for key, value in self.headers:
            if key.lower() == name:
                return value
        return None

    def all_headers(self, name: str) -> list[str]:
        """All values of a header that may be sent several times, by its lower-case name."""
        return [value for key, value in self.headers if key.lower() == name]

    @property
    def media_type(self) -> str:
        """The lower-case media type without parameters, '' when none was sent."""
        sent = (self.header("content-type") or "").partition(";")[0]
        return sent.strip().lower()[:MAX_MEDIA_TYPE]


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """A 2xx answer whose body was read."""

    response: Response
    body: bytes
    """Content decoded."""
    wire_body: bytes
    """As sent, after any transfer coding; the same object as `body` when no content coding was used."""
    truncated: bool
    """The body was longer than the cap and is cut."""


class Redirected(msgspec.Struct, frozen=True, kw_only=True):
    """A 3xx answer with a Location, which is as sent (perhaps relative)."""

    response: Response
    location: str


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """The server's status says no: 4xx, 5xx, or a 3xx that leads nowhere."""

    response: Response


class WrongType(msgspec.Struct, frozen=True, kw_only=True):
    """A 2xx answer of a type that is not read; closed after the headers."""

    response: Response


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """No usable answer."""

    kind: FailureKind
    detail: str
    address: str = ""
    status: int = 0
    """The status, where the failure came after it."""
    marks: tuple[str, ...] = ()
    """What was doubtful about it, by name."""
    waited: float = 0.0
    """As of a Response."""
    shortage: bool = False
    """There was no file, port or buffer for it on this machine."""


Outcome = Fetched | Redirected | Refused | WrongType | Failed


class RequestKind(enum.StrEnum):
    """What a request was made for."""

    PAGE = "page"
    ROBOTS = "robots"
    SITEMAP = "sitemap"


class DelaySource(enum.StrEnum):
    """Why a domain is left alone for as long as it is."""

    DELAY = "delay"
    """What the person who runs the crawl chose."""
    CRAWL_DELAY = "crawl-delay"
    RETRY_AFTER = "retry-after"
    BACKOFF = "backoff"
    """It answered 429 or 503 without saying when to come back."""
    SLOW = "slow"
    """Ten times what its last answer took."""
    FAILURES = "failures"
    """It has not answered several times in a row."""
    REPEATS = "repeats"
    """Its pages keep repeating texts that it has given already."""


class Fate(enum.StrEnum):
    """What became of the visit that a request belonged to."""

    SETTLED = ""
    LATE = "late"
    """Its lease had run out, or its domain was excluded meanwhile: what it found does not count."""
    LOST = "lost"
    """What it found is lost: its process was killed before the visit was settled, or it could not be written."""


class Location(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where a stored record lies: a WARC file's name, and the compressed member in it."""

    file: str
    offset: int
    length: int


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """A text that is stored, once for all pages that have it. A Struct, as most pages make one."""

    hash: int
    """What the ledger calls `content_hash`."""
    checked: int
    """64 bits of another hash of it, which nobody can aim at: two texts that agree in both are the same."""
    domain: int
    """Of the page that its record names."""
    visit: int
    """The visit that brought that page."""
    where: Location
    url: str
    """Of that page."""
    fetched_at: float
    """When that page was asked for, wall-clock seconds since the epoch."""
    place: str = ""
    """The machine and data directory that has it, as far as that was asked for; '' is this one."""

    def but(self, **changes: Any) -> Content:
        """The same with other values."""
        return msgspec.structs.replace(self, **changes)


class RequestRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request in the ledger: written once, never changed, kept for ever.

    Only where its page is stored may change, when a domain is purged. A Struct, as every step of a request makes a new
    one: a copy with changes takes 0.25 µs, of a dataclass 12.
    """

    visit: int
    seq: int
    domain: int
    """The domain of the visit."""
    kind: RequestKind
    url: str
    fingerprint: int
    started: float
    """Wall-clock seconds since the epoch, for people; nothing is decided by it."""
    began: int
    """When it was begun, in milliseconds of the crawl's own clock, which all machines share."""
    ended: int
    """Likewise; the same as `began` where the end is not known."""
    other_domain: int | None = None
    """The domain that was asked, where it is another one: a robots.txt may lead there."""
    address: str = ""
    """The address that was asked, '' where it did not come to that."""
    delay: float = 0.0
    """Seconds that the domain of the visit is left alone after it."""
    delay_from: DelaySource = DelaySource.DELAY
    process: int = 0
    fate: Fate = Fate.SETTLED
    status: int = 0
    error: str = ""
    media_type: str = ""
    size: int = 0
    """Bytes of body received."""
    truncated: bool = False
    content_hash: int | None = None
    """Of the text of a page; of a robots.txt: under which its copy is kept."""
    target: str = ""
    title: str = ""
    text: Location | None = None
    raw: Location | None = None
    marks: tuple[str, ...] = ()
    """What was cut, dropped or doubtful about the answer, by name."""
    is_copy: bool = False
    """Its text was stored before: `text` is where the record that says so lies."""
    place: str = ""
    """The machine and data directory that has the page; '' is this one."""

    def but(self, **changes: Any) -> RequestRow:
        """The same with other values."""
        return msgspec.structs.replace(self, **changes)

    @property
    def finished(self) -> float:
        """Wall-clock seconds at the end."""
        return self.started + (self.ended - self.began) / 1000


class NewUrl(NamedTuple):
    """A URL offered to the frontier. A tuple, as a page makes sixty."""

    domain: int
    domain_name: str
    fingerprint: int
    url: str
    depth: int
    hops: int = 0
    """Redirects that led here since the last page or seed; bounds endless chains."""
    bare: bool = False
    """From a bare domain in the seeds: https is a guess, http will do."""
    sitemap_of: str = ""
    """A sitemap, and the host whose URLs it may list; '' for what is a page."""
    penalty: int = 0
    """How much deeper it counts than it is, as it looks like a trap."""


class PendingUrl(NamedTuple):
    """A URL waiting in a leased domain. A tuple, as a claim brings a thousand."""

    fingerprint: int
    url: str
    depth: int
    hops: int
    attempts: int
    bare: bool
    priority: int
    position: int
    sitemap_of: str = ""


class Pace(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a domain's answers have taught about how often it may be asked; kept with it."""

    backoff: float = 0.0
    """Seconds between visits that its 429 and 503 answers have led to, 0 if none."""
    failures: int = 0
    """Visits in a row that brought no answer at all."""
    repeats: float = 0.0
    """The share of its latest pages whose text it had given before."""

    def but(self, **changes: Any) -> Pace:
        """The same with other values."""
        return msgspec.structs.replace(self, **changes)


class Lease(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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

    def but(self, **changes: Any) -> Lease:
        """The same with other values."""
        return msgspec.structs.replace(self, **changes)


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


class NotAccepted(enum.StrEnum):
    """Why a URL that was met was not taken into the frontier."""

    EXCLUDED = "excluded"
    TOO_DEEP = "too-deep"
    OUT_OF_SCOPE = "out-of-scope"
    REDIRECTS = "too-many-redirects"
    PORT = "port"
    TRAP = "trap"
    BUDGET = "budget"
    """Its domain has more pending than can be visited before the crawl ends."""


class VisitResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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

    def but(self, **changes: Any) -> VisitResult:
        """The same with other values."""
        return msgspec.structs.replace(self, **changes)

    @property
    def unasked_because(self) -> str:
        """Why no request was made; '' if one was."""
        if self.asked:
            return ""
        if self.settled:
            return "blocked"
        return "deferred" if self.deferred else "given-back"


class RobotsStatus(enum.StrEnum):
    """What asking for a robots.txt came to."""

    RULES = "rules"
    NONE = "none"
    UNREACHABLE = "unreachable"


class OriginRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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

    def but(self, **changes: Any) -> OriginRecord:
        """The same with other values."""
        return msgspec.structs.replace(self, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What status shows: kept counters, never a count over URLs."""

    urls: Mapping[UrlState, int]
    domains: Mapping[str, int]
    """By state: idle, waiting, ready, leased, excluded."""
    pages: int
    bytes: int
    requests: int
    not_accepted: Mapping[str, int] = field(default_factory=dict)
    """URLs that were offered and not taken into the frontier, by reason."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """Failed requests by kind."""
    blocked: Mapping[str, int] = field(default_factory=dict)
    """URLs that are blocked, by reason."""
    leases: int = 0
    """Leases that have ended."""
    unasked: Mapping[str, int] = field(default_factory=dict)
    """Those of them that ended without a request, by reason."""
    marks: Mapping[str, int] = field(default_factory=dict)
    """What was cut, dropped or doubtful about answers, by name."""
    copies: int = 0
    """Pages whose text was stored before."""

    @property
    def urls_pending(self) -> int:
        """URLs that wait to be fetched."""
        return self.urls[UrlState.PENDING]
