"""Processes seen from outside: what the operating system says of their CPU time and memory.

A thread takes a sample four times a second; what was used in a window of time is reckoned from the samples
around its ends. The times are of the machine's steady clock, as those in the small web's log are.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import psutil

PERIOD = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Where things stood at one moment; CPU in seconds since ever, memory in bytes."""

    at: float
    crawler_cpu: float
    server_cpu: float
    machine_cpu: float
    """Of all processes, and the time that a hypervisor gave to others."""
    crawler_rss: int
    server_rss: int


class Watch:
    """Samples a crawler and a server while they run."""

    def __init__(self, crawler: int, server: int) -> None:
        self.samples: list[Sample] = []
        self._crawler = psutil.Process(crawler)
        self._server = psutil.Process(server)
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
        """CPU seconds that one of them used from start to end."""
        return self._at(of, end) - self._at(of, start)

    def _sample_until_over(self) -> None:
        while not self._over.is_set():
            try:
                crawler_cpu, crawler_rss = _family(self._crawler)
                server_cpu, server_rss = _family(self._server)
            except psutil.Error:  # one of them has ended
                return
            self.samples.append(
                Sample(
                    at=time.monotonic(),
                    crawler_cpu=crawler_cpu,
                    server_cpu=server_cpu,
                    machine_cpu=_busy(psutil.cpu_times()),
                    crawler_rss=crawler_rss,
                    server_rss=server_rss,
                )
            )
            self._over.wait(PERIOD)

    def _at(self, of: Callable[[Sample], float], moment: float) -> float:
        """A count at a moment, on the line between the samples around it."""
        after = bisect_right(self.samples, moment, key=lambda sample: sample.at)
        if not 0 < after < len(self.samples):
            raise SystemExit("a process ended before it was measured; see its output above")
        one, other = self.samples[after - 1], self.samples[after]
        share = (moment - one.at) / (other.at - one.at)
        return of(one) + share * (of(other) - of(one))


def _busy(times: Any) -> float:
    """Seconds in which cores were at work or away; a guest's time is in the user's already."""
    return float(sum(times) - times.idle - times.iowait - times.guest - times.guest_nice)


def _family(process: psutil.Process) -> tuple[float, int]:
    """CPU seconds and resident bytes of a process and those that it started."""
    cpu, rss = 0.0, 0
    for member in (process, *process.children(recursive=True)):
        with member.oneshot():
            if member.status() == psutil.STATUS_ZOMBIE:
                continue
            times = member.cpu_times()
            cpu += times.user + times.system
            rss += member.memory_info().rss
    if not rss:
        raise psutil.NoSuchProcess(process.pid)
    return cpu, rss
