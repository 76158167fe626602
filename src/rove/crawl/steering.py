"""Measures the figures for policy/concurrency.py, and applies its decisions to the throttle."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from rove.crawl.throttle import Throttle
from rove.notation.log_line import log_line
from rove.policy.concurrency import Bounds, Figures, InFlight, decide, first
from rove.resources.loop_lag import mean_lag

SHORTEST_PERIOD = 0.5
"""Seconds between two decisions at least."""

log = logging.getLogger(__name__)


class Steering:
    """Adapts the number of visits in flight to the web and to the machine."""

    def __init__(
        self,
        bounds: Bounds,
        *,
        clock: Callable[[], float],
        lag_seconds: Callable[[], float] = lambda: 0.0,
        cpu_seconds: Callable[[], float] = time.thread_time,
    ) -> None:
        """`lag_seconds` returns the lag of the event loop so far, `cpu_seconds` the CPU time of its thread."""
        self.bounds = bounds
        self.state: InFlight = first(bounds)
        self.throttle = Throttle(self.state.limit)
        self._clock = clock
        self._lag_seconds = lag_seconds
        self._cpu_seconds = cpu_seconds
        self._decided_at = clock()
        self._lag, self._cpu = lag_seconds(), cpu_seconds()
        self._start_counting()

    @property
    def is_cut(self) -> bool:
        """Whether a shortage keeps the number lower than it could be."""
        return self.state.limit < self.bounds.start or self.state.is_short

    def note_visit(self, *, was_expected: bool, is_lost: bool) -> None:
        """Note that a visit has ended; `was_expected`: its site had answered before; `is_lost`: it did not answer."""
        self._visits += 1
        if was_expected:
            self._expected += 1
            self._lost += is_lost

    def note_file_shortage(self) -> None:
        """Note that a request failed because files, ports or socket buffers have run out."""
        self._file_shortages += 1

    def note_memory_shortage(self) -> None:
        """Note that bodies have to wait for memory."""
        self._memory_shortages += 1

    def update(self, *, are_waiting: bool, free_memory: float) -> InFlight:
        """Decide anew, about once a second, and return the decision.

        `are_waiting`: domains that are ready wait for a slot; `free_memory`: bytes for bodies and further fetches.
        """
        now = self._clock()
        seconds = now - self._decided_at
        if seconds < SHORTEST_PERIOD:
            return self.state
        lag, cpu = self._lag_seconds(), self._cpu_seconds()
        figures = Figures(
            seconds=seconds,
            are_waiting=are_waiting,
            cpu=(cpu - self._cpu) / seconds,
            lag=mean_lag(lag - self._lag, seconds),
            rate=self._visits / seconds,
            free_memory=free_memory,
            memory_shortages=self._memory_shortages,
            file_shortages=self._file_shortages,
            expected=self._expected,
            lost=self._lost,
        )
        self._decided_at, self._lag, self._cpu = now, lag, cpu
        self._start_counting()
        self.state = decide(self.state, figures, self.bounds)
        self.throttle.limit = self.state.limit
        if log.isEnabledFor(logging.DEBUG):
            self._log(figures)
        return self.state

    def _start_counting(self) -> None:
        self._visits = self._expected = self._lost = 0
        self._file_shortages = self._memory_shortages = 0

    def _log(self, figures: Figures) -> None:
        state = self.state
        free = figures.free_memory
        log.debug(
            "%s",
            log_line(
                "in-flight",
                limit=state.limit,
                held_by=state.held_by,
                waiting=figures.are_waiting,
                cpu=figures.cpu,
                lag=figures.lag,
                rate=figures.rate,
                free_mib=None if math.isinf(free) else round(free / (1 << 20)),
                expected=figures.expected,
                lost=figures.lost,
                brink=None if math.isinf(state.brink) else round(state.brink),
            ),
        )
