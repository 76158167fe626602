"""Counts and measures the work of one process between two samples.

The crawl adds to it while it works, at a cost of a few microseconds for each page. About every two seconds the meter is
emptied into a sample. The samples of all processes of the machine together become one of the history.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from rove.crawl.resting import Resting
from rove.frontier.contract import Frontier
from rove.frontier.rows.requests import delay_in_force
from rove.model.figures import Unit, figure_of
from rove.model.histogram import DURATION_BOUNDS, SIZE_BOUNDS, Histogram
from rove.model.ledger import DelaySource, RequestRow
from rove.model.reasons import PauseCause
from rove.model.request_counts import counter_names
from rove.model.samples import Distribution, Sample
from rove.model.visits import VisitResult
from rove.resources.open_files import FileKind


class Meter:
    """The figures of one process since the last sample."""

    def __init__(
        self,
        process: str,
        *,
        delay: float,
        clock: Callable[[], float],
        cpu_seconds: Callable[[], float] = time.process_time,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """`process` is the name of the process in figures such as `cpu.1`; `delay` is the operator's."""
        self.process = process
        self.counts: Counter[str] = Counter()
        """Add to it under a name of the table of figures."""
        self._histograms: dict[str, Histogram] = {}
        self._delay = delay
        self._clock = clock
        self._cpu_seconds = cpu_seconds
        self._wall_clock = wall_clock
        self._smallest_margin = math.inf
        self._page_sizes, self._rests = self.histogram("page_size"), self.histogram("rest")
        self._resting = Resting()
        self._began, self._cpu = clock(), cpu_seconds()

    def histogram(self, name: str) -> Histogram:
        """Return the histogram of a figure, to which values may be added at any time."""
        if name not in self._histograms:
            bounds = SIZE_BOUNDS if figure_of(name).unit is Unit.BYTES else DURATION_BOUNDS
            self._histograms[name] = Histogram(bounds)
        return self._histograms[name]

    def note_margin(self, seconds: float) -> None:
        """Note by how much longer than required a domain had rested when its visit began."""
        if seconds < self._smallest_margin:
            self._smallest_margin = seconds

    def note_links(self, *, found: int, new: int, not_taken: Mapping[str, int], evicted: int) -> None:
        """Count the links of some visits. `not_taken` are those that were refused, by reason."""
        counts = self.counts
        refused = 0
        for reason, number in not_taken.items():
            counts[f"not_taken.{reason}"] += number
            refused += number
        counts["links.found"] += found
        counts["links.new"] += new
        counts["links.known"] += max(0, found - new - refused)
        counts["links.evicted"] += evicted

    def note_settled(self, visits: Iterable[VisitResult], *, lost: int) -> None:
        """Count visits that were settled; `lost` of them had lost their lease."""
        counts, now = self.counts, self._clock()
        for visit in visits:
            reason = visit.no_request_reason
            if reason is None:
                counts["visits"] += 1
                counts["leases.requested"] += 1
                rest, source = delay_in_force(visit, self._delay, visit.lease.crawl_delay)
                counts[f"rests.{source}"] += 1
                self._rests.add(rest)
                if source is not DelaySource.DELAY:
                    self._resting.begin(source, rest, now=now)
                for row in visit.requests:
                    self._note_request(row)
            else:
                counts["leases.without_request"] += 1
                counts[f"no_request.{reason}"] += 1
        counts["leases_lost"] += lost

    def _note_request(self, row: RequestRow) -> None:
        counts = self.counts
        counts["bytes.received"] += row.size
        for name in counter_names(row.kind, row.error):
            counts[name] += 1
        for mark in row.marks:
            counts[f"marks.{mark}"] += 1
        if row.content_hash is not None:
            counts["pages.copy" if row.is_copy else "pages.stored"] += 1
            for store, where in (("text", row.text), ("raw", row.raw)):
                if where is not None:
                    counts["bytes.stored"] += where.length
                    counts[f"bytes.stored.{store}"] += where.length
            self._page_sizes.add(row.size)

    def take(self, gauges: Mapping[str, float], query_times: Mapping[str, Distribution]) -> Sample:
        """Return what this process has done since the last call, with the given gauges and durations of queries."""
        now, cpu = self._clock(), self._cpu_seconds()
        figures: dict[str, float] = {name: number for name, number in self.counts.items() if number}
        figures[f"cpu.{self.process}"] = cpu - self._cpu
        figures |= {f"slowed.{cause}": number for cause, number in self._resting.counts(now).items()}
        if self._smallest_margin < math.inf:
            figures["margin.smallest"] = self._smallest_margin
        histograms = {name: histogram.take() for name, histogram in self._histograms.items()}
        sample = Sample(
            node="",
            ended=round(self._wall_clock() * 1000),
            seconds=now - self._began,
            figures={**figures, **gauges},
            histograms={name: times for name, times in histograms.items() if times.count}
            | {f"query.{name}": times for name, times in query_times.items()},
        )
        self.counts.clear()
        self._smallest_margin = math.inf
        self._began, self._cpu = now, cpu
        return sample


def database_figures(frontier: Frontier) -> dict[str, float]:
    """Return the figures of a process's connections to the database."""
    connections = {f"database.connections.{state}": number for state, number in frontier.connections().items()}
    return {"database.up": 0 if frontier.troubles().get(PauseCause.DATABASE) else 1, **connections}


def files_figures(files: Mapping[FileKind, int]) -> dict[str, float]:
    """Return the figures of a process's open files."""
    return {f"open_files.{kind}": number for kind, number in files.items()}
