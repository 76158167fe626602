"""The numbers of a crawl that runs in this process and its workers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rove.app.limit_watch import LimitWatch
from rove.app.panel_view import View, left_text
from rove.crawl.limits import RemainingLimits
from rove.crawl.progress import Progress, ceiling_share
from rove.frontier.clock import steady_seconds
from rove.frontier.contract import Frontier


class RunView:
    """Collects the view of one run from its counters and its frontier."""

    def __init__(
        self,
        *,
        progress: Progress,
        frontier: Frontier,
        remaining_limits: RemainingLimits,
        limits: LimitWatch,
        is_whole_crawl: Callable[[], Awaitable[bool]],
        clock: Callable[[], float] = steady_seconds,
    ) -> None:
        """`limits` finds out what limits the crawl; `is_whole_crawl` tells whether this run is all of it."""
        self._progress = progress
        self._frontier = frontier
        self._remaining_limits = remaining_limits
        self._limits = limits
        self._is_whole_crawl = is_whole_crawl
        self._clock = clock

    async def view(self) -> View:
        """Collect the current numbers."""
        progress = self._progress
        counts = await self._frontier.counts()
        counters = progress.snapshot()
        is_waiting = not (counters.in_flight or counts.domains["ready"] or counts.domains["leased"])
        now, rate = self._clock(), progress.pages_per_second()
        return View(
            counters=counters,
            counts=counts,
            rate=rate,
            average=progress.average(now),
            share=ceiling_share(counts.domains),
            next_visit=await self._frontier.next_due() if is_waiting else None,
            left=left_text(
                seconds=self._remaining_limits.seconds_left(),
                pages=self._remaining_limits.pages_left(counts.pages),
                rate=rate,
            ),
            seconds=now - progress.started,
            is_whole_crawl=await self._is_whole_crawl(),
            is_stopping=progress.is_stopping,
            limiting=await self._limits.look(counts),
        )
