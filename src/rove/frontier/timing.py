"""How long things take, by name: histograms that cost an addition each."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager

BOUNDS: tuple[float, ...] = tuple(0.0001 * 2.0**i for i in range(20))
"""Upper ends of the buckets, in seconds: from a tenth of a millisecond to about a minute; one more is open."""


class Histogram:
    """Counts of durations by size."""

    __slots__ = ("buckets", "count", "longest", "total")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.count = 0
        self.total = 0.0
        self.longest = 0.0

    def add(self, seconds: float) -> None:
        """Count one more."""
        self.buckets[bisect_left(BOUNDS, seconds)] += 1
        self.count += 1
        self.total += seconds
        self.longest = max(self.longest, seconds)

    def quantile(self, share: float) -> float:
        """An upper bound of what this share of the durations stayed under."""
        wanted, seen = share * self.count, 0
        for bound, number in zip(BOUNDS, self.buckets, strict=False):
            seen += number
            if seen >= wanted:
                return min(bound, self.longest)
        return self.longest


class Timings:
    """One histogram a name."""

    def __init__(self) -> None:
        self.by_name: dict[str, Histogram] = {}

    def add(self, name: str, seconds: float) -> None:
        """Count a duration."""
        histogram = self.by_name.get(name)
        if histogram is None:
            histogram = self.by_name[name] = Histogram()
        histogram.add(seconds)

    @contextmanager
    def measured(self, name: str) -> Iterator[None]:
        """Time a block, however it ends."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - started)

    def lines(self) -> list[str]:
        """One line a name, the costliest first."""
        ordered = sorted(self.by_name.items(), key=lambda item: -item[1].total)
        return [
            f"{name}: {h.count:,} times, {h.total:.1f} s in all, p50 {1000 * h.quantile(0.5):.1f} ms, "
            f"p99 {1000 * h.quantile(0.99):.1f} ms, longest {1000 * h.longest:.1f} ms"
            for name, h in ordered
        ]
