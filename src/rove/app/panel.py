"""Shows a running crawl: as a panel on a terminal, elsewhere as one line of text from time to time."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable

from rich.console import Console

from rove.app.live_area import LiveArea
from rove.app.panel_layout import Dashboard
from rove.app.panel_view import View, plain_line
from rove.crawl.shutdown import wait_for_event

TERMINAL_SECONDS = 1.0
PLAIN_SECONDS = 10.0


class Panel:
    """Shows a crawl until the task is cancelled or the crawl has ended."""

    def __init__(
        self, console: Console, view: Callable[[], Awaitable[View | None]], *, plain_seconds: float = PLAIN_SECONDS
    ) -> None:
        """`view` collects the current numbers; it returns None when the crawl has ended.

        `plain_seconds` is the time between two lines where there is no terminal.
        """
        self._console = console
        self._view = view
        self._plain_seconds = plain_seconds
        self._area: LiveArea | None = None

    async def show(self) -> None:
        """Show the current numbers again and again."""
        if self._console.is_terminal:
            await self._draw()
            return
        while True:
            await asyncio.sleep(self._plain_seconds)
            view = await self._view()
            if view is None:
                return
            self._console.print(plain_line(view), soft_wrap=True)

    async def _draw(self) -> None:
        resized = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGWINCH, resized.set)
        try:
            with LiveArea(self._console) as area:
                self._area = area
                while (view := await self._view()) is not None:
                    resized.clear()
                    area.draw(Dashboard(view))
                    await wait_for_event(resized, TERMINAL_SECONDS)
        finally:
            self._area = None
            loop.remove_signal_handler(signal.SIGWINCH)

    def erase(self) -> None:
        """Leave the terminal as it was, if the process ends before `show` is cancelled."""
        if self._area is not None:
            self._area.close()
