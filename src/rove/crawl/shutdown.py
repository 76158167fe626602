"""When and why a crawl ends."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from rove.frontier.contract import Frontier

GRACE_SECONDS = 5.0
"""Time that visits in flight get to finish when the crawl shuts down."""
SECONDS_TO_CANCEL = 0.0003
"""Time to cancel one visit and write its end. On a busy machine, 5,000 visits took 3.6 s."""


class Ending(enum.StrEnum):
    """Why a crawl ended."""

    EXHAUSTED = "exhausted"
    UNREACHABLE = "no site answered"
    MAX_PAGES = "page limit reached"
    MAX_DURATION = "time limit reached"
    STOPPED = "stopped"
    TOLD_TO_STOP = "stopped by rove stop"
    CHANGED = "settings changed"


class Shutdown:
    """Tells all parts of a crawl to end, and remembers why."""

    def __init__(self, frontier: Frontier, *, grace_seconds: float = GRACE_SECONDS) -> None:
        """`grace_seconds`: how long visits in flight may go on after the shutdown has begun."""
        self._frontier = frontier
        self.grace_seconds = grace_seconds
        self.ending: Ending | None = None
        self._begun = asyncio.Event()

    @property
    def has_begun(self) -> bool:
        """Whether the crawl is ending."""
        return self.ending is not None

    def begin(self, ending: Ending) -> None:
        """End the crawl. Only the first call counts."""
        if self.ending is None:
            self.ending = ending
            self._frontier.stop_waiting(2 * self.grace_seconds)
            self._begun.set()

    async def sleep(self, seconds: float) -> None:
        """Sleep, but no longer than until the shutdown begins."""
        await wait_for_event(self._begun, seconds)

    async def wait(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Wait until the shutdown begins or one of the tasks fails."""
        for task in tasks:
            # Only the first failure is raised. Without this, asyncio would print the others to the terminal.
            task.add_done_callback(_retrieve_exception)
        begun = asyncio.create_task(self._begun.wait())
        pending: set[asyncio.Task[Any]] = {begun, *tasks}
        try:
            while not begun.done():
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                if any(task.exception() for task in done):
                    return
        finally:
            begun.cancel()


def grace_for(in_flight: int, seconds: float) -> float:
    """Return how long visits may go on after a shutdown has begun. Many get less time, because they take longer to end.

    >>> grace_for(100, 5.0), grace_for(5_000, 5.0), grace_for(20_000, 5.0)
    (4.97, 3.5, 1.25)
    """
    return max(seconds / 4, seconds - in_flight * SECONDS_TO_CANCEL)


async def wait_for_event(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event for at most this long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


async def cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


def raise_failure(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Raise the exception of the first task that failed, if any did."""
    for task in tasks:
        if task.done() and not task.cancelled():
            failure = task.exception()
            if failure is not None:
                raise failure


def _retrieve_exception(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()
