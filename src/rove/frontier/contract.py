"""What the crawl asks of a frontier: claim, settle, add, and what goes with them.

A domain is the queue head, the politeness clock and the lease in one; URLs are never claimed. Every verb
takes a batch. Durations go in, never times: the frontier's own clock turns them into times, so that all
processes agree. Every backend passes the same tests (tests/contract).
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rove.model.ledger import (
    Content,
    Counts,
    Location,
    RequestRow,
)
from rove.model.urls import NewUrl, PendingUrl, UrlState
from rove.model.visits import (
    Lease,
    OriginRecord,
    Pace,
    VisitResult,
)
from rove.policy.budget import DomainBudget

MAX_UNSETTLED = 3
"""Claims of a domain without a settle after which its head URL is taken to kill the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a crawl asks of its frontier for as long as it runs."""

    delay: float
    """Least seconds between two visits to a domain."""
    budget: float
    """Seconds that a visit may take, from its claim on."""
    max_pages_per_domain: int | None = None
    limits_epoch: int = 0
    """Rises when limits are given anew: pages per domain count from there."""
    horizon: float = math.inf
    """Seconds that the crawl is reckoned to go on for: what bounds the URLs that a domain may have pending."""

    @property
    def domain_budget(self) -> DomainBudget:
        """What the crawl has for each domain."""
        return DomainBudget(
            horizon=self.horizon, delay=self.delay, max_pages=self.max_pages_per_domain
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What became of URLs that were offered."""

    unseen: int = 0
    """So many were not known, and are in the frontier now."""
    refused: frozenset[int] = frozenset()
    """Fingerprints: of those for which there was no room, and of those that had to make room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedSource:
    """A file of seeds and how far it has been loaded."""

    id: int
    path: str
    """Relative to the data directory."""
    name: str
    """What the user called it."""
    offset: int = 0
    lines: int = 0
    good: int = 0
    bad: int = 0
    finished: bool = False
    is_here: bool = True
    """The copy of the file is in this machine's data directory."""
    is_abandoned: bool = False
    """It is on a machine that does not take part any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """What a process says of itself, now and again."""

    pages: int = 0
    """Stored since it began."""
    pages_per_second: float = 0.0
    in_flight: int = 0
    is_leaving: bool = False
    """It ends in good order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlRecord:
    """What the frontier knows of one URL."""

    domain: int
    fingerprint: int
    url: str
    state: UrlState
    depth: int
    attempts: int
    reason: str
    visit: int | None
    """The visit that settled it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainRecord:
    """What the frontier knows of one domain."""

    id: int
    name: str
    ready_in: float | None
    """Seconds until it is due, below 0 if it is overdue; None: nothing to claim."""
    free_in: float
    """Seconds until its delay has passed, below 0 if it has."""
    crawl_delay: float
    pace: Pace
    pending: int
    is_leased: bool
    is_excluded: bool
    is_capped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """Something never to be touched, or not for a while."""

    pattern: str
    at: int
    """Milliseconds of the crawl's clock; 0: before any request."""
    wall: float
    """Wall-clock seconds since the epoch, for people."""
    who: str
    reason: str
    lifted_at: int | None = None
    """Until when it held, None if it still does."""
    lifted_wall: float = 0.0
    lifted_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostVisit:
    """What is left of a visit whose process was killed."""

    domain: int
    visit: int
    rows: Sequence[RequestRow]
    earliest: int = 0
    """When the domain may be visited again, by what it had answered, in milliseconds of the crawl's clock."""
    robots: Sequence[bytes] = ()
    """The texts of robots.txt that it had read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedContent:
    """A text that a purge has moved on its machine."""

    hash: int
    old: Location
    new: Location
    heir: tuple[int, int] | None = None
    """The domain and the visit of the page that its record names from now on; None: the same as before."""


class Frontier(Protocol):
    """The queue of a crawl, as one process of it sees it."""

    @property
    def process(self) -> int:
        """The number of this process, which owns its leases."""

    @property
    def outages(self) -> int:
        """How often the database was lost and found again."""

    async def claim(self, limit: int) -> list[Lease]:
        """Lease up to so many due domains, longest overdue first, each with its first URLs.

        Every second claim takes domains that were never leased before all others, so that they have a head start and
        nobody starves.
        """

    async def more(self, lease: Lease, after: PendingUrl, limit: int) -> list[PendingUrl]:
        """Further due URLs of a leased domain, behind the one given."""

    async def settle(self, visits: Sequence[VisitResult]) -> int:
        """End leases whose token still counts; return how many did. May be repeated."""

    async def add(
        self,
        urls: Sequence[NewUrl],
        *,
        only_known_domains: bool = False,
        kept: Collection[int] = (),
    ) -> Added:
        """Insert the unseen ones and wake their domains.

        Of the same URL twice in a batch, the shallower counts. A domain keeps no more than there is room for
        (policy/budget.py): its worst URLs, the deepest and of those the latest, are taken out again, new or old, and
        counted. Not so seeds and what is as near (depth 0), sitemaps, URLs to be tried again, and those of `kept`,
        by fingerprint: a visit has fetched them and is settled next. One that was taken out is unknown from then on.
        """

    async def known_contents(self, hashes: Iterable[int]) -> dict[int, Content]:
        """Where those of the texts lie that are stored."""

    async def states(self, keys: Sequence[tuple[int, int]]) -> dict[tuple[int, int], UrlState]:
        """The states of those of the (domain, fingerprint) pairs that are known."""

    async def origins(self, keys: Iterable[tuple[int, str]]) -> list[OriginRecord]:
        """The robots.txt records held for these (domain, origin) pairs."""

    async def put_origins(self, records: Sequence[OriginRecord]) -> None:
        """Keep robots.txt records, and lengthen the delay of their leased domains where they ask for it."""

    async def exclude(self, domains: Mapping[int, str]) -> int:
        """Never lease these domains; what they have pending is settled as blocked; return how many URLs that were."""

    async def include(self, domains: Sequence[int]) -> None:
        """Let domains be leased again that were excluded."""

    async def withdraw(
        self,
        domain: int,
        state: UrlState,
        reason: str,
        matching: Callable[[str], bool],
        *,
        after: int | None = None,
    ) -> int:
        """Settle what a domain has pending, as far as the URLs match, without a visit; return how many.

        `after`: only while this is the last visit that the domain was leased for.
        """

    async def reopen(self, domain: int, matching: Callable[[str], bool]) -> int:
        """Make URLs of a domain pending again that an exclusion had blocked, as far as they match; return how many."""

    async def domain_names(self, after: int, limit: int) -> list[tuple[int, str]]:
        """Ids and names of all domains, by id, in slices."""

    async def record_lost(self, visits: Sequence[LostVisit]) -> None:
        """Enter requests into the ledger that nobody has settled, and keep to what their answers asked for."""

    async def count(self, deltas: Mapping[str, int]) -> None:
        """Add to kept counters."""

    async def next_due(self) -> float | None:
        """Seconds until a domain worth waiting for is due (0: now); None when the crawl is exhausted."""

    async def pages(self) -> int:
        """How many pages the crawl has stored, over all processes."""

    async def recover(self, processes: Sequence[int] | None = None) -> int:
        """Cut the leases that dead processes left behind; return how many.

        Without numbers: of all others that this machine ever had.
        """

    async def note_alive(self, vitals: Vitals) -> None:
        """Note that this process is still going: time spent waiting counts as well."""

    async def counts(self) -> Counts:
        """The kept counters."""

    def stop_waiting(self, seconds: float) -> None:
        """From now on do not wait longer than this for a database that is away."""


class Catalog(Protocol):
    """What a crawl remembers of itself: its settings, its seed files."""

    async def settings(self) -> str | None:
        """The settings last saved, None for a frontier that holds no crawl yet."""

    async def identity(self) -> str:
        """What tells this crawl from every other, even one of the same name; '' where there can be only one."""

    async def revision(self) -> int:
        """A number that rises when settings change."""

    async def save(self, settings: str, seeds: SeedSource | None) -> None:
        """Save the settings and, with them or not at all, one more seed file."""

    async def exclusions(self) -> list[str]:
        """The domains and hosts never to be touched."""

    async def exclusions_revision(self) -> int:
        """A number that rises when exclusions are added or lifted."""

    async def exclusion_history(self) -> list[Exclusion]:
        """All exclusions that there ever were, in the order in which they came."""

    async def add_exclusions(self, patterns: Sequence[str], *, who: str, reason: str) -> list[str]:
        """Keep more of them; return those that are new."""

    async def lift_exclusions(self, patterns: Sequence[str], *, who: str) -> list[str]:
        """Let these hold no longer; return those that did."""

    async def seed_sources(self) -> list[SeedSource]:
        """All seed files, in the order they were given."""

    async def save_progress(self, source: SeedSource) -> None:
        """Note how far a seed file has been loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One start of a crawl."""

    id: int
    started: float
    """Wall-clock seconds since the epoch."""
    begin: float
    """Seconds of the crawl's clock."""
    end: float
    """Likewise; as far as it is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A data directory, as it is known to the others that take part in a crawl."""

    key: str
    """Stays the same, whatever becomes of host and path."""
    host: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Participant:
    """One process that takes part in a crawl, or did."""

    place: str
    """Its machine and data directory."""
    is_here: bool
    process: int
    pid: int
    has_left: bool
    pages: int
    pages_per_second: float
    in_flight: int
    since: float
    """Seconds since it began."""
    silent_for: float
    """Seconds since its last sign of life."""


