"""A URL on its way into the frontier and out of it, and its states."""

from __future__ import annotations

import enum
from typing import NamedTuple


class UrlState(enum.IntEnum):
    """Where a URL stands; the numbers are stored in the frontier."""

    PENDING = 0
    DONE = 1
    BLOCKED = 2
    FAILED = 3
    REDIRECTED = 4
    READ = 5
    """Fetched for the URLs that it lists, not stored: a sitemap."""


class NewUrl(NamedTuple):
    """A URL offered to the frontier. A tuple, as a page makes sixty."""

    domain: int
    domain_name: str
    fingerprint: int
    url: str
    depth: int
    hops: int = 0
    """Redirects that led here since the last page or seed; bounds endless chains."""
    assume_https: bool = False
    """From a bare domain in the seeds: https is a guess, http will do."""
    sitemap_of: str = ""
    """A sitemap, and the host whose URLs it may list; '' for what is a page."""
    penalty: int = 0
    """How much deeper it counts than it is, as it looks like a trap."""


class PendingUrl(NamedTuple):
    """A URL waiting in a leased domain. A tuple, as a claim brings a thousand."""

    fingerprint: int
    url: str
    depth: int
    hops: int
    attempts: int
    assume_https: bool
    priority: int
    position: int
    sitemap_of: str = ""


class NotAccepted(enum.StrEnum):
    """Why a URL that was met was not taken into the frontier."""

    EXCLUDED = "excluded"
    TOO_DEEP = "too-deep"
    OUT_OF_SCOPE = "out-of-scope"
    REDIRECTS = "too-many-redirects"
    PORT = "port"
    TRAP = "trap"
    BUDGET = "budget"
    """Its domain has more pending than can be visited before the crawl ends."""
