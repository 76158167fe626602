"""Which links are within the scope of the seeds (`--scope`).

The frontier itself refuses links into domains that it does not know. Where the hosts or directories of the seeds count,
this module looks up the seeds of a link's domain and remembers them for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rove.frontier.contract import Frontier
from rove.model.urls import NewUrl
from rove.policy.scope import ScopeRoots, SeedScope
from rove.resources.ttl_cache import TtlCache
from rove.urls.canonical import CrawlUrl

REMEMBERED_SECONDS = 10.0
"""How long the seeds of a domain are remembered. After that time, links into new seeds are in scope."""
REMEMBERED_DOMAINS = 50_000


class ScopeCheck:
    """Checks links against the hosts or directories of the seeds."""

    def __init__(self, frontier: Frontier, scope: SeedScope, clock: Callable[[], float]) -> None:
        self._frontier = frontier
        self._scope = scope
        self._clock = clock
        self._roots = TtlCache[int, ScopeRoots](REMEMBERED_DOMAINS)

    def forget(self, domains: Iterable[int]) -> None:
        """Look up the seeds of these domains again: a seed redirects to a URL that was added now."""
        for domain in domains:
            self._roots.drop(domain)

    async def covers_redirect(self, target: CrawlUrl, *, depth: int) -> bool:
        """Whether a redirect may be followed."""
        if not self._scope.needs_roots:
            return True
        roots = await self._of([target.domain])
        return self._takes(roots[target.domain], target.text, depth)

    async def outside(self, links: Iterable[NewUrl]) -> Sequence[NewUrl]:
        """Return the links that are out of scope. A sitemap is not: it is read, and its URLs are checked."""
        if not self._scope.needs_roots:
            return ()
        pages = [link for link in links if not link.sitemap_of]
        roots = await self._of([link.domain for link in pages])
        return [link for link in pages if not self._takes(roots[link.domain], link.url, link.depth)]

    def _takes(self, roots: ScopeRoots, url: str, depth: int) -> bool:
        return roots.covers(url) or (depth == 0 and roots.may_be_root(url))

    async def _of(self, domains: Sequence[int]) -> dict[int, ScopeRoots]:
        now = self._clock()
        found: dict[int, ScopeRoots] = {}
        for domain in domains:
            known = self._roots.get(domain, now)
            if known is not None:
                found[domain] = known
        unknown = sorted({*domains} - found.keys())
        if unknown:
            roots = await self._frontier.roots(unknown)
            for domain in unknown:
                found[domain] = ScopeRoots(roots.get(domain, ()), self._scope)
                self._roots.put(domain, found[domain], expires=now + REMEMBERED_SECONDS)
        return found
