"""The order in which the URLs of a domain are visited, the same in every frontier.

A URL has a class (its priority) and a position in it. Normally the class is the depth and the position is the order of
arrival. A deferred URL moves behind all of those, and its position is the time at which it is due.
"""

from __future__ import annotations

from rove.model.urls import NewUrl
from rove.policy.pacing import FAILURES_BEFORE_LEAVING
from rove.policy.robots_lines import MAX_CRAWL_DELAY

WANTED_ROBOTS = -1
"""The priority of a robots.txt that other origins wait for: before every depth, because it costs no page its visit."""
RETRIED = 1 << 20
"""The priority of URLs to be retried: behind every depth, ordered by when they are due."""
HELD = RETRIED + 1
"""The priority of URLs that wait for an origin that keeps failing."""
URLS_PER_LEASE = 2
"""URLs that come with a lease. Most visits request only the first, and each URL costs a claim a page of the table."""
URLS_PER_ADD = 1 << 17
"""Maximum URLs in one add. Each gets a position of its own in the order of arrival."""
ALONE = {"leaving": FAILURES_BEFORE_LEAVING, "alone": round(MAX_CRAWL_DELAY * 1000)}
"""Parameters of queries: failed visits and Crawl-delay beyond which a crawl does not stay up for a domain."""


def priority_of(url: NewUrl) -> int:
    """Return the priority of a new URL."""
    return min(url.depth + url.penalty, RETRIED - 1)
