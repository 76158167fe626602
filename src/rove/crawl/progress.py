"""The counters of a running crawl: the crawl updates them, the panel shows them, workers report them."""

from __future__ import annotations

import math
from collections import Counter, deque
from typing import Any

import msgspec

RATE_WINDOW = 10.0
"""Seconds over which the current rates are measured."""


class Counters(msgspec.Struct, omit_defaults=True):
    """Counters of one process, or of several together, since they began.

    A new counter is one new field here. Workers report it and the supervisor adds it up without further code.
    """

    pages: int = 0
    visits: int = 0
    requests: int = 0
    bytes: int = 0
    in_flight: int = 0
    queued: int = 0
    trouble: str = ""
    """Why the crawl is slowed down or paused, or ''."""
    errors: Counter[str] = msgspec.field(default_factory=Counter)

    def __add__(self, other: Counters) -> Counters:
        """Add every counter; `trouble` is the first that is not empty."""
        sums = {name: value + getattr(other, name) for name, value in _fields(self)}
        return Counters(**sums | {"trouble": self.trouble or other.trouble})

    def ended(self) -> Counters:
        """Return the counters after the end of the process: nothing is in flight, queued or in trouble any more."""
        return Counters(**dict(_fields(self)) | {"in_flight": 0, "queued": 0, "trouble": ""})


class Progress(Counters, kw_only=True):
    """The counters of this run while it goes on, and the rates they grow at."""

    started: float
    """By the steady clock."""
    last_answer: float = -math.inf
    """When a site last responded to a request of this process, by the steady clock."""
    marks: deque[tuple[float, int, int]] = msgspec.field(default_factory=deque)
    """Time, pages and visits at recent moments, oldest first."""

    def snapshot(self) -> Counters:
        """Return a copy of the counters as they are now."""
        return Counters(**dict(_fields(self)) | {"errors": self.errors.copy()})

    def update(self, counters: Counters) -> None:
        """Set every counter to its value in `counters`."""
        for name, value in _fields(counters):
            setattr(self, name, value)

    def mark(self, now: float) -> None:
        """Record where the counters stand; called about once a second."""
        self.marks.append((now, self.pages, self.visits))
        while len(self.marks) > 2 and now - self.marks[0][0] > RATE_WINDOW:
            self.marks.popleft()

    def pages_per_second(self) -> float:
        """Return the rate over the last RATE_WINDOW seconds."""
        return self._rate(1)

    def visits_per_second(self) -> float:
        """Return the rate over the last RATE_WINDOW seconds."""
        return self._rate(2)

    def average(self, now: float) -> float:
        """Return the pages per second since the run began."""
        return self.pages / max(now - self.started, 0.001)

    def _rate(self, column: int) -> float:
        if len(self.marks) < 2:
            return 0.0
        first, last = self.marks[0], self.marks[-1]
        return (last[column] - first[column]) / max(last[0] - first[0], 0.001)


def _fields(counters: Counters) -> list[tuple[str, Any]]:
    return [(name, getattr(counters, name)) for name in Counters.__struct_fields__]


def ceiling_share(visits_per_second: float, domains_with_work: int, delay: float) -> float | None:
    """Return the visits made as a share of those that politeness allows; None if the delay is 0."""
    if delay <= 0 or domains_with_work <= 0:
        return None
    # Over 1 when domains ran out of work after their visit: they are no longer among `domains_with_work`.
    return min(1.0, visits_per_second / (domains_with_work / delay))
