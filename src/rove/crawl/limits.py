"""What a crawl may still do before a limit ends it, over all its processes and machines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rove.config import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingLimits:
    """The limits of a crawl, as they stand in this run."""

    limits: Limits
    seconds_before: float
    """What earlier runs have used up of the time."""
    started: float
    """When this run began, by `clock`."""
    clock: Callable[[], float]

    def seconds_left(self) -> float | None:
        """Seconds to the time limit, if there is one."""
        if self.limits.max_duration is None:
            return None
        return self.limits.max_duration - self.seconds_before - (self.clock() - self.started)

    def pages_left(self, stored: int) -> int | None:
        """Pages to the page limit, if there is one, with so many stored since the crawl first began."""
        if self.limits.max_pages is None:
            return None
        return self.limits.max_pages - (stored - self.limits.pages_before)
