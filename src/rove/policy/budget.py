"""How many URLs of one domain are worth keeping: a pure function of how long the crawl goes on.

A domain asked every 70 s gives 1,234 pages a day. A crawl of a day has no use for its ten millionth URL, but that is
what would fill the disk. So a domain has a budget of visits, and the frontier has room for a few times as many of its
URLs; what is offered beyond that is counted and not kept, unless it is nearer to a seed than something that is kept.
A frontier is then no larger than its domains times their room, whatever the web does.

The whole time of the crawl counts, not what is left of it: all processes and machines then reckon alike, and a crawl
that is about to end does not throw away what it would need if it were given more time.
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_HORIZON = 30 * 86_400.0
"""Seconds that a crawl without a time limit is reckoned to go on for."""
LEAST_DELAY = 0.1
"""Seconds that a visit takes at least, where there is no delay."""
LEAST_YIELD = 0.05
"""The share of new texts that a domain is given credit for at least: it may have some yet."""
FEWEST_VISITS = 16
MULTIPLE = 4
"""URLs kept for each visit: many turn out to be forbidden, broken, or to lead to one that is known."""
_MOST_VISITS = float(1 << 40)


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainBudget:
    """What a crawl has for each of its domains."""

    horizon: float
    """Seconds that the crawl goes on for."""
    delay: float
    """Least seconds between two visits to a domain."""
    max_pages: int | None = None
    """Pages that it takes of one domain."""

    def visits(self, crawl_delay: float, repeats: float) -> int:
        """Visits that a domain is worth, by its Crawl-delay and the share of its pages that repeat others."""
        found = self.horizon / max(self.delay, crawl_delay, LEAST_DELAY)
        found *= max(1.0 - repeats, LEAST_YIELD)
        if self.max_pages is not None:
            found = min(found, self.max_pages)
        return max(FEWEST_VISITS, int(min(found, _MOST_VISITS)))

    @property
    def least_room(self) -> int:
        """What every domain has room for."""
        return MULTIPLE * FEWEST_VISITS

    def room(self, crawl_delay: float, repeats: float) -> int:
        """URLs of a domain that may be pending."""
        return MULTIPLE * self.visits(crawl_delay, repeats)
