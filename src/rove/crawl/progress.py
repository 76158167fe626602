"""What a running crawl tells about itself; written by the crawl, read by whoever shows it."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

RATE_WINDOW = 10.0
"""Seconds over which 'now' is reckoned."""


@dataclass(slots=True)
class Progress:
    """Counts of this run, and how full things are."""

    started: float
    """Steady-clock seconds."""
    pages: int = 0
    visits: int = 0
    requests: int = 0
    bytes: int = 0
    in_flight: int = 0
    queued: int = 0
    trouble: str = ""
    """What the crawl is slowed down by; '' if by nothing."""
    errors: Counter[str] = field(default_factory=Counter)
    _marks: deque[tuple[float, int, int]] = field(default_factory=deque)

    def mark(self, now: float) -> None:
        """Note where things stand; called about once a second."""
        self._marks.append((now, self.pages, self.visits))
        while len(self._marks) > 2 and now - self._marks[0][0] > RATE_WINDOW:
            self._marks.popleft()

    def pages_per_second(self) -> float:
        """The rate of the last seconds."""
        return self._rate(1)

    def visits_per_second(self) -> float:
        """The rate of the last seconds."""
        return self._rate(2)

    def average(self, now: float) -> float:
        """Pages per second since the run began."""
        return self.pages / max(now - self.started, 0.001)

    def _rate(self, column: int) -> float:
        if len(self._marks) < 2:
            return 0.0
        first, last = self._marks[0], self._marks[-1]
        return (last[column] - first[column]) / max(last[0] - first[0], 0.001)


def ceiling_share(visits_per_second: float, domains_with_work: int, delay: float) -> float | None:
    """How much of what politeness allows is used; None where it sets no bound."""
    if delay <= 0 or domains_with_work <= 0:
        return None
    # Domains that have just run out of work were visited as well.
    return min(1.0, visits_per_second / (domains_with_work / delay))
