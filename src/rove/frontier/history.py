"""The history of a crawl: a part of the contract of a Frontier, and one of that of a FrontierReader."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from rove.model.samples import Sample


class History(Protocol):
    """Takes the samples of one machine."""

    @property
    def node(self) -> str:
        """The name of this machine, as in the records of participants."""

    async def add_samples(self, samples: Sequence[Sample]) -> None:
        """Append samples of this machine to the history. A sample that it has already is skipped."""

    async def roll_up_samples(self, now: int) -> bool:
        """Combine old samples into longer ones, in one small step; return whether there was anything to do.

        `now` is the wall clock in milliseconds. rows/samples.py says how long samples are kept as they are.
        """


class HistoryReader(Protocol):
    """Reads the samples of all machines."""

    def samples(
        self, *, since: float = -math.inf, until: float = math.inf, step: float = 10, node: str | None = None
    ) -> AsyncIterator[list[Sample]]:
        """Iterate over the history, oldest first: for each interval of `step` seconds one sample of each machine.

        Intervals in which no machine took a sample are left out. Samples that are stored for a longer time than `step`
        come as they are. With `node`, only those of this machine. The times are wall-clock seconds.
        """

    async def latest_samples(self) -> list[Sample]:
        """Return the latest sample of each machine."""
