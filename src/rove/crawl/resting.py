"""Counts the domains that rest for longer than the chosen delay, by cause. It takes no memory for single domains."""

from __future__ import annotations

from collections import Counter
from heapq import heappop, heappush

from rove.model.ledger import DelaySource

STEP = 10.0
"""Rests that end within the same ten seconds are counted together: a day of them takes at most 8,640 entries."""


class Resting:
    """The rests that this process has ordered. A domain is visited again only after its rest, so it counts once."""

    def __init__(self) -> None:
        self._now: Counter[DelaySource] = Counter()
        self._endings: dict[int, Counter[DelaySource]] = {}
        """How many rests end in each step."""
        self._order: list[int] = []
        """The steps in which rests end, as a heap."""

    def begin(self, cause: DelaySource, *, ends: float) -> None:
        """Count a rest that ends at a time of a steady clock."""
        step = int(ends / STEP) + 1
        if step not in self._endings:
            self._endings[step] = Counter()
            heappush(self._order, step)
        self._endings[step][cause] += 1
        self._now[cause] += 1

    def counts(self, now: float) -> Counter[DelaySource]:
        """Return how many domains rest now, by cause."""
        while self._order and self._order[0] * STEP <= now:
            self._now -= self._endings.pop(heappop(self._order))
        return self._now.copy()
