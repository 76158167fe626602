"""The URL that a visit is about to request."""

from __future__ import annotations

import msgspec

from rove.model.urls import NewUrl, PendingUrl
from rove.parse.sitemap import is_named_like_a_sitemap
from rove.urls.canonical import CrawlUrl, UrlForm, parse_base


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

    @property
    def may_be_a_file(self) -> bool:
        """Whether to request the URL whatever its extension: what a seed redirects to, or a compressed sitemap."""
        return self.depth == 0 or bool(self.sitemap_of)

    @property
    def depth_for_rules(self) -> int | None:
        """The depth with which rules decide about the URL; None if they do not, because it is no page."""
        return None if self.sitemap_of or self.is_robots else self.depth

    def as_new_url(self, penalty: int = 0, *, is_foreign: bool = False) -> NewUrl:
        """Return the row that adds this URL to the frontier."""
        return self.url.new_url(
            depth=self.depth, hops=self.hops, sitemap_of=self.sitemap_of, penalty=penalty, is_foreign=is_foreign
        )

    def as_sitemap_of(self, host: str) -> Target:
        """Return the same URL as a sitemap that the robots.txt of its own domain names."""
        return msgspec.structs.replace(self, depth=0, sitemap_of=host)


def as_foreign_sitemap(sitemap: Target) -> Target:
    """Return a sitemap in another domain than the one that names it: an ordinary link, even from a robots.txt.

    It is read as a sitemap only if its name says so. Otherwise anyone could have another site's pages read as sitemaps,
    which are not stored.
    """
    sitemap_of = sitemap.sitemap_of if is_named_like_a_sitemap(sitemap.url.text) else ""
    return msgspec.structs.replace(sitemap, depth=max(1, sitemap.depth), sitemap_of=sitemap_of)


def target_of(pending: PendingUrl, form: UrlForm) -> Target:
    """Return the target for a URL of the lease."""
    return Target(
        url=form.restored(pending.url, pending.fingerprint),
        depth=pending.depth,
        hops=pending.hops,
        attempts=pending.attempts,
        assume_https=pending.assume_https,
        sitemap_of=pending.sitemap_of,
        is_robots=pending.is_robots,
    )


def redirect_target(url: CrawlUrl, location: str, form: UrlForm) -> CrawlUrl | None:
    """Return the URL that a redirect leads to.

    Session ids are removed, unless the server redirects the URL to itself plus a session id.
    """
    base = parse_base(url.text)
    target = form.canonical(location, base)
    is_same = target is not None and target.text == url.text
    return form.in_full.canonical(location, base) if is_same else target
