"""Measures the lag of the event loop: how late it is, because it is busy with other things.

A timer that should fire fifty times a second measures the lag: the time by which it fires late. The lag must not count
as response time of the servers: a quick server seems slow to a process that is busy with other pages, and the crawl
would slow down for it. It also says whether the process has time for more fetches.
"""

from __future__ import annotations

import asyncio
import time

TICK = 0.02


class LoopLag:
    """Sums up the lag of the running event loop."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self.longest = 0.0
        """The longest time by which the timer was late, in seconds: the longest stop of the event loop."""
        self._recent_longest = 0.0
        self._loop = asyncio.get_running_loop()
        self._schedule()

    @property
    def seconds(self) -> float:
        """The lag so far, including that of a timer which is due and has not fired."""
        late = time.monotonic() - self._due
        return self._seconds + late if late > 0 else self._seconds

    def take_longest(self) -> float:
        """Return the longest stop since the last call, in seconds."""
        taken, self._recent_longest = self._recent_longest, 0.0
        return taken

    def close(self) -> None:
        """Stop measuring."""
        self._timer.cancel()

    def _schedule(self) -> None:
        self._due = time.monotonic() + TICK
        self._timer = self._loop.call_later(TICK, self._on_timer)

    def _on_timer(self) -> None:
        before, self._seconds = self._seconds, self.seconds
        stop = self._seconds - before
        self.longest = max(self.longest, stop)
        self._recent_longest = max(self._recent_longest, stop)
        self._schedule()


def mean_lag(lag: float, seconds: float) -> float:
    """Return how late the timer was on average, in a period of `seconds` in which the lag has grown by `lag`.

    >>> round(mean_lag(0.0, 1.0), 3), round(mean_lag(0.5, 1.0), 3), round(mean_lag(2.0, 2.0), 3)
    (0.0, 0.02, 2.0)
    """
    times_fired = max(1.0, (seconds - lag) / TICK)
    return lag / times_fired
