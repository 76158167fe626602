"""Counts the domains that rest for longer than the chosen delay, by cause. It takes no memory for single domains."""

from __future__ import annotations

import math
from collections import Counter
from heapq import heappop, heappush

from rove.model.ledger import DelaySource

STEPS = 16
"""Rests that end at about the same time are counted together. So a rest is counted for too long by at most one part in
16, and rests of up to a day take some 500 entries, whatever their number."""
LEAST_REST = 0.01


class Resting:
    """The rests that this process has ordered. A domain is visited again only after its rest, so it counts once."""

    def __init__(self) -> None:
        self._now: Counter[DelaySource] = Counter()
        self._endings: dict[float, Counter[DelaySource]] = {}
        """How many rests end at each time."""
        self._order: list[float] = []
        """These times, as a heap."""

    def begin(self, cause: DelaySource, seconds: float, *, now: float) -> None:
        """Count a rest that begins now, by a steady clock."""
        step = 2.0 ** math.floor(math.log2(max(seconds, LEAST_REST) / STEPS))
        end = math.ceil((now + seconds) / step) * step
        if end not in self._endings:
            self._endings[end] = Counter()
            heappush(self._order, end)
        self._endings[end][cause] += 1
        self._now[cause] += 1

    def counts(self, now: float) -> Counter[DelaySource]:
        """Return how many domains rest now, by cause."""
        while self._order and self._order[0] <= now:
            self._now -= self._endings.pop(heappop(self._order))
        return self._now.copy()
