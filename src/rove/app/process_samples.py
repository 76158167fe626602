"""Collects the samples of the processes of this machine, until they are taken.

Each process makes a sample when a new slot of two seconds begins, by the clock that all processes of a machine share.
So a taker that comes a little after the beginning of a slot gets as many slots of each process each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rove.frontier.clock import steady_seconds
from rove.model.samples import Sample, combined

SLOT_SECONDS = 2.0
CHECK_SECONDS = 0.5


def current_slot() -> int:
    """Return the number of the slot that has begun last."""
    return int(steady_seconds() / SLOT_SECONDS)


class ProcessSamples:
    """What each process has done since the samples were last taken."""

    def __init__(self) -> None:
        self._samples: dict[str, Sample] = {}

    def put(self, process: str, sample: Sample) -> None:
        """Add a sample of a process."""
        known = self._samples.get(process)
        self._samples[process] = sample if known is None else combined([known, sample])

    def take(self) -> list[Sample]:
        """Return one sample for each process that has sent any, also if it has ended since."""
        taken, self._samples = self._samples, {}
        return list(taken.values())

    async def keep_sampling(self, process: str, take: Callable[[], Sample]) -> None:
        """Take a sample of something in this process in each slot, until cancelled."""
        sampled = current_slot()
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            slot = current_slot()
            if slot != sampled:
                sampled = slot
                self.put(process, take())
