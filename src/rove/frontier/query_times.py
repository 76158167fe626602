"""Histograms of durations by name. Recording one costs little more than an addition."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rove.notation.log_line import log_line

BOUNDS: tuple[float, ...] = tuple(0.0001 * 2.0**i for i in range(20))
"""Upper bounds of the buckets in seconds, from 0.1 ms to about a minute. One more bucket has no upper bound."""


class Histogram:
    """A histogram of durations."""

    __slots__ = ("buckets", "count", "longest", "total")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.count = 0
        self.total = 0.0
        self.longest = 0.0

    def add(self, seconds: float) -> None:
        """Record a duration."""
        self.buckets[bisect_left(BOUNDS, seconds)] += 1
        self.count += 1
        self.total += seconds
        if seconds > self.longest:
            self.longest = seconds

    def merge(self, other: Histogram) -> None:
        """Add the durations of another histogram."""
        self.buckets = [ours + theirs for ours, theirs in zip(self.buckets, other.buckets, strict=True)]
        self.count += other.count
        self.total += other.total
        self.longest = max(self.longest, other.longest)

    def quantile(self, share: float) -> float:
        """Return an upper bound of this quantile."""
        wanted, seen = share * self.count, 0
        for bound, number in zip(BOUNDS, self.buckets, strict=False):
            seen += number
            if seen >= wanted:
                return min(bound, self.longest)
        return self.longest


class Timings:
    """One histogram per name: of everything so far, and of the time since `take_recent` was last called."""

    def __init__(self) -> None:
        self._recent: dict[str, Histogram] = {}
        self._before: dict[str, Histogram] = {}

    @property
    def by_name(self) -> dict[str, Histogram]:
        """All durations so far."""
        merged: dict[str, Histogram] = {}
        for part in (self._before, self._recent):
            for name, histogram in part.items():
                merged.setdefault(name, Histogram()).merge(histogram)
        return merged

    def add(self, name: str, seconds: float) -> None:
        """Record a duration under a name."""
        histogram = self._recent.get(name)
        if histogram is None:
            histogram = self._recent[name] = Histogram()
        histogram.add(seconds)

    @contextmanager
    def measured(self, name: str) -> Iterator[None]:
        """Record how long a block takes, even if it raises."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - started)

    def take_recent(self) -> dict[str, Histogram]:
        """Return the durations since the last call; to be called by the thread that adds them."""
        recent = self._recent
        self._before, self._recent = self.by_name, {}
        return recent


def timing_lines(event: str, by_name: Mapping[str, Histogram]) -> list[str]:
    """Return a line of the log for each name, the largest total first."""
    ordered = sorted(by_name.items(), key=lambda item: -item[1].total)
    return [
        log_line(
            event,
            name=name,
            times=histogram.count,
            total_s=histogram.total,
            p50_ms=1000 * histogram.quantile(0.5),
            p95_ms=1000 * histogram.quantile(0.95),
            max_ms=1000 * histogram.longest,
        )
        for name, histogram in ordered
    ]
