"""Divides the time of a plot into steps, and tells which steps a sample covers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, floor, isfinite
from typing import NamedTuple

from rove.model.samples import Sample

SHORTEST_STEP = 10.0
"""Seconds between two samples: shorter steps would have none."""
_ROUND = (10, 20, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400)
_DAY = 86_400.0
_LEAST_SHARE = 0.1
"""A sample that covers less of a step is not counted there: samples do not begin exactly when steps do."""


class Covered(NamedTuple):
    """A step that a sample covers."""

    step: int
    seconds: float
    """How much of it."""
    has_middle: bool
    """Whether the middle of the sample is in this step, as it is in at most one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Consecutive steps of time of equal length."""

    start: float
    """Wall-clock seconds."""
    step: float
    count: int

    @property
    def end(self) -> float:
        """The end of the last step."""
        return self.start + self.step * self.count

    def until(self, end: float) -> Grid:
        """Return the steps that begin before a time, at least one."""
        return replace(self, count=min(self.count, max(1, ceil((end - self.start) / self.step))))

    def covered(self, sample: Sample) -> Iterator[Covered]:
        """Yield the steps that a sample covers."""
        if not (isfinite(sample.seconds) and sample.seconds > 0):
            return
        end = sample.ended / 1000 - self.start
        start = end - sample.seconds
        middle = floor((start + end) / 2 / self.step)
        least = _LEAST_SHARE * min(self.step, sample.seconds)
        for step in range(max(0, floor(start / self.step)), min(self.count, ceil(end / self.step))):
            seconds = min(end, (step + 1) * self.step) - max(start, step * self.step)
            if seconds >= least or step == middle:
                yield Covered(step, seconds, step == middle)


def grid_of(start: float, end: float, *, most: int, is_aligned: bool = True) -> Grid:
    """Divide a time into about `most` steps or fewer, of a round length. If `is_aligned`, they begin at round times.

    >>> grid_of(5.0, 3_600.0, most=100)
    Grid(start=0.0, step=60.0, count=60)
    """
    exact = max((end - start) / most, SHORTEST_STEP)
    place = bisect_left(_ROUND, exact)
    step = float(_ROUND[place]) if place < len(_ROUND) else ceil(exact / _DAY) * _DAY
    first = floor(start / step) * step if is_aligned else start
    return Grid(start=first, step=step, count=max(1, ceil((end - first) / step)))
