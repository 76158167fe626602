"""Reads long robots.txt files without blocking the event loop, and without taking the time of other visits.

A farm of hosts may send half a megabyte of rules each. Such files are reduced to the lines that apply to rove, one file
at a time, in slices, and in at most a tenth of the process's time. If too many wait, further ones count as unreachable
for a while, like those of a server that does not respond.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from rove.policy.robots_lines import Reduced, reducing

SHARE = 0.1
"""The part of the process's time that long files may take."""
MAX_WAITING = 20


class LongRobots:
    """Reduces long robots.txt files in turn."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, share: float = SHARE, max_waiting: int = MAX_WAITING
    ) -> None:
        self._clock = clock
        self._pause_per_second = 1 / share - 1
        self._max_waiting = max_waiting
        self._waiting = 0
        self._turn = asyncio.Lock()
        self._free_at = 0.0

    @property
    def waiting(self) -> int:
        """How many files are being read or wait for their turn."""
        return self._waiting

    async def reduced(self, body: bytes) -> Reduced | None:
        """Return what applies to rove; None if too many files wait to be read."""
        if self._waiting >= self._max_waiting:
            return None
        self._waiting += 1
        try:
            async with self._turn:
                await asyncio.sleep(max(0.0, self._free_at - self._clock()))
                reduced, seconds = await _in_slices(body)
                self._free_at = self._clock() + seconds * self._pause_per_second
                return reduced
        finally:
            self._waiting -= 1


async def _in_slices(body: bytes) -> tuple[Reduced, float]:
    """Reduce a file; return the CPU time that it took."""
    work, seconds = reducing(body), 0.0
    while True:
        started = time.thread_time()
        try:
            next(work)
        except StopIteration as end:
            return end.value, seconds + time.thread_time() - started
        seconds += time.thread_time() - started
        await asyncio.sleep(0)
