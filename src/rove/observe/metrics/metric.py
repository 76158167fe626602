"""One metric: its name, type, labels and help, and how its values follow from the figures."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from rove.model.samples import Distribution
from rove.observe.metrics.reading import Reading

PREFIX = "rove_"
_UNITS = ("seconds", "bytes", "ratio")

Labels = tuple[str, ...]


class Kind(enum.StrEnum):
    """The type of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricKind:
    """A metric, as it is the same in every crawl."""

    name: str
    kind: Kind
    labels: Labels
    help: str

    @property
    def unit(self) -> str:
        """The unit at the end of the name; '' if it has none."""
        return next((unit for unit in _UNITS if self.name.removesuffix("_total").endswith(f"_{unit}")), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Values(MetricKind):
    """A counter or gauge."""

    read: Callable[[Reading], Mapping[Labels, float]]

    def family(self, reading: Reading) -> Metric:
        """Return the metric with its values."""
        family: CounterMetricFamily | GaugeMetricFamily
        if self.kind is Kind.COUNTER:
            family = CounterMetricFamily(self.name, self.help, labels=self.labels, unit=self.unit)
        else:
            family = GaugeMetricFamily(self.name, self.help, labels=self.labels, unit=self.unit)
        for labels, value in self.read(reading).items():
            family.add_metric(labels, value)
        return family


@dataclass(frozen=True, slots=True, kw_only=True)
class Distributions(MetricKind):
    """A histogram."""

    bounds: Iterable[int]
    """The buckets of a Distribution at whose ends this metric has buckets."""
    read: Callable[[Reading], Mapping[Labels, Distribution]]

    def family(self, reading: Reading) -> Metric:
        """Return the metric with its values."""
        family = HistogramMetricFamily(self.name, self.help, labels=self.labels, unit=self.unit)
        for labels, distribution in self.read(reading).items():
            family.add_metric(labels, self._buckets(distribution), sum_value=distribution.total)
        return family

    def _buckets(self, distribution: Distribution) -> list[tuple[str, float]]:
        ends = [
            (
                repr(distribution.first * 2.0**bound),
                float(sum(count for index, count in distribution.buckets.items() if index <= bound)),
            )
            for bound in self.bounds
        ]
        return [*ends, ("+Inf", float(distribution.count))]
