"""A watch over connections: one that is held for long is logged, with the query and the stack that hold it."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

HELD_SECONDS = 2.0
QUIET_SECONDS = 60.0
"""One place is logged at most once in so long."""

log = logging.getLogger(__name__)


class Holder(Protocol):
    """What holds a connection."""

    @property
    def query(self) -> str:
        """The query that is under way, or was last."""


class HeldWatch:
    """Looks after the connections of one process."""

    def __init__(self, threshold: float = HELD_SECONDS) -> None:
        self._threshold = threshold
        self._last: dict[str, float] = {}

    @contextmanager
    def over(self, what: str, holder: Holder) -> Iterator[None]:
        """Watch a connection while it is held for something."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        timer = loop.call_later(self._threshold, self._complain, what, holder, task)
        try:
            yield
        finally:
            timer.cancel()

    def _complain(self, what: str, holder: Holder, task: asyncio.Task[Any] | None) -> None:
        now = time.monotonic()
        if now - self._last.get(what, -QUIET_SECONDS) < QUIET_SECONDS:
            return
        self._last[what] = now
        log.warning(
            "a connection has been held for %.1f s to %s, in query %s, by:\n%s",
            self._threshold,
            what,
            holder.query or "(none yet)",
            "".join(stack_of(task)) if task is not None else "(no task)\n",
        )


def stack_of(task: asyncio.Task[Any]) -> list[str]:
    """Where a task is waiting, from its outermost coroutine to the innermost."""
    lines = []
    awaited: Any = task.get_coro()
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "ag_frame", None)
        if frame is not None:
            lines += traceback.format_stack(frame, limit=1)
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "ag_await", None)
    return lines
