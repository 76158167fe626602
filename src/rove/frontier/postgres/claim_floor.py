"""The moving lower bound of claims.

Every claim and settle leaves an old version of the domain's row behind, and an entry in the index of due times. Until
vacuum removes them, which any old snapshot prevents, a claim that starts at the low end of the index walks over all of
them. Nothing that can be claimed lies far below the domain that was claimed last, so claims start there, with some
slack. A row that they miss all the same, because it was locked for long, is found by an occasional claim without a
bound, which may take at most a fiftieth of the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

LOWEST = -(1 << 62)
SLACK_MS = 2_000
"""Allows for rows that were locked or not yet committed when the bound moved past them."""
UNBOUNDED_EVERY = 5.0
UNBOUNDED_SHARE = 50.0


class ClaimFloor:
    """The lower bound of one process."""

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self._steady = steady
        self._bound = LOWEST
        self._now: tuple[int, float] | None = None
        """The database's time, and ours at that moment."""
        self._next_unbounded = 0.0

    @property
    def value(self) -> int:
        """The current bound."""
        return self._bound

    def for_claim(self) -> int:
        """Return the bound for the next claim; LOWEST if it is time for an unbounded one."""
        return LOWEST if self._steady() >= self._next_unbounded else self._bound

    def claimed(self, bound: int, seconds: float, was_due: list[int], now: int | None, limit: int) -> None:
        """Move the bound after a claim that took `seconds` and returned domains that were due at these times."""
        steady = self._steady()
        if bound == LOWEST:
            self._next_unbounded = steady + max(UNBOUNDED_EVERY, UNBOUNDED_SHARE * seconds)
        if now is not None:
            self._now = (now, steady)
        if was_due and len(was_due) == limit:
            self._bound = max(was_due) - SLACK_MS
        elif self._now is not None:
            known, at = self._now
            self._bound = known + int((steady - at) * 1000) - SLACK_MS
