"""How much time and how many pages a crawl has left, over all its processes and machines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rove.config import Limits
from rove.frontier.clock import steady_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingLimits:
    """The limits of a crawl and how much of them earlier runs have used."""

    limits: Limits
    seconds_before: float
    """Time that earlier runs have used."""
    started: float
    """When this run began, by `clock`."""
    clock: Callable[[], float] = steady_seconds

    def seconds_left(self) -> float | None:
        """Return the seconds until the time limit, None if there is no limit."""
        if self.limits.max_duration is None:
            return None
        return self.limits.max_duration - self.seconds_before - (self.clock() - self.started)

    def pages_left(self, stored: int) -> int | None:
        """Return the pages until the page limit, None if there is no limit; `stored` counts all pages of the crawl."""
        return self.limits.pages_left(stored)
