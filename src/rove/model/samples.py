"""Samples: the work and the state of a machine in an interval of a few seconds, as figures and histograms.

`rove.model.figures` lists all figures and says how each is combined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from rove.model.figures import Combining, figure_of

SHORTEST_SECONDS = 0.0001
"""Upper bound of the first bucket of durations. Each further bucket ends at twice the bound of the one before."""
SMALLEST_BYTES = 64.0
"""Upper bound of the first bucket of sizes."""


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """A histogram of durations in seconds, or of sizes in bytes."""

    count: int = 0
    total: float = 0.0
    longest: float = 0.0
    """The largest value."""
    buckets: Mapping[int, int] = msgspec.field(default_factory=dict)
    """The number of values in each bucket that is not empty. Bucket i ends at `first * 2**i`; the last one that is used
    may hold larger values too."""
    first: float = SHORTEST_SECONDS
    """Upper bound of bucket 0."""

    @property
    def mean(self) -> float:
        """The mean, 0 without values."""
        return self.total / self.count if self.count else 0.0

    def quantile(self, share: float) -> float:
        """Return an upper bound of this quantile, at most twice as large; 0 without values."""
        wanted, seen = share * self.count, 0
        for i in sorted(self.buckets):
            seen += self.buckets[i]
            if seen >= wanted and seen < self.count:
                return min(self.first * 2.0**i, self.longest)
        return self.longest

    def estimate(self, share: float) -> float:
        """Return an estimate of this quantile, which lies within its bucket, so that a curve has no stairs."""
        wanted, seen = share * self.count, 0
        last = max(self.buckets, default=0)
        for i in sorted(self.buckets):
            number = self.buckets[i]
            if seen + number >= wanted:
                low = self.first * 2.0 ** (i - 1) if i else 0.0
                high = self.longest if i == last else self.first * 2.0**i
                return min(low + (high - low) * (wanted - seen) / number, self.longest)
            seen += number
        return self.longest


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """The work and the state of one machine in an interval."""

    node: str
    """The machine; '' if several are added together."""
    ended: int
    """The end of the interval, in milliseconds of the wall clock (UTC)."""
    seconds: float
    """The length of the interval."""
    figures: Mapping[str, float] = msgspec.field(default_factory=dict)
    """A count that is absent is 0. Anything else that is absent was not measured."""
    histograms: Mapping[str, Distribution] = msgspec.field(default_factory=dict)

    def rate(self, name: str) -> float:
        """Return a count per second."""
        return self.figures.get(name, 0.0) / self.seconds if self.seconds else 0.0

    def family(self, prefix: str) -> dict[str, float]:
        """Return the figures whose names begin with a prefix, such as `errors.page.`, without it."""
        return {name.removeprefix(prefix): value for name, value in self.figures.items() if name.startswith(prefix)}

    def total(self, prefix: str) -> float:
        """Return the sum of the figures whose names begin with a prefix."""
        return sum(self.family(prefix).values())


def combined(samples: Sequence[Sample]) -> Sample:
    """Return one sample for those of one machine that follow each other, oldest first."""
    last = samples[-1]
    return Sample(
        node=last.node,
        ended=last.ended,
        seconds=sum(sample.seconds for sample in samples),
        figures=_figures(samples, lambda name: figure_of(name).over_time),
        histograms=_histograms(samples),
    )


def together(samples: Sequence[Sample]) -> Sample:
    """Return one sample for those of several machines at about the same time."""
    if len(samples) == 1:
        return samples[0]
    by_time = sorted(samples, key=lambda sample: sample.ended)
    return Sample(
        node="",
        ended=by_time[-1].ended,
        seconds=max(sample.seconds for sample in samples),
        figures=_figures(by_time, lambda name: figure_of(name).over_machines),
        histograms=_histograms(samples),
    )


def _figures(samples: Sequence[Sample], combining_of: Callable[[str], Combining]) -> dict[str, float]:
    names = dict.fromkeys(name for sample in samples for name in sample.figures)
    return {name: _value(name, samples, combining_of(name)) for name in names}


def _value(name: str, samples: Sequence[Sample], combining: Combining) -> float:
    has_zeros = figure_of(name).is_zero_if_absent
    measured = [
        (sample.figures.get(name, 0.0), sample.seconds) for sample in samples if has_zeros or name in sample.figures
    ]
    values = [value for value, _ in measured]
    match combining:
        case Combining.SUM:
            return sum(values)
        case Combining.MAX:
            return max(values)
        case Combining.MIN:
            return min(values)
        case Combining.MEAN:
            seconds = math.fsum(length for _, length in measured)
            if not seconds:
                return sum(values) / len(values)
            return math.fsum(value * length for value, length in measured) / seconds
        case Combining.LAST:
            return values[-1]
    raise ValueError(f"{name} is a histogram")


def _histograms(samples: Iterable[Sample]) -> dict[str, Distribution]:
    parts: dict[str, list[Distribution]] = {}
    for sample in samples:
        for name, distribution in sample.histograms.items():
            parts.setdefault(name, []).append(distribution)
    return {name: merged(distributions) for name, distributions in parts.items()}


def merged(distributions: Sequence[Distribution]) -> Distribution:
    """Return one histogram of the values of several that have the same buckets."""
    if len(distributions) == 1:
        return distributions[0]
    buckets: dict[int, int] = {}
    for distribution in distributions:
        for i, number in distribution.buckets.items():
            buckets[i] = buckets.get(i, 0) + number
    return Distribution(
        count=sum(distribution.count for distribution in distributions),
        total=math.fsum(distribution.total for distribution in distributions),
        longest=max(distribution.longest for distribution in distributions),
        buckets=buckets,
        first=distributions[0].first,
    )
