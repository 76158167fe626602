"""Waits for sites that kept failing in an earlier run, before a crawl that was resumed ends without them."""

from __future__ import annotations

import time
from collections.abc import Callable

from rove.frontier.contract import Frontier
from rove.notation.humanize import utc_text

LONGEST_WAIT = 3_600.0
"""A crawl that was resumed waits for failing sites that are tried again within this time."""
SLACK = 1.0
"""The two clocks are compared at different moments."""


async def backoffs_end(frontier: Frontier, *, now: float) -> float:
    """Return when the last of the failing sites that are worth waiting for is due; `now` if there is none."""
    last = await frontier.last_backoff(within=LONGEST_WAIT)
    return now if last is None else now + last + SLACK


class BackoffWait:
    """Tells when the next domain is due, including failing sites until a time that is fixed at the start."""

    def __init__(
        self, frontier: Frontier, *, until: float, clock: Callable[[], float], on_news: Callable[[str], None]
    ) -> None:
        """`until`: wait for failing sites that are due until then, by `clock`."""
        self._frontier = frontier
        self._until = until
        self._clock = clock
        self._on_news = on_news
        self._has_told = False

    async def next_due(self) -> float | None:
        """Return the seconds until a domain worth waiting for is due; None if there is none."""
        left = max(0.0, self._until - self._clock())
        due = await self._frontier.next_due(failing_within=left)
        if due and left and not self._has_told and await self._frontier.next_due() is None:
            self._has_told = True
            until = utc_text(time.time() + left)
            self._on_news(f"Only sites that kept failing are left. Waiting for them until {until}.")
        return due
