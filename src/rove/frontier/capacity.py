"""Domains that have as many URLs pending as there is room for, as one process knows them.

What is offered to such a domain would be inserted, found to be the worst, and deleted again. So for a while after a
domain was found full, offers that are no better than what was deleted there are dropped before they reach the
database. The frontier is correct without it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from rove.frontier.contract import Added
from rove.frontier.priority import priority_of
from rove.model.urls import NewUrl
from rove.policy.budget import DomainBudget

MEMORY_SECONDS = 60.0
"""How long a domain is taken to be full: each visit makes some room."""
MEMORY_DOMAINS = 50_000


class Raised(NamedTuple):
    """A domain to which URLs were added."""

    id: int
    pending: int
    crawl_delay: int
    """In milliseconds."""
    repeats: int
    """Per mille."""


class Trimmed(NamedTuple):
    """A URL that was deleted, as its domain has better ones."""

    domain: int
    fingerprint: int
    priority: int
    is_new: bool
    """It came with the batch for which it was found that there is no room."""


class FullDomains:
    """What there is room for, and a bounded memory of where there was none."""

    def __init__(self, budget: DomainBudget, steady: Callable[[], float]) -> None:
        self._budget = budget
        self._steady = steady
        self._full: dict[int, tuple[int, float]] = {}
        """By domain: the priority from which on nothing is taken, and until when that holds."""
        self._rooms: dict[tuple[int, int], int] = {}
        self.least_room = budget.least_room
        """Domains that have no more need not be looked at: nearly all."""

    def sift(
        self, urls: Sequence[NewUrl], kept: Collection[int]
    ) -> tuple[Sequence[NewUrl], list[NewUrl]]:
        """What may be offered to the database, and what need not be; those of `kept` are always offered."""
        if not self._full:
            return urls, []
        now = self._steady()
        offered: list[NewUrl] = []
        dropped: list[NewUrl] = []
        for url in urls:
            known = self._full.get(url.domain)
            is_dropped = (
                known is not None
                and known[1] > now
                and priority_of(url) >= known[0]
                and url.depth > 0
                and not url.sitemap_of
                and url.fingerprint not in kept
            )
            (dropped if is_dropped else offered).append(url)
        return offered, dropped

    def excess(self, raised: Iterable[Raised]) -> dict[int, int]:
        """How many URLs more than there is room for some domains have."""
        over: dict[int, int] = {}
        for id, pending, crawl_delay, repeats in raised:
            key = (crawl_delay, repeats)
            room = self._rooms.get(key)
            if room is None:
                if len(self._rooms) >= MEMORY_DOMAINS:
                    self._rooms.clear()
                room = self._rooms[key] = self._budget.room(crawl_delay / 1000, repeats / 1000)
            if pending > room:
                over[id] = pending - room
        return over

    def note(self, trimmed: Iterable[Trimmed]) -> None:
        """These were deleted, and it is committed: their like is not wanted for a while."""
        worst: dict[int, int] = {}
        for domain, _, priority, _ in trimmed:
            worst[domain] = min(priority, worst.get(domain, priority))
        until = self._steady() + MEMORY_SECONDS
        for domain, priority in worst.items():
            self._full.pop(domain, None)  # so that the oldest stays in front
            self._full[domain] = (priority, until)
        while len(self._full) > MEMORY_DOMAINS:
            del self._full[next(iter(self._full))]


def added(unseen: int, dropped: Iterable[NewUrl], trimmed: Sequence[Trimmed]) -> Added:
    """What an add came to that inserted so many URLs."""
    refused = {url.fingerprint for url in dropped} | {url.fingerprint for url in trimmed}
    return Added(unseen=unseen - sum(url.is_new for url in trimmed), refused=frozenset(refused))
