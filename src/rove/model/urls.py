"""URLs as they enter and leave the frontier, and their states."""

from __future__ import annotations

import enum
from typing import NamedTuple


class UrlState(enum.IntEnum):
    """The state of a URL; the frontier stores the numbers."""

    PENDING = 0
    DONE = 1
    BLOCKED = 2
    FAILED = 3
    REDIRECTED = 4
    READ = 5
    """A sitemap that was read for the URLs that it lists; it is not stored."""


class NewUrl(NamedTuple):
    """A URL to add to the frontier. It is a tuple because a page yields sixty of them."""

    domain: int
    domain_name: str
    fingerprint: int
    url: str
    depth: int
    hops: int = 0
    """Redirects that led here since the last page or seed; it bounds endless chains."""
    assume_https: bool = False
    """The URL comes from a bare domain in the seeds, so https is a guess and http will do."""
    sitemap_of: str = ""
    """The host whose URLs this sitemap may list; '' for a page."""
    penalty: int = 0
    """Levels of depth added to the URL's priority, because it looks like a trap or for the language of its page."""
    is_foreign: bool = False
    """Another domain names the URL. Without this its own domain names it, or a seed does."""


class PendingUrl(NamedTuple):
    """A pending URL of a leased domain. It is a tuple because a claim returns hundreds of them."""

    fingerprint: int
    url: str
    depth: int
    hops: int
    attempts: int
    assume_https: bool
    priority: int
    position: int
    sitemap_of: str = ""
    is_robots: bool = False
    """A robots.txt that other origins wait for, because theirs redirects there. Nothing else of it is requested."""


class NotAccepted(enum.StrEnum):
    """Why a URL that was found did not enter the frontier."""

    EXCLUDED = "excluded"
    TOO_DEEP = "too-deep"
    OUT_OF_SCOPE = "out-of-scope"
    REDIRECTS = "too-many-redirects"
    PORT = "port"
    TRAP = "trap"
    FILE_TYPE = "file-type"
    """Its path ends in an extension of files that hold no page."""
    BUDGET = "budget"
    """Its domain has more pending URLs than can be visited before the crawl ends."""
    NEW_DOMAINS = "new-domains"
    """Its domain is new, and the page that links to it, or the page's domain, has brought enough new domains."""
    ADDRESS_GROUP = "address-group"
    """It is at a new address, and the crawl has enough addresses of the same network."""
    COLLISION = "collision"
    """Its domain has the id of another domain."""
