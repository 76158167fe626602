"""The URL that a visit is about to request."""

from __future__ import annotations

import msgspec

from rove.model.urls import NewUrl, PendingUrl
from rove.urls.canonical import CrawlUrl, restored


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A URL to request, and how the visit got to it."""

    url: CrawlUrl
    depth: int
    hops: int = 0
    """Redirects that led here since the last page or seed, over all visits."""
    attempts: int = 0
    """How often the URL has failed before."""
    assume_https: bool = False
    """The URL comes from a bare domain in the seeds, so https is only a guess."""
    sitemap_of: str = ""
    """The host whose URLs this sitemap may list; '' for a page."""
    is_robots: bool = False
    """Only the robots.txt of its origin is wanted."""
    came_from: tuple[int, ...] = ()
    """Fingerprints of the URLs whose redirects led here in this visit."""

    def as_new_url(self, penalty: int = 0) -> NewUrl:
        """Return the row that adds this URL to the frontier."""
        return self.url.new_url(depth=self.depth, hops=self.hops, sitemap_of=self.sitemap_of, penalty=penalty)


def target_of(pending: PendingUrl) -> Target:
    """Return the target for a URL of the lease."""
    return Target(
        url=restored(pending.url, pending.fingerprint),
        depth=pending.depth,
        hops=pending.hops,
        attempts=pending.attempts,
        assume_https=pending.assume_https,
        sitemap_of=pending.sitemap_of,
        is_robots=pending.is_robots,
    )
