"""Limits how many new domains the pages of one domain may bring into the crawl, on one page and in one day.

Names cost an attacker little, and each new name costs the crawl a visit. The limits are far above what ordinary pages
and link directories have (docs/politeness.md). Links beyond them still count if their domain is known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from rove.crawl.visit_record import VisitRecord
from rove.model.urls import NewUrl
from rove.policy.constants import DAY
from rove.resources.ttl_cache import TtlCache

MAX_PER_PAGE = 1_000
MAX_PER_DAY = 50_000
MEMORY_DOMAINS = 50_000
"""How many domains that have brought new ones within a day are remembered."""


class NewDomainLimits:
    """How many new domains each domain has brought to this process."""

    def __init__(self, clock: Callable[[], float], *, per_page: int = MAX_PER_PAGE, per_day: int = MAX_PER_DAY) -> None:
        self._clock = clock
        self._per_page = per_page
        self._per_day = per_day
        self._brought = TtlCache[int, tuple[int, float]](MEMORY_DOMAINS)
        """By source: the number of domains, and when it starts again from 0."""

    @property
    def remembered(self) -> int:
        """How many domains are remembered that have brought new ones."""
        return len(self._brought)

    def split(self, source: int, links: Sequence[NewUrl]) -> tuple[Sequence[NewUrl], Sequence[NewUrl]]:
        """Split the links of a page into those that may lead to new domains, and those that may not."""
        brought, _ = self._brought_by(source)
        allowed = max(0, min(self._per_page, self._per_day - brought))
        domains = dict.fromkeys(link.domain for link in links)
        domains.pop(source, None)
        if len(domains) <= allowed:
            return links, ()
        may_be_new = {source, *list(domains)[:allowed]}
        within = [link for link in links if link.domain in may_be_new]
        beyond = [link for link in links if link.domain not in may_be_new]
        return within, beyond

    def note(self, records: Iterable[VisitRecord], made: Collection[int]) -> None:
        """Note which domains are new since the links of these visits were added."""
        left = set(made)
        for record in records:
            if not left:
                return
            new = left.intersection(link.domain for link in record.links)
            if new:
                left -= new
                brought, until = self._brought_by(record.lease.domain)
                self._brought.put(record.lease.domain, (brought + len(new), until), expires=until)

    def _brought_by(self, source: int) -> tuple[int, float]:
        now = self._clock()
        return self._brought.get(source, now) or (0, now + DAY)
