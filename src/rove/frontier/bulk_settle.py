"""Settles or reopens URLs without a visit, for a domain that is excluded or given up.

A domain may have millions of URLs. They are read and changed in slices, each a transaction of its own, so that no claim
waits for long. If the process is killed in between, running it again continues with the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from rove.model.urls import UrlState

SLICE = 2_000
_FIRST = -1
_LOWEST = -(1 << 63)


class UrlSlices(Protocol):
    """The URLs of a domain in one database, read and changed in slices."""

    async def fetch(self, query: str, /, **parameters: Any) -> list[Any]:
        """Return the rows of pending_from or blocked_after."""

    async def settle(
        self, domain: int, fingerprints: list[int], state: UrlState, reason: str, after: int | None
    ) -> int:
        """Settle pending URLs in one transaction, unless `after` is given and is not the domain's last visit."""

    async def reopen(self, domain: int, fingerprints: list[int]) -> int:
        """Make blocked URLs pending in one transaction."""


class BulkSettling:
    """The part of a frontier that settles and reopens URLs in slices."""

    def __init__(self, slices: UrlSlices, *, limit: int = SLICE) -> None:
        """`limit` is the number of URLs in a slice."""
        self._slices = slices
        self._limit = limit

    async def withdraw(
        self, domain: int, state: UrlState, reason: str, matching: Callable[[str], bool], *, after: int | None = None
    ) -> int:
        """Settle the pending URLs of a domain that match; return their number."""
        priority, position, settled = _FIRST, _LOWEST, 0
        # Several URLs may have the last position, because it may be the time of a retry. These of them stay pending.
        read_there: set[int] = set()
        while True:
            limit = self._limit + len(read_there)
            rows = await self._slices.fetch(
                "pending_from", domain=domain, priority=priority, position=position, limit=limit
            )
            matches = [row[0] for row in rows if row[0] not in read_there and matching(row[1])]
            count = await self._slices.settle(domain, matches, state, reason, after) if matches else 0
            settled += count
            if len(rows) < limit:
                return settled
            if rows[-1][2:] != (priority, position):
                read_there.clear()
                _, _, priority, position = rows[-1]
            read_there.update(row[0] for row in rows if row[2:] == (priority, position))
            if count == len(matches):
                read_there.difference_update(matches)

    async def withdraw_all(self, domains: Iterable[int], state: UrlState, reason: str) -> int:
        """Settle all pending URLs of domains; return their number."""
        return sum([await self.withdraw(d, state, reason, lambda _: True) for d in domains])

    async def reopen(self, domain: int, matching: Callable[[str], bool]) -> int:
        """Make the URLs of a domain pending again that an exclusion blocked and that match; return their number."""
        last, reopened = _LOWEST, 0
        while True:
            rows = await self._slices.fetch("blocked_after", domain=domain, fingerprint=last, limit=self._limit)
            matches = [fingerprint for fingerprint, url, blocked in rows if blocked and matching(url)]
            if matches:
                reopened += await self._slices.reopen(domain, matches)
            if len(rows) < self._limit:
                return reopened
            last = rows[-1][0]
