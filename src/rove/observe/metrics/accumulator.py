"""Adds up the samples of this machine: metrics count from the begin of the command, and samples of an interval."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping

from rove.model.figures import Combining, figure_of
from rove.model.samples import Distribution, Sample, merged
from rove.observe.metrics.reading import ProcessReading, Reading
from rove.policy.limiting import Factor, Limiting

TRIAL = "trial"
"""The process that tries suspects. It runs only while there are any."""
HELD = 12
"""Samples for which an extreme value is shown: two minutes, because metrics are often collected only once a minute."""
HELD_OF_CRAWL = 60
"""Samples for which a figure of the whole crawl is shown if newer ones do not have it: ten minutes."""
_EXTREMES: Mapping[str, Callable[[Iterable[float]], float]] = {"margin.smallest": min, "lag.longest": max}


class Accumulator:
    """The figures of this machine since the command began."""

    def __init__(self) -> None:
        self._recent: deque[Sample] = deque(maxlen=HELD_OF_CRAWL)
        self._totals: dict[str, float] = {}
        self._gauges: dict[str, float] = {}
        self._histograms: dict[str, Distribution] = {}
        self._processes: set[str] = set()
        self._open_files: Mapping[str, Mapping[str, float]] = {}
        self._last_page: float | None = None
        self._factor = Factor.UNKNOWN
        self._reading: Reading | None = None

    def noted(self, processes: list[Sample]) -> list[Sample]:
        """Note the samples of single processes of which the next sample is made, and return them."""
        self._open_files = {name: part.family("open_files.") for part in processes for name in part.family("rss.")}
        return processes

    def take(self, sample: Sample, *, limiting: Limiting | None = None) -> None:
        """Add the sample of one more interval, and what limited the crawl in it."""
        self._factor = Factor.UNKNOWN if limiting is None else limiting.factor
        self._reading = None
        self._recent.append(sample)
        self._gauges = {}
        for name, value in sample.figures.items():
            if figure_of(name).is_count:
                self._totals[name] = self._totals.get(name, 0.0) + value
            else:
                self._gauges[name] = value
        for name, distribution in sample.histograms.items():
            known = self._histograms.get(name)
            self._histograms[name] = distribution if known is None else merged([known, distribution])
        self._processes.update(sample.family("rss."), sample.family("cpu."))
        if sample.total("pages."):
            self._last_page = sample.ended / 1000

    def reading(self) -> Reading:
        """Return the figures as they are now; the same object until the next sample."""
        if self._reading is None:
            self._reading = self._new_reading()
        return self._reading

    def _new_reading(self) -> Reading:
        return Reading(
            totals=dict(self._totals),
            gauges=self._held() | self._gauges | self._extremes(),
            histograms=dict(self._histograms),
            processes={name: self._process(name) for name in sorted(self._processes)},
            last_page=self._last_page,
            limiting_factor=self._factor,
        )

    def _held(self) -> dict[str, float]:
        """Return the figures of the whole crawl as they were last known: a slow database is not asked every time."""
        return {
            name: value
            for sample in self._recent
            for name, value in sample.figures.items()
            if figure_of(name).over_machines is Combining.LAST
        }

    def _extremes(self) -> dict[str, float]:
        found = {}
        for name, worst in _EXTREMES.items():
            latest = list(self._recent)[-HELD:]
            values = [sample.figures[name] for sample in latest if name in sample.figures]
            if values:
                found[name] = worst(values)
        return found

    def _process(self, name: str) -> ProcessReading:
        resident = self._gauges.get(f"rss.{name}")
        is_up = resident is not None
        return ProcessReading(
            is_up=None if name == TRIAL and not is_up else is_up,
            resident=resident,
            cpu_seconds=self._totals.get(f"cpu.{name}"),
            open_files=self._open_files.get(name, {}),
        )
