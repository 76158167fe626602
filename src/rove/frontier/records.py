"""The records that frontiers take and return."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rove.model.ledger import Location, RequestRow
from rove.model.urls import NewUrl, NotAccepted, UrlState
from rove.model.visits import Pace
from rove.policy.budget import DomainBudget

RESPONDING_LOOKAHEAD = 1_000
"""How many of the next due domains `reach` looks at."""
MAX_WANTED_ROBOTS = 8
"""Robots.txt files of one domain that may be pending for other domains at a time."""
MAX_ROBOTS_BYTES_A_DAY = 4 << 20
"""Compressed bytes of new robots.txt texts that one domain may store within a day: 3 KiB for each of 1,234 visits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The settings of a crawl that its frontier applies."""

    delay: float
    """Minimum seconds between two visits to a domain."""
    budget: float
    """Seconds that a visit may take, from its claim on."""
    page_limit: int | None = None
    """Claims stop when all pages ever stored and all leases reach this number, because each lease may bring a page."""
    max_pages_per_domain: int | None = None
    limits_epoch: int = 0
    """Increases when limits are set again: pages per domain are counted per epoch."""
    horizon: float = math.inf
    """Seconds that the crawl is expected to last. It limits the pending URLs of a domain."""

    @property
    def delay_ms(self) -> int:
        """The minimum delay in milliseconds, rounded up."""
        return math.ceil(self.delay * 1000)

    @property
    def domain_budget(self) -> DomainBudget:
        """The number of pending URLs that a domain may have."""
        return DomainBudget(horizon=self.horizon, delay=self.delay, max_pages=self.max_pages_per_domain)


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The result of an add."""

    unseen: int = 0
    """URLs that were new and are in the frontier now."""
    refused: frozenset[tuple[int, int]] = frozenset()
    """Domain and fingerprint of the URLs that did not fit, and of those that were deleted to make room."""
    made: frozenset[int] = frozenset()
    """Domains that were not in the frontier before."""
    skipped: Sequence[tuple[NotAccepted, NewUrl]] = ()
    """URLs of this add that are not in the frontier now, with the reason."""
    evicted: int = 0
    """URLs that were accepted earlier and were deleted to make room."""

    @property
    def not_accepted(self) -> Counter[str]:
        """How many URLs of this add are not in the frontier, by reason."""
        return Counter(reason.value for reason, _ in self.skipped)


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlRecord:
    """The frontier's record of one URL."""

    domain: int
    fingerprint: int
    url: str
    state: UrlState
    depth: int
    attempts: int
    reason: str
    visit: int | None
    """The visit that settled it."""
    is_seed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainRecord:
    """The frontier's record of one domain."""

    id: int
    name: str
    ready_in: float | None
    """Seconds until it is due, negative if it is overdue; None: nothing to claim."""
    free_in: float
    """Seconds until its delay has passed, negative if it has."""
    crawl_delay: float
    pace: Pace
    pending: int
    is_leased: bool
    is_excluded: bool
    is_capped: bool
    has_urls: bool
    """False: the domain is known only for an exclusion or because others redirect to its robots.txt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How many domains a crawl has, and how many of them it can reach."""

    domains: int
    answered: int
    """Domains that have ever responded."""
    responding: Sequence[int]
    """The domains that responded to their last visit, among the next RESPONDING_LOOKAHEAD due ones; leased ones too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingDomain:
    """A domain with pending URLs that keeps failing. A crawl does not wait for it."""

    name: str
    pending: int
    ready_in: float
    """Seconds until it is tried again, negative if it is overdue."""
    error: str
    """The error of its last request; '' if that succeeded, or if there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """A domain or host that must not be requested, or must not have been for a while."""

    pattern: str
    at: int
    """Milliseconds of the crawl's clock; 0: before any request."""
    wall: float
    """Wall-clock seconds since the epoch, for people."""
    who: str
    reason: str
    lifted_at: int | None = None
    """When it was lifted; None if it is in force."""
    lifted_wall: float = 0.0
    lifted_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """The URL that a process was reading when it died."""

    fingerprint: int
    deaths: int | None = None
    """If this death is evidence: how many such deaths the URL had before. None: it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """What became of a suspect."""

    url: str
    deaths: int
    """Deaths that count as evidence."""
    has_failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LostVisit:
    """What the in-flight log holds of a visit whose process was killed."""

    domain: int
    visit: int
    rows: Sequence[RequestRow]
    earliest: int = 0
    """When the domain may be visited again, given its responses, in milliseconds of the crawl's clock."""
    robots: Sequence[bytes] = ()
    """The robots.txt bodies that it had read."""
    suspect: Suspect | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedContent:
    """A text that a purge has moved on its node."""

    hash: int
    old: Location
    new: Location
    heir: tuple[int, int] | None = None
    """Domain and visit of the page that the record names from now on; None: the same page as before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A data directory that takes part in a crawl."""

    key: str
    """Identifies it even if its host or path changes."""
    host: str
    path: str

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.host}:{self.path}"
