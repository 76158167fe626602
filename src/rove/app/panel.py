"""Shows a running crawl: as a panel on a terminal, elsewhere as one line of text from time to time."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable

from rich.console import Console

from rove.app.live_area import LiveArea
from rove.app.panel_layout import Dashboard
from rove.app.panel_view import View, plain_line
from rove.crawl.limits import RemainingLimits
from rove.crawl.progress import Progress, ceiling_share
from rove.crawl.shutdown import wait_for_event
from rove.frontier.clock import steady_seconds
from rove.frontier.contract import Frontier
from rove.model.counts import Counts
from rove.notation.humanize import counted, seconds_text

TERMINAL_SECONDS = 1.0
PLAIN_SECONDS = 10.0


class Panel:
    """Shows a crawl until the task is cancelled."""

    def __init__(
        self,
        console: Console,
        *,
        progress: Progress,
        frontier: Frontier,
        remaining_limits: RemainingLimits,
        is_whole_crawl: Callable[[], Awaitable[bool]],
        clock: Callable[[], float] = steady_seconds,
        plain_seconds: float = PLAIN_SECONDS,
    ) -> None:
        """`is_whole_crawl` tells whether there is no earlier run and no other machine.

        `plain_seconds` is the time between two lines where there is no terminal.
        """
        self._console = console
        self._progress = progress
        self._frontier = frontier
        self._remaining_limits = remaining_limits
        self._is_whole_crawl = is_whole_crawl
        self._clock = clock
        self._plain_seconds = plain_seconds
        self._area: LiveArea | None = None

    async def show(self) -> None:
        """Show the current numbers again and again."""
        if self._console.is_terminal:
            await self._draw()
        while True:
            await asyncio.sleep(self._plain_seconds)
            self._console.print(plain_line(await self.view()), soft_wrap=True)

    async def _draw(self) -> None:
        resized = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGWINCH, resized.set)
        try:
            with LiveArea(self._console) as area:
                self._area = area
                while True:
                    resized.clear()
                    area.draw(Dashboard(await self.view()))
                    await wait_for_event(resized, TERMINAL_SECONDS)
        finally:
            self._area = None
            loop.remove_signal_handler(signal.SIGWINCH)

    def erase(self) -> None:
        """Leave the terminal as it was, if the process ends before `show` is cancelled."""
        if self._area is not None:
            self._area.close()

    async def view(self) -> View:
        """Collect the current numbers."""
        progress = self._progress
        counts = await self._frontier.counts()
        counters = progress.snapshot()
        is_waiting = not (counters.in_flight or counts.domains["ready"] or counts.domains["leased"])
        now = self._clock()
        return View(
            counters=counters,
            counts=counts,
            rate=progress.pages_per_second(),
            average=progress.average(now),
            share=ceiling_share(counts.domains),
            next_visit=await self._frontier.next_due() if is_waiting else None,
            left=self._left(counts),
            seconds=now - progress.started,
            is_whole_crawl=await self._is_whole_crawl(),
            is_stopping=progress.is_stopping,
        )

    def _left(self, counts: Counts) -> str:
        parts = []
        seconds = self._remaining_limits.seconds_left()
        pages = self._remaining_limits.pages_left(counts.pages)
        if seconds is not None:
            parts.append(seconds_text(max(0.0, seconds)))
        if pages is not None:
            rate = self._progress.pages_per_second()
            time = f" (about {seconds_text(pages / rate)})" if rate > 0 else ""
            parts.append(f"{counted(max(0, pages), 'page')}{time}")
        return ", ".join(parts)
