"""Records durations or sizes in a histogram. Recording one costs little more than an addition."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager

from rove.model.samples import SHORTEST_SECONDS, SMALLEST_BYTES, Distribution

BUCKETS = 20
"""Buckets with an upper bound; one more has none."""
DURATION_BOUNDS: tuple[float, ...] = tuple(SHORTEST_SECONDS * 2.0**i for i in range(BUCKETS))
"""Upper bounds of the buckets in seconds, from 0.1 ms to about a minute."""
SIZE_BOUNDS: tuple[float, ...] = tuple(SMALLEST_BYTES * 2.0**i for i in range(BUCKETS))
"""Upper bounds of the buckets in bytes, from 64 bytes to 32 MiB."""


class Histogram:
    """Values that were recorded since the last `take`."""

    __slots__ = ("_bounds", "_buckets", "_count", "_longest", "_total")

    def __init__(self, bounds: tuple[float, ...] = DURATION_BOUNDS) -> None:
        self._bounds = bounds
        self._buckets = [0] * (len(bounds) + 1)
        self._count = 0
        self._total = 0.0
        self._longest = 0.0

    def add(self, value: float) -> None:
        """Record a value."""
        self._buckets[bisect_left(self._bounds, value)] += 1
        self._count += 1
        self._total += value
        if value > self._longest:
            self._longest = value

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Record how long a block takes that does not raise."""
        started = time.perf_counter()
        yield
        self.add(time.perf_counter() - started)

    def take(self) -> Distribution:
        """Return the values so far and begin anew."""
        taken = Distribution(
            count=self._count,
            total=self._total,
            longest=self._longest,
            buckets={i: number for i, number in enumerate(self._buckets) if number},
            first=self._bounds[0],
        )
        self._buckets = [0] * len(self._buckets)
        self._count, self._total, self._longest = 0, 0.0, 0.0
        return taken
