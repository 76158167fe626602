"""How much of its time the event loop was late: time that must not be taken for the servers'.

A server that answers at once seems slow to a process that is busy with other pages, and would be asked less often for
it. A timer that ought to come fifty times a second tells: what it comes too late by is our own time.
"""

from __future__ import annotations

import asyncio
import time

TICK = 0.02


class LoopLag:
    """The seconds by which the event loop was late, all in all, since this was made in it."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._loop = asyncio.get_running_loop()
        self._plan()

    @property
    def seconds(self) -> float:
        """How late it was so far, and is: a timer that is due and has not come counts already."""
        late = time.monotonic() - self._due
        return self._seconds + late if late > 0 else self._seconds

    def close(self) -> None:
        """Count no more."""
        self._timer.cancel()

    def _plan(self) -> None:
        self._due = time.monotonic() + TICK
        self._timer = self._loop.call_later(TICK, self._look)

    def _look(self) -> None:
        self._seconds = self.seconds
        self._plan()
