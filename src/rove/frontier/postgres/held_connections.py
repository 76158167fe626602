"""Logs connections that are held for too long, with the query and the stack that hold them."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rove.frontier.postgres.session import Session

HELD_SECONDS = 2.0
QUIET_SECONDS = 60.0
"""Minimum interval between two log entries for the same work."""

log = logging.getLogger(__name__)


class HeldWatch:
    """Watches the connections of one process."""

    def __init__(self, threshold: float = HELD_SECONDS) -> None:
        self._threshold = threshold
        self._last: dict[str, float] = {}

    @contextmanager
    def over(self, what: str, session: Session) -> Iterator[None]:
        """Watch a connection while it is held for some work."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        timer = loop.call_later(self._threshold, self._report, what, session, task)
        try:
            yield
        finally:
            timer.cancel()

    def _report(self, what: str, session: Session, task: asyncio.Task[Any] | None) -> None:
        now = time.monotonic()
        if now - self._last.get(what, -QUIET_SECONDS) < QUIET_SECONDS:
            return
        self._last[what] = now
        log.warning(
            "a connection has been held for %.1f s to %s, in query %s, by:\n%s",
            self._threshold,
            what,
            session.query or "(none yet)",
            "".join(stack_of(task)) if task is not None else "(no task)\n",
        )


def stack_of(task: asyncio.Task[Any]) -> list[str]:
    """Return the stack at which a task is suspended, outermost coroutine first."""
    lines = []
    awaited: Any = task.get_coro()
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "ag_frame", None)
        if frame is not None:
            lines += traceback.format_stack(frame, limit=1)
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "ag_await", None)
    return lines
