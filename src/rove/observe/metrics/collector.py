"""Turns a reading into metrics as prometheus_client writes them."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from rove.observe.metrics.reading import Reading
from rove.observe.metrics.table import METRICS


class ReadingCollector(Collector):
    """The metrics of one reading."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def collect(self) -> Iterable[Metric]:
        """Return all metrics, also those that have no values yet."""
        return [metric.family(self._reading) for metric in METRICS]
