"""Measures the lag of the event loop, which must not count as response time of the servers.

A quick server seems slow to a process that is busy with other pages, and the crawl would slow down for it. A timer that
should fire fifty times a second measures the lag: the time by which it fires late.
"""

from __future__ import annotations

import asyncio
import time

TICK = 0.02


class LoopLag:
    """Sums up the lag of the running event loop."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._loop = asyncio.get_running_loop()
        self._schedule()

    @property
    def seconds(self) -> float:
        """The lag so far, including that of a timer which is due and has not fired."""
        late = time.monotonic() - self._due
        return self._seconds + late if late > 0 else self._seconds

    def close(self) -> None:
        """Stop measuring."""
        self._timer.cancel()

    def _schedule(self) -> None:
        self._due = time.monotonic() + TICK
        self._timer = self._loop.call_later(TICK, self._on_timer)

    def _on_timer(self) -> None:
        self._seconds = self.seconds
        self._schedule()
