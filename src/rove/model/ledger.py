"""The rows of the ledger: every request that was made, and where its page is stored."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from rove.model.struct import Record
from rove.model.urls import UrlState


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


class Settlement(enum.StrEnum):
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


class Content(Record, frozen=True, kw_only=True):
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
    node: str = ""
    """The machine and data directory that has it, as far as that was asked for; '' is this one."""


class RequestRow(Record, frozen=True, kw_only=True, omit_defaults=True):
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
    settlement: Settlement = Settlement.SETTLED
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
    node: str = ""
    """The machine and data directory that has the page; '' is this one."""

    @property
    def finished(self) -> float:
        """Wall-clock seconds at the end."""
        return self.started + (self.ended - self.began) / 1000


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
