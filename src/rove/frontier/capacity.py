"""Remembers, within one process, which domains have as many pending URLs as their budget allows.

A URL added to a full domain would be inserted, found to be the worst, and deleted again. So for a while after a domain
was found full, new URLs that are no better than the deleted ones are dropped before they reach the database. The
frontier is correct without this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from rove.frontier.priority import priority_of
from rove.frontier.records import Added
from rove.model.urls import NewUrl, NotAccepted
from rove.policy.budget import DomainBudget
from rove.resources.ttl_cache import TtlCache

MEMORY_SECONDS = 60.0
"""How long a domain is taken to be full. Each visit makes some room."""
MEMORY_DOMAINS = 50_000
FOREIGN_URLS_READ = 64
"""How many foreign URLs of a domain an add reads. If a domain has more, each of its own URLs is looked up instead."""
DOMAINS_PER_SLICE = 500
"""Domains that are trimmed in one transaction when a budget has shrunk."""
FIRST_DOMAIN = -(1 << 63)
"""Every domain has a greater id, except one in 2^64."""


class Raised(NamedTuple):
    """A domain to which URLs were added."""

    id: int
    pending: int
    added: int
    """How many of its pending URLs were added just now."""
    crawl_delay: int
    """In milliseconds."""
    repeats: int
    """Per mille."""


class Trimmed(NamedTuple):
    """A URL that was deleted because its domain has better ones."""

    domain: int
    fingerprint: int
    priority: int
    is_new: bool
    """It was inserted by the same add that deleted it."""


class FullDomains:
    """The budget of each domain, and a bounded memory of domains that were full."""

    def __init__(
        self, budget: DomainBudget, steady: Callable[[], float], *, memory_domains: int = MEMORY_DOMAINS
    ) -> None:
        self._budget = budget
        self._steady = steady
        self._memory_domains = memory_domains
        self._full = TtlCache[int, int](memory_domains)
        """By domain: the priority from which on URLs are dropped."""
        self._rooms: dict[tuple[int, int], int] = {}
        self.least_room = budget.least_room
        """No domain with at most this many pending URLs can be full. Nearly all have fewer."""

    def sift(
        self, urls: Sequence[NewUrl], exempt: Collection[tuple[int, int]]
    ) -> tuple[Sequence[NewUrl], list[NewUrl]]:
        """Split URLs into those to insert and those to drop; those in `exempt` are never dropped."""
        if not self._full:
            return urls, []
        now = self._steady()
        inserted: list[NewUrl] = []
        dropped: list[NewUrl] = []
        thresholds = {id: self._full.get(id, now) for id in {url.domain for url in urls}}
        for url in urls:
            threshold = thresholds[url.domain]
            is_dropped = (
                threshold is not None
                and priority_of(url) >= threshold
                and url.depth > 0
                and (url.is_foreign or not url.sitemap_of)
                and (url.domain, url.fingerprint) not in exempt
            )
            (dropped if is_dropped else inserted).append(url)
        return inserted, dropped

    def excess(self, raised: Iterable[Raised]) -> dict[int, int]:
        """Return how many URLs to delete from domains that exceed their budget: at most as many as were added.

        A budget may shrink: by a longer delay, a lower limit of pages, or texts that repeat. The domain then has more
        URLs than its budget allows, but they were accepted, so an add must not make them fewer.
        """
        over: dict[int, int] = {}
        for id, pending, added, crawl_delay, repeats in raised:
            key = (crawl_delay, repeats)
            room = self._rooms.get(key)
            if room is None:
                if len(self._rooms) >= self._memory_domains:
                    self._rooms.clear()
                room = self._rooms[key] = self._budget.room(crawl_delay / 1000, repeats / 1000)
            if pending > room:
                over[id] = min(pending - room, added)
        return over

    def beyond(self, domains: Iterable[tuple[int, int, int, int]]) -> dict[int, int]:
        """Return by how many URLs domains exceed their budget, given id, pending, crawl_delay and repeats of each."""
        return self.excess(Raised(id, pending, pending, *pace) for id, pending, *pace in domains)

    def note(self, trimmed: Iterable[Trimmed]) -> None:
        """Remember deletions that are committed, so that similar URLs are dropped for a while."""
        worst: dict[int, int] = {}
        for domain, _, priority, _ in trimmed:
            worst[domain] = min(priority, worst.get(domain, priority))
        until = self._steady() + MEMORY_SECONDS
        for domain, priority in worst.items():
            self._full.put(domain, priority, expires=until)


def naming_domains(urls: Iterable[NewUrl]) -> list[int]:
    """Return the domains that name some of these URLs themselves."""
    return list({url.domain: None for url in urls if not url.is_foreign})


def adopted_rows(
    urls: Iterable[NewUrl], pending: Collection[tuple[int, int]]
) -> list[tuple[int, int, int, int, int, str]]:
    """Return the rows of adopt_urls for the URLs that are not foreign and may be pending as foreign.

    `pending` are the rows of foreign_urls: domain and fingerprint, of each domain at most FOREIGN_URLS_READ.
    """
    if not pending:
        return []
    counts = Counter(id for id, _ in pending)
    found = {(domain, fingerprint) for domain, fingerprint in pending}
    best: dict[tuple[int, int], NewUrl] = {}
    # Most URLs are of domains without a foreign one.
    for url in [url for url in urls if url.domain in counts and not url.is_foreign]:
        key = (url.domain, url.fingerprint)
        if key in found or counts[url.domain] >= FOREIGN_URLS_READ:
            known = best.setdefault(key, url)
            if url.depth < known.depth:
                best[key] = url
    return [(*key, priority_of(url), url.depth, url.hops, url.sitemap_of) for key, url in best.items()]


class Inserted(NamedTuple):
    """What the transaction of an add has done."""

    unseen: int
    """URLs that were inserted."""
    dropped: list[NewUrl]
    """URLs of new addresses for which their network has no room."""
    trimmed: list[Trimmed]
    made: list[int]
    """Domains that were not in the frontier before."""
    outside: Sequence[NewUrl]
    """URLs of new domains, if none are accepted."""


def added(
    inserted: Inserted,
    urls: Sequence[NewUrl],
    *,
    dropped: Sequence[NewUrl],
    collided: Sequence[NewUrl],
    refuse_new_domains: NotAccepted | None,
) -> Added:
    """Return the result of an add of these URLs, without those that were dropped before it began its transaction."""
    trimmed = inserted.trimmed
    refused = {(url.domain, url.fingerprint) for url in (*dropped, *collided, *inserted.dropped)}
    refused |= {(url.domain, url.fingerprint) for url in trimmed}
    evicted = sum(not url.is_new for url in trimmed)
    return Added(
        unseen=inserted.unseen - (len(trimmed) - evicted),
        refused=frozenset(refused),
        made=frozenset(inserted.made),
        evicted=evicted,
        skipped=[
            *((NotAccepted.BUDGET, url) for url in (*dropped, *_trimmed_of(trimmed, urls))),
            *((NotAccepted.COLLISION, url) for url in collided),
            *((NotAccepted.ADDRESS_GROUP, url) for url in inserted.dropped),
            *((refuse_new_domains, url) for url in inserted.outside if refuse_new_domains is not None),
        ],
    )


def _trimmed_of(trimmed: Sequence[Trimmed], urls: Sequence[NewUrl]) -> list[NewUrl]:
    """Return those of the URLs that were inserted and deleted again."""
    keys = {(url.domain, url.fingerprint) for url in trimmed if url.is_new}
    return [url for url in urls if (url.domain, url.fingerprint) in keys] if keys else []


def count_trimmed(trimmed: Sequence[Trimmed], changes: Counter[str]) -> None:
    """Count URLs that were deleted, and among them those that were accepted earlier."""
    changes["urls.pending"] -= len(trimmed)
    changes[f"not_accepted.{NotAccepted.BUDGET}"] += len(trimmed)
    changes["evicted"] += sum(not url.is_new for url in trimmed)
