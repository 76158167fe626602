"""Histograms of durations by name. Recording one costs little more than an addition."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager

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
        self.longest = max(self.longest, seconds)

    def quantile(self, share: float) -> float:
        """Return an upper bound of this quantile."""
        wanted, seen = share * self.count, 0
        for bound, number in zip(BOUNDS, self.buckets, strict=False):
            seen += number
            if seen >= wanted:
                return min(bound, self.longest)
        return self.longest


class Timings:
    """One histogram per name."""

    def __init__(self) -> None:
        self.by_name: dict[str, Histogram] = {}

    def add(self, name: str, seconds: float) -> None:
        """Record a duration under a name."""
        histogram = self.by_name.get(name)
        if histogram is None:
            histogram = self.by_name[name] = Histogram()
        histogram.add(seconds)

    @contextmanager
    def measured(self, name: str) -> Iterator[None]:
        """Record how long a block takes, even if it raises."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - started)

    def lines(self) -> list[str]:
        """Return one line of text per name, the largest total first."""
        ordered = sorted(self.by_name.items(), key=lambda item: -item[1].total)
        return [
            f"{name}: {h.count:,} times, {h.total:.1f} s in all, p50 {1000 * h.quantile(0.5):.1f} ms, "
            f"p99 {1000 * h.quantile(0.99):.1f} ms, longest {1000 * h.longest:.1f} ms"
            for name, h in ordered
        ]
