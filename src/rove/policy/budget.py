"""Decides how many URLs of one domain are worth keeping. A pure function of how long the crawl runs.

A domain that is visited every 70 s yields 1,234 pages a day, so a crawl of one day has no use for its ten millionth
URL. Each domain therefore has a budget of visits, and the frontier keeps a few pending URLs for each of them. Further
URLs are counted and dropped, unless they are nearer to a seed than one that is pending. This bounds the frontier by
the number of domains, whatever the web does.

The budget depends on the crawl's whole duration, not on the time left. All processes and machines thus compute the
same budget, and a crawl that is about to end keeps the URLs that it would need if it were given more time.
"""

from __future__ import annotations

from dataclasses import dataclass

from rove.policy.constants import DAY, LEAST_DELAY

DEFAULT_HORIZON = 30 * DAY
"""Assumed duration of a crawl without a time limit, in seconds."""
LEAST_YIELD = 0.05
"""Every domain is assumed to have at least this share of new texts."""
FEWEST_VISITS = 16
MULTIPLE = 4
"""Pending URLs per visit, because many turn out to be forbidden, broken, or redirects to known ones."""
_MOST_VISITS = float(1 << 40)


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainBudget:
    """The visits and pending URLs that a crawl grants each of its domains."""

    horizon: float
    """Duration of the crawl in seconds."""
    delay: float
    """Minimum seconds between two visits to a domain."""
    max_pages: int | None = None
    """Maximum number of pages of one domain."""

    def visits(self, crawl_delay: float, repeats: float) -> int:
        """Return how many visits a domain may get, given its Crawl-delay and the share of its pages that are copies."""
        visits = self.horizon / max(self.delay, crawl_delay, LEAST_DELAY)
        visits *= max(1.0 - repeats, LEAST_YIELD)
        if self.max_pages is not None:
            visits = min(visits, self.max_pages)
        return max(FEWEST_VISITS, int(min(visits, _MOST_VISITS)))

    @property
    def least_room(self) -> int:
        """The pending URLs that every domain may have."""
        return MULTIPLE * FEWEST_VISITS

    def room(self, crawl_delay: float, repeats: float) -> int:
        """Return the maximum number of pending URLs of a domain."""
        return MULTIPLE * self.visits(crawl_delay, repeats)
