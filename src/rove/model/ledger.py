"""The rows of the ledger: one for every request, with the location of its page."""

from __future__ import annotations

import enum

import msgspec

from rove.model.languages import Language
from rove.model.struct import Record


class RequestKind(enum.StrEnum):
    """The kind of document that was requested."""

    PAGE = "page"
    ROBOTS = "robots"
    SITEMAP = "sitemap"


class DelaySource(enum.StrEnum):
    """The reason for the delay after a visit."""

    DELAY = "delay"
    """The delay that the operator chose."""
    CRAWL_DELAY = "crawl-delay"
    RETRY_AFTER = "retry-after"
    BACKOFF = "backoff"
    """The domain responded with 429 or 503 without a Retry-After, or with a bot wall."""
    SLOW = "slow"
    """Ten times its last response time."""
    EXPENSIVE = "expensive"
    """Its last page was so large that reading it took much CPU time."""
    FAILURES = "failures"
    """Several visits in a row got no response."""
    REPEATS = "repeats"
    """Its pages keep repeating texts that were stored already."""
    SPREAD = "spread"
    """Many domains were visited for the first time at once, and would all be due again at once."""


class Settlement(enum.StrEnum):
    """Whether the results of the visit that a request belongs to count."""

    SETTLED = ""
    LATE = "late"
    """The lease had expired, or the domain was excluded during the visit. Its results do not count."""
    LOST = "lost"
    """The results are lost: the process was killed before the settle, or they could not be written."""
    OFFLINE = "offline"
    """No site responded at that time, so the visit says nothing about the domain. Its results do not count."""


class Location(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The location of a stored record: a WARC file, and the compressed member in it."""

    file: str
    offset: int
    length: int


class Content(Record, frozen=True, kw_only=True):
    """A text that is stored once for all pages that have it. A Struct, because most pages make one."""

    hash: int
    """`content_hash` in the ledger."""
    sha1_64: int
    """64 bits of the SHA-1 of its stored block. Texts that agree in both hashes are taken to be the same."""
    domain: int
    """The domain of the page that the stored record names."""
    visit: int
    """The visit that fetched that page."""
    where: Location
    url: str
    """The URL of that page."""
    fetched_at: float
    """When that page was requested, in wall-clock seconds since the epoch."""
    node: str = ""
    """Host and data directory of the node that stores it; '' for this one, and where the node was not read."""


class RequestRow(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One request in the ledger. It is written once and never deleted.

    Only the location and the title of its page may change, when a domain is purged. A Struct, because every step of a
    request makes a new one, and a copy with changes takes 0.25 µs instead of the 12 µs of a dataclass.
    """

    visit: int
    seq: int
    domain: int
    kind: RequestKind
    url: str
    fingerprint: int
    started: float
    """Wall-clock seconds since the epoch, for people. No decision depends on it."""
    began: int
    """When it began, in milliseconds of the crawl's clock, which all machines share."""
    ended: int
    """When it ended, in milliseconds of the crawl's clock; the same as `began` if the end is unknown."""
    address: str = ""
    """The IP address that was requested; '' if no connection was tried."""
    delay: float = 0.0
    """Seconds without a visit to the domain after this one."""
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
    """The hash of the page's text."""
    robots: str = ""
    """For a robots.txt: the name of the text that is in force after this request; '' if there is none."""
    target: str = ""
    title: str = ""
    text: Location | None = None
    raw: Location | None = None
    marks: tuple[str, ...] = ()
    """The names of what was cut, dropped or doubtful about the response."""
    languages: tuple[Language, ...] = ()
    """Of the page's text, the most frequent one first."""
    simhash: int | None = None
    """The SimHash of the page's text. Those of near duplicates differ in few bits."""
    usage: tuple[str, ...] = ()
    """What the site states about the use of the page, such as `train-ai=n` (model.usage.Usage)."""
    usage_from: tuple[str, ...] = ()
    """Where the site states it (model.usage.UsageSource)."""
    purpose: str = ""
    """The purpose for which the page was kept (model.usage.Purpose); '' if the operator did not state any."""
    is_copy: bool = False
    """Its text was stored before. `text` is the location of the record that says so."""
    node: str = ""
    """Host and data directory of the node that stores the page; '' for this one."""

    @property
    def finished(self) -> float:
        """Wall-clock seconds at its end."""
        return self.started + (self.ended - self.began) / 1000
