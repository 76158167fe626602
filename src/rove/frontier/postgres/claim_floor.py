"""The moving lower bound of claims.

Every claim and settle leaves an old version of the domain's row behind, with its place in the index of due times.
Until vacuum has been there, and it cannot while anybody holds an old snapshot open, a claim that starts from the
lowest end walks over all of them. Nothing that can be claimed lies far below what was claimed last, so claims start
there, with some slack; what was missed all the same (a row that somebody held locked for long) is found by a claim
without a bound now and then, which may take no more than a fiftieth of the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

LOWEST = -(1 << 62)
SLACK_MS = 2_000
"""A row that was locked, or written by a transaction not committed, when the bound moved past it."""
UNBOUNDED_EVERY = 5.0
UNBOUNDED_SHARE = 50.0


class ClaimFloor:
    """Where the claims of one process start."""

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self._steady = steady
        self._bound = LOWEST
        self._now: tuple[int, float] | None = None
        """The database's time, and ours at that moment."""
        self._next_unbounded = 0.0

    @property
    def value(self) -> int:
        """The bound as it stands."""
        return self._bound

    def for_claim(self) -> int:
        """The bound to claim with, which is none at all when it is time for that."""
        return LOWEST if self._steady() >= self._next_unbounded else self._bound

    def claimed(
        self, bound: int, seconds: float, was_due: list[int], now: int | None, limit: int
    ) -> None:
        """A claim with this bound took so long and brought domains that were due at these times."""
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
