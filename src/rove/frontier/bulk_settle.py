"""URLs that leave the queue, or come back into it, without a visit: of a domain that is excluded or given up.

A domain may have millions of them: they are read and changed in slices, each a transaction of its own, so that no claim
has to wait for long. Whatever is killed in between, what was done stays done, and doing it again goes on with the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rove.model.urls import UrlState
from rove.policy.robots import MAX_CRAWL_DELAY

ALONE_MS = round(MAX_CRAWL_DELAY * 1000)
"""A domain whose Crawl-delay is longer is left alone: a crawl does not stay up for it."""
SLICE = 2_000
_FIRST = -1
_LOWEST = -(1 << 63)


class BulkSettling(ABC):
    """The part of a frontier that both databases share."""

    async def withdraw(
        self,
        domain: int,
        state: UrlState,
        reason: str,
        matching: Callable[[str], bool],
        *,
        after: int | None = None,
    ) -> int:
        """Settle what a domain has pending, as far as the URLs match, without a visit; return how many.

        `after`: only while this is the last visit that the domain was leased for.
        """
        priority, position, left = _FIRST, _LOWEST, 0
        while True:
            rows = await self._pending_after(domain, priority, position, SLICE)
            found = [fingerprint for fingerprint, url, _, _ in rows if matching(url)]
            if found:
                left += await self._close_urls(domain, found, state, reason, after)
            if len(rows) < SLICE:
                return left
            _, _, priority, position = rows[-1]

    async def withdraw_all(self, domains: Iterable[int], state: UrlState, reason: str) -> int:
        """Settle all that domains have pending, without a visit; return how many."""
        return sum([await self.withdraw(d, state, reason, lambda _: True) for d in domains])

    async def reopen(self, domain: int, matching: Callable[[str], bool]) -> int:
        """Make URLs of a domain pending again that an exclusion had blocked, as far as they match; return how many."""
        last, opened = _LOWEST, 0
        while True:
            rows = await self._excluded_after(domain, last, SLICE)
            found = [fingerprint for fingerprint, url, blocked in rows if blocked and matching(url)]
            if found:
                opened += await self._reopen_urls(domain, found)
            if len(rows) < SLICE:
                return opened
            last = rows[-1][0]

    @abstractmethod
    async def _pending_after(
        self, domain: int, priority: int, position: int, limit: int
    ) -> Sequence[Sequence[Any]]:
        """Fingerprint, URL, priority and position of pending URLs."""

    @abstractmethod
    async def _close_urls(
        self,
        domain: int,
        fingerprints: list[int],
        state: UrlState,
        reason: str,
        after: int | None,
    ) -> int:
        """Settle pending URLs in one transaction, unless another visit came after the one named."""

    @abstractmethod
    async def _excluded_after(
        self, domain: int, fingerprint: int, limit: int
    ) -> Sequence[Sequence[Any]]:
        """Fingerprint and URL of all URLs, and whether an exclusion has blocked it."""

    @abstractmethod
    async def _reopen_urls(self, domain: int, fingerprints: list[int]) -> int:
        """Make blocked URLs pending in one transaction."""