class FrontierReader(Protocol):
    """What the inspecting commands read, while a crawl runs or afterwards."""

    async def counts(self) -> Counts:
        """The kept counters."""

    async def runs(self) -> list[Run]:
        """All starts of this crawl, on whatever machine."""

    async def participants(self) -> list[Participant]:
        """All processes that ever took part, in the order in which they came."""

    async def url(self, domain: int, fingerprint: int) -> UrlRecord | None:
        """One URL."""

    async def domain(self, id: int) -> DomainRecord | None:
        """One domain."""

    async def origins(self, keys: Iterable[tuple[int, str]]) -> list[OriginRecord]:
        """The robots.txt records held for these (domain, origin) pairs."""

    async def robots_text(self, hash: int) -> bytes | None:
        """A robots.txt that the ledger names."""

    async def contents(self, hashes: Iterable[int]) -> dict[int, Content]:
        """Where those of the texts lie that are stored, and on which machine."""

    def copies(self, hash: int) -> AsyncIterator[RequestRow]:
        """The pages that have no text of their own but this one."""

    def pages(
        self, *, domain: int | None = None, status: int | None = None
    ) -> AsyncIterator[RequestRow]:
        """Requests for pages, newest first; of one domain, oldest first."""

    def visits(self, domain: int) -> AsyncIterator[RequestRow]:
        """All requests of all visits to a domain, in order."""

    def elsewhere(self, domain: int) -> AsyncIterator[RequestRow]:
        """Requests to a domain in visits to others, whose robots.txt led there."""

    def ledger(self) -> AsyncIterator[RequestRow]:
        """All requests there ever were, domain by domain, in order."""

    async def requests(self, visit: int) -> list[RequestRow]:
        """All requests of one visit, in order."""


