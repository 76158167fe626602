"""How many links led to known URLs, summed over the history of a crawl."""

from __future__ import annotations

import time
from collections.abc import Callable

from rove.frontier.contract import FrontierReader

STEP = 600.0
"""Samples are read for intervals of this length: the longest that the history stores."""
SECONDS = 0.3
"""How long an update may read. A long history is read in several updates."""


class LinkTotals:
    """Adds up the history once, and then only what is new."""

    def __init__(self, *, seconds: float = SECONDS, clock: Callable[[], float] = time.time, step: float = STEP) -> None:
        self._seconds = seconds
        self._clock = clock
        self._step = step
        self._until = 0.0
        """Wall-clock seconds up to which the intervals are complete and added."""
        self._known = 0.0

    async def known(self, reader: FrontierReader) -> int | None:
        """Read what is new; return the links to known URLs, None while the history has not been read to its end."""
        deadline = time.monotonic() + self._seconds
        complete = self._clock() // self._step * self._step
        recent = 0.0
        async for group in reader.samples(since=self._until, step=self._step):
            known = sum(sample.figures.get("links.known", 0.0) for sample in group)
            end = -(-min(sample.ended for sample in group) // round(1000 * self._step)) * self._step
            if end > complete:
                recent += known
                continue
            self._known += known
            self._until = end
            if time.monotonic() > deadline:
                return None
        return round(self._known + recent)
