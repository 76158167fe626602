"""Sample the CPU time and memory of processes from outside.

A thread takes four samples per second. The CPU time of a period is interpolated from the samples around its ends. All
times are those of the monotonic clock, like the times in the small web's log.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Self

import psutil

from benchmarks.web import BenchmarkFailed

PERIOD = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """CPU seconds since the start, and memory in bytes, at one moment."""

    at: float
    crawler_cpu: float
    server_cpu: float
    database_cpu: float
    machine_cpu: float
    """The whole machine, including time that the hypervisor gave to others."""
    crawler_rss: int
    """The sum over all its processes."""
    largest_rss: int
    """The largest of its processes."""
    server_rss: int


class Watch:
    """Samples a crawler, a server and, if there is one, a database while they run."""

    def __init__(self, crawler: int, server: int, database: int | None = None) -> None:
        self.samples: list[Sample] = []
        self._crawler = psutil.Process(crawler)
        self._server = psutil.Process(server)
        self._database = None if database is None else psutil.Process(database)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample_until_over, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def used(self, of: Callable[[Sample], float], start: float, end: float) -> float:
        """Return the CPU seconds used between two moments."""
        return self._at(of, end) - self._at(of, start)

    def _sample_until_over(self) -> None:
        while not self._over.is_set():
            try:
                crawler = _family(self._crawler)
                server = _family(self._server)
                database = _NOTHING if self._database is None else _family(self._database)
            except psutil.Error:  # one of them has ended
                return
            self.samples.append(
                Sample(
                    at=time.monotonic(),
                    crawler_cpu=crawler.cpu,
                    server_cpu=server.cpu,
                    database_cpu=database.cpu,
                    machine_cpu=_busy(psutil.cpu_times()),
                    crawler_rss=crawler.rss,
                    largest_rss=crawler.largest,
                    server_rss=server.rss,
                )
            )
            self._over.wait(PERIOD)

    def _at(self, of: Callable[[Sample], float], moment: float) -> float:
        """Interpolate a count between the samples around a moment."""
        after = bisect_right(self.samples, moment, key=lambda sample: sample.at)
        if not 0 < after < len(self.samples):
            raise BenchmarkFailed("a process ended before what was to be measured of it")
        one, other = self.samples[after - 1], self.samples[after]
        share = (moment - one.at) / (other.at - one.at)
        return of(one) + share * (of(other) - of(one))


def _busy(times: Any) -> float:
    """Return the seconds that cores were busy or taken away. A guest's time is included in the user's."""
    return float(sum(times) - times.idle - times.iowait - times.guest - times.guest_nice)


class _Family(NamedTuple):
    """Return a process and those that it started."""

    cpu: float
    rss: int
    largest: int


_NOTHING = _Family(0.0, 0, 0)


def _family(process: psutil.Process) -> _Family:
    """Return CPU seconds and resident bytes. The time of a process that has ended is in its parent's."""
    cpu, sizes = 0.0, []
    for member in (process, *process.children(recursive=True)):
        try:
            with member.oneshot():
                if member.status() == psutil.STATUS_ZOMBIE:
                    continue
                times = member.cpu_times()
                cpu += times.user + times.system + times.children_user + times.children_system
                sizes.append(member.memory_info().rss)
        except psutil.NoSuchProcess:
            if member is process:
                raise
    if not sizes:
        raise psutil.NoSuchProcess(process.pid)
    return _Family(cpu, sum(sizes), max(sizes))