class Backend(Protocol):
    """A database that holds a crawl: where its frontier, its settings and its records come from."""

    @property
    def catalog(self) -> Catalog:
        """What the crawl remembers of itself."""

    @property
    def reader(self) -> FrontierReader:
        """What the crawl has done."""

    @property
    def place(self) -> str:
        """Where the crawl is, for people."""

    async def exists(self) -> bool:
        """Whether there is anything here yet."""

    async def open(self, *, create: bool = False) -> None:
        """Connect; make what is missing if asked to."""

    async def begin_run(self) -> int:
        """Note one more start of the crawl; return its number."""

    async def begin(self, policy: Policy, run: int | None) -> Frontier:
        """Take part in a run with one more process; without a run, only look after the frontier, and claim nothing."""

    async def place_again(self, rows: Sequence[RequestRow]) -> None:
        """Note for requests that are in the ledger where their pages are now."""

    async def place_contents(self, moved: Sequence[MovedContent]) -> None:
        """Note where texts are now that this machine had; a text that is elsewhere by now stays there."""

    async def forget_contents(self, places: Sequence[tuple[int, Location]]) -> None:
        """Let nobody refer any more to these texts of this machine, by hash and place."""

    async def close(self) -> None:
        """Finish what was begun and close."""


def crawled_seconds(runs: Iterable[Run]) -> float:
    """How long the crawl has been running on any machine: runs that overlap count once."""
    total, reached = 0.0, float("-inf")
    for run in sorted(runs, key=lambda run: run.begin):
        total += max(0.0, run.end - max(run.begin, reached))
        reached = max(reached, run.end)
    return total
