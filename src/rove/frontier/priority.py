"""The order in which the URLs of a domain are visited, the same in every frontier.

A URL has a class (its priority) and a position in it. Normally the class is the depth and the position is the order of
arrival. A foreign URL, which only other domains name, is behind all depths. A deferred URL is behind those, and its
position is the time at which it is due. Behind these are the suspects.

That is the order of the index. A lease takes the URLs that the domain itself names first, then those that wait for a
retry, then foreign ones. In every sixteenth lease of a domain, foreign URLs come first.
"""

from __future__ import annotations

from rove.model.urls import NewUrl
from rove.policy.pacing import FAILURES_BEFORE_LEAVING
from rove.policy.robots_lines import MAX_CRAWL_DELAY

WANTED_ROBOTS = -1
"""The priority of a robots.txt that other origins wait for: before every depth, because it costs no page its visit."""
FOREIGN = 1 << 19
"""The priority of a foreign URL is this plus its depth."""
RETRIED = 1 << 20
"""The priority of URLs to be retried: behind every depth, ordered by when they are due."""
HELD = RETRIED + 1
"""The priority of URLs that wait for an origin that keeps failing."""
LEASES_PER_FOREIGN_TURN = 16
"""One lease in this many takes foreign URLs first. A flood of them then costs a domain's own URLs 6 % of the visits."""
CLASSES = 2
"""RETRIED and HELD, which repeat for suspects."""
SUSPECT = RETRIED + CLASSES
"""The lowest priority of suspects: URLs that a process was reading when it died. No ordinary claim takes them.

Each death that counts as evidence raises the priority by CLASSES. In between are suspects that wait for an origin that
keeps failing. The position is the time from which a suspect may be tried alone."""
DEATHS_TO_CONVICT = 2
"""A suspect fails after this many deaths of processes that had nothing else to read."""
SUSPECT_POLL = 0.5
"""Seconds after which an ordinary process that only waits for a due suspect looks again."""
SOME_DAY = float(1 << 40)
"""Seconds after which everything that is deferred is due."""
URLS_PER_LEASE = 2
"""URLs that come with a lease. Most visits request only the first, and each URL costs a claim a page of the table."""
URLS_PER_ADD = 1 << 17
"""Maximum URLs in one add. Each gets a position of its own in the order of arrival."""
ALONE = {"leaving": FAILURES_BEFORE_LEAVING, "alone": round(MAX_CRAWL_DELAY * 1000)}
"""Parameters of queries: failed visits and Crawl-delay beyond which a crawl does not stay up for a domain."""


def priority_of(url: NewUrl) -> int:
    """Return the priority of a new URL."""
    level = min(url.depth + url.penalty, FOREIGN - 1)
    return FOREIGN + level if url.is_foreign else level


def is_foreign_turn(leases: int) -> bool:
    """Whether foreign URLs come first in the lease with this number, counted from 1 in each domain."""
    return leases % LEASES_PER_FOREIGN_TURN == 0


def foreign_bounds(*, foreign_first: bool) -> tuple[int, int]:
    """Return the priorities from which on a lease takes foreign URLs, before and after its other URLs."""
    return (FOREIGN, RETRIED) if foreign_first else (RETRIED, FOREIGN)


def order_in_lease(priority: int, position: int, *, foreign_first: bool) -> tuple[bool, int, int]:
    """Return the sort key of a pending URL among those of a lease."""
    is_foreign = FOREIGN <= priority < RETRIED
    return is_foreign is not foreign_first, priority, position


def suspect_deaths(priority: int) -> int | None:
    """Return the deaths that count as evidence against a URL of this priority; None if it is not a suspect.

    >>> suspect_deaths(3), suspect_deaths(HELD), suspect_deaths(SUSPECT), suspect_deaths(SUSPECT + 3)
    (None, None, 0, 1)
    """
    return None if priority < SUSPECT else (priority - SUSPECT) // CLASSES
