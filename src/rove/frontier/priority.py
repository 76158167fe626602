"""The order in which the URLs of a domain come up; the same in every frontier.

A URL has a class (its priority) and a place in it. Normally the class is the depth and the place is that of its
arrival; a URL that is deferred moves behind all of those, with the time that it is due as its place.
"""

from __future__ import annotations

from rove.model.urls import NewUrl

RETRIED = 1 << 20
"""The priority of URLs to be tried again: behind every depth, ordered by when they are due."""
HELD = RETRIED + 1
"""The priority of URLs that wait for an origin that keeps failing."""
URLS_PER_LEASE = 2
"""URLs that come with a lease: most visits ask for the first. Each costs a claim a page of the table."""
URLS_PER_ADD = 1 << 17
"""URLs that one add may carry: each gets a place of its own in the order of arrival."""


def priority_of(url: NewUrl) -> int:
    """The class that a URL comes into the frontier with."""
    return min(url.depth + url.penalty, RETRIED - 1)
