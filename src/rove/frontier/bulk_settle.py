"""Settles or reopens URLs without a visit, for a domain that is excluded or given up, or because rules have changed.

A domain may have millions of URLs. They are read and changed in slices, each a transaction of its own, so that no claim
waits for long. If the process is killed in between, running it again continues with the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

from rove.model.reasons import BlockReason, is_rejected_by_rules
from rove.model.urls import UrlState

SLICE = 2_000
_FIRST = -1
_LOWEST = -(1 << 63)


class _Pending(NamedTuple):
    """A row of pending_from."""

    fingerprint: int
    url: str
    priority: int
    position: int
    depth: int
    is_page: bool
    """It is neither a sitemap nor a robots.txt."""

    @property
    def place(self) -> tuple[int, int]:
        """Its place in the order of its domain."""
        return self.priority, self.position


class _Blocked(NamedTuple):
    """A row of blocked_after."""

    fingerprint: int
    url: str
    depth: int
    reason: str
    """Why it is blocked; '' if it is not."""


class UrlSlices(Protocol):
    """The URLs of a domain in one database, read and changed in slices."""

    async def fetch(self, query: str, /, **parameters: Any) -> list[Any]:
        """Return the rows of pending_from or blocked_after."""

    async def settle(
        self, domain: int, fingerprints: list[int], state: UrlState, reason: str, after: int | None
    ) -> int:
        """Settle pending URLs in one transaction, unless `after` is given and is not the domain's last visit."""

    async def reopen(self, domain: int, fingerprints: list[int], reason: str) -> int:
        """Make URLs pending in one transaction that are blocked for this reason."""


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
        return await self._settle(domain, state, lambda row: reason if matching(row.url) else None, after)

    async def withdraw_all(self, domains: Iterable[int], state: UrlState, reason: str) -> int:
        """Settle all pending URLs of domains; return their number."""
        return sum([await self.withdraw(d, state, reason, lambda _: True) for d in domains])

    async def reopen(self, domain: int, matching: Callable[[str], bool]) -> int:
        """Make the URLs of a domain pending again that an exclusion blocked and that match; return their number."""
        return await self._reopen(domain, lambda row: row.reason == BlockReason.EXCLUDED and matching(row.url))

    async def rejudge(self, domain: int, judge: Callable[[str, int], str | None]) -> int:
        """Block the pending pages of a domain for which `judge` returns a reason; return their number."""
        return await self._settle(
            domain, UrlState.BLOCKED, lambda row: judge(row.url, row.depth) if row.is_page else None, None
        )

    async def reopen_rejected(self, domain: int, judge: Callable[[str, int], str | None]) -> int:
        """Make the URLs of a domain pending again that rules blocked and `judge` does not; return their number."""
        return await self._reopen(
            domain, lambda row: is_rejected_by_rules(row.reason) and judge(row.url, row.depth) is None
        )

    async def _settle(
        self, domain: int, state: UrlState, reason_for: Callable[[_Pending], str | None], after: int | None
    ) -> int:
        """Settle the pending URLs of a domain for which there is a reason; return their number."""
        priority, position, settled = _FIRST, _LOWEST, 0
        # Several URLs may have the last position, because it may be the time of a retry. These of them stay pending.
        read_there: set[int] = set()
        while True:
            limit = self._limit + len(read_there)
            rows = [
                _Pending(*row)
                for row in await self._slices.fetch(
                    "pending_from", domain=domain, priority=priority, position=position, limit=limit
                )
            ]
            matches: dict[str, list[int]] = {}
            for row in rows:
                reason = None if row.fingerprint in read_there else reason_for(row)
                if reason is not None:
                    matches.setdefault(reason, []).append(row.fingerprint)
            for reason, fingerprints in matches.items():
                count = await self._slices.settle(domain, fingerprints, state, reason, after)
                settled += count
                if count < len(fingerprints):
                    matches[reason] = []  # some are pending still
            if len(rows) < limit:
                return settled
            last = rows[-1].place
            if last != (priority, position):
                read_there.clear()
                priority, position = last
            read_there.update(row.fingerprint for row in rows if row.place == last)
            for fingerprints in matches.values():
                read_there.difference_update(fingerprints)

    async def _reopen(self, domain: int, matching: Callable[[_Blocked], bool]) -> int:
        """Make the blocked URLs of a domain that match pending again; return their number."""
        last, reopened = _LOWEST, 0
        while True:
            rows = [
                _Blocked(*row)
                for row in await self._slices.fetch("blocked_after", domain=domain, fingerprint=last, limit=self._limit)
            ]
            matches: dict[str, list[int]] = {}
            for row in rows:
                if row.reason and matching(row):
                    matches.setdefault(row.reason, []).append(row.fingerprint)
            for reason, fingerprints in matches.items():
                reopened += await self._slices.reopen(domain, fingerprints, reason)
            if len(rows) < self._limit:
                return reopened
            last = rows[-1].fingerprint
