"""Gathers the samples of one machine for the steps of a plot."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf

from rove.model.figures import Combining
from rove.model.samples import Distribution, merged
from rove.observe.grid import Covered

Values = list[float | None]
"""A value for each step; None where nothing was measured."""


class Coverage:
    """How much of each step the samples of a machine cover."""

    def __init__(self, count: int) -> None:
        self.seconds = _zeros(count)
        self.samples = _zeros(count)
        """The number of samples that have their middle in the step."""

    def add(self, steps: Sequence[Covered]) -> None:
        """Add a sample."""
        for step, seconds, has_middle in steps:
            self.seconds[step] += seconds
            self.samples[step] += has_middle

    @property
    def has_several(self) -> bool:
        """Whether a step has more than one sample."""
        return any(number > 1 for number in self.samples)


class Track:
    """The values of one curve on one machine, step by step."""

    def __init__(self, count: int, combining: Combining, *, is_zero_if_absent: bool, most_bridged: int) -> None:
        """A gauge that is not measured for at most `most_bridged` steps is drawn as a straight line."""
        self._combining = combining
        self.is_zero_if_absent = is_zero_if_absent
        self._most_bridged = most_bridged
        self._own = Coverage(count)
        self._total = _zeros(count)
        """Values times seconds."""
        self._least = array("d", [inf]) * count
        self._most = array("d", [-inf]) * count

    @property
    def has_bounds(self) -> bool:
        """Whether the samples of a step are averaged, so that their bounds tell more."""
        return self._combining not in (Combining.MIN, Combining.MAX)

    def add(self, value: float, steps: Sequence[Covered]) -> None:
        """Add the value of a sample."""
        self._own.add(steps)
        for step, seconds, has_middle in steps:
            self._total[step] += value * seconds
            if has_middle or not self._own.samples[step]:
                self._least[step] = min(self._least[step], value)
                self._most[step] = max(self._most[step], value)

    def values(self, machine: Coverage) -> Values:
        """Return a value for each step; `machine` tells which steps have samples."""
        match self._combining:
            case Combining.MIN:
                return self.least(machine)
            case Combining.MAX:
                return self.most(machine)
        if self.is_zero_if_absent:
            return [total / seconds if seconds else None for total, seconds in self._pairs(machine.seconds)]
        means = [total / seconds if seconds else None for total, seconds in self._pairs(self._own.seconds)]
        return bridged(means, machine.seconds, self._most_bridged)

    def _pairs(self, seconds: Sequence[float]) -> Iterable[tuple[float, float]]:
        return zip(self._total, seconds, strict=True)

    def least(self, machine: Coverage) -> Values:
        """Return the smallest sample of each step."""
        return [self._bound(step, min, self._least[step], machine) for step in range(len(self._total))]

    def most(self, machine: Coverage) -> Values:
        """Return the largest sample of each step."""
        return [self._bound(step, max, self._most[step], machine) for step in range(len(self._total))]

    def _bound(self, step: int, better: Callable[[float, float], float], own: float, machine: Coverage) -> float | None:
        if not self.is_zero_if_absent:
            return own if self._own.seconds[step] else None
        if not machine.seconds[step]:
            return None
        if not self._own.seconds[step]:
            return 0.0
        return better(own, 0.0) if self._own.samples[step] < machine.samples[step] else own


_MOST_PARTS = 100
"""More histograms of one step than these are merged at once."""


class Times:
    """The histograms of one curve, of all machines, step by step."""

    def __init__(self, count: int) -> None:
        self._parts: list[list[Distribution]] = [[] for _ in range(count)]

    def add(self, distribution: Distribution, steps: Sequence[Covered]) -> None:
        """Add the histogram of a sample."""
        for step, _, _ in steps:
            parts = self._parts[step]
            parts.append(distribution)
            if len(parts) >= _MOST_PARTS:
                parts[:] = [merged(parts)]

    def quantiles(self, share: float) -> Values:
        """Return the quantile of each step, None where nothing was measured."""
        together = [merged(parts) if parts else None for parts in self._parts]
        return [one.estimate(share) if one is not None and one.count else None for one in together]


def zeros_of(machines: Iterable[Coverage], count: int) -> Values:
    """Return zeros for the steps that samples of any machine cover."""
    covered = [False] * count
    for machine in machines:
        covered = [known or seconds > 0 for known, seconds in zip(covered, machine.seconds, strict=True)]
    return [0.0 if known else None for known in covered]


def bridged(values: Values, covered: Sequence[float], most: int) -> Values:
    """Fill in what was not measured between two values, in a straight line over fewer than `most` steps.

    The counters of a large crawl are not read for each sample. Steps that no sample covers stay empty.

    >>> bridged([1.0, None, 3.0, None, 5.0, None], [1, 1, 1, 0, 1, 1], 10)
    [1.0, 2.0, 3.0, None, 5.0, None]
    """
    filled = list(values)
    last: int | None = None
    for step, value in enumerate(values):
        if not covered[step]:
            last = None
        if value is None:
            continue
        if last is not None and 1 < step - last <= most:
            before = values[last] or 0.0
            for between in range(last + 1, step):
                filled[between] = before + (value - before) * (between - last) / (step - last)
        last = step
    return filled


def combined_values(parts: Sequence[Values], combining: Combining) -> Values:
    """Return one value for each step from those of several machines or curves.

    >>> combined_values([[1.0, None, 2.0], [3.0, None, None]], Combining.SUM)
    [4.0, None, 2.0]
    """
    if len(parts) == 1:
        return parts[0]
    combine = _COMBINE[combining]
    columns = ([value for value in column if value is not None] for column in zip(*parts, strict=True))
    return [combine(column) if column else None for column in columns]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


_COMBINE: Mapping[Combining, Callable[[Sequence[float]], float]] = {
    Combining.SUM: sum,
    Combining.MIN: min,
    Combining.MAX: max,
    Combining.MEAN: _mean,
    Combining.LAST: _mean,  # a figure of the whole crawl, which all machines tell alike
}


def _zeros(count: int) -> array[float]:
    return array("d", bytes(8 * count))
