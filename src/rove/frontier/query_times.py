"""The durations of queries and waits, by name."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum, auto
from threading import Lock

from rove.model.histogram import Histogram
from rove.model.samples import Distribution, merged
from rove.notation.log_line import log_line


class TimesReader(Enum):
    """Who takes the durations that are new to them."""

    LOG = auto()
    """The lines of the log, every minute."""
    SAMPLES = auto()
    """The samples of the history."""


class Timings:
    """One histogram per name: of everything so far, and of the time since each reader took it.

    Any thread may use it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._recent: dict[str, Histogram] = {}
        self._before: dict[str, Distribution] = {}
        self._untaken: dict[TimesReader, dict[str, Distribution]] = {reader: {} for reader in TimesReader}
        """For each reader, the durations that it has not taken, apart from the recent ones."""

    @property
    def by_name(self) -> dict[str, Distribution]:
        """All durations so far."""
        with self._lock:
            self._collect()
            return dict(self._before)

    def add(self, name: str, seconds: float) -> None:
        """Record a duration under a name."""
        with self._lock:
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

    def take_recent(self, reader: TimesReader) -> dict[str, Distribution]:
        """Return the durations since the reader's last call."""
        with self._lock:
            self._collect()
            taken, self._untaken[reader] = self._untaken[reader], {}
            return taken

    def _collect(self) -> None:
        recent, self._recent = self._recent, {}
        for name, histogram in recent.items():
            new = histogram.take()
            for known in (self._before, *self._untaken.values()):
                known[name] = merged([known[name], new]) if name in known else new


def timing_lines(event: str, by_name: Mapping[str, Distribution]) -> list[str]:
    """Return a line of the log for each name, the largest total first."""
    ordered = sorted(by_name.items(), key=lambda item: -item[1].total)
    return [
        log_line(
            event,
            name=name,
            times=times.count,
            total_s=times.total,
            p50_ms=1000 * times.quantile(0.5),
            p95_ms=1000 * times.quantile(0.95),
            max_ms=1000 * times.longest,
        )
        for name, times in ordered
    ]
