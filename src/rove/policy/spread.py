"""Spreads out the second visits to domains that were visited for the first time at once.

A crawl that begins with 20,000 domains visits all of them in half a minute. Without this, all of them would be due
again at the end of the delay, and the crawl would alternate between full speed and waiting for ever. A second visit
that is up to one delay later, at random, brings the domains out of step for good.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

MANY = 200
"""First visits of a process within one delay from which on the second visits are spread out.

In a smaller crawl, the user would only wait longer."""


class Spread:
    """Decides for each first visit by how much later the second one comes."""

    def __init__(self, delay: float, random: Callable[[], float]) -> None:
        """`random` returns numbers from 0 to 1."""
        self._delay = delay
        self._random = random
        self._recent: deque[float] = deque(maxlen=MANY)

    def after_first_visit(self, now: float) -> float:
        """Return the share of the delay by which the second visit comes later, 0 if there were few first visits."""
        self._recent.append(now)
        is_crowded = len(self._recent) == MANY and now - self._recent[0] <= self._delay
        return self._random() if is_crowded else 0.0
