"""Notices within seconds that the server has fallen silent, or that commits wait for a standby that is gone.

A network that drops packets leaves a query without an answer for minutes. So if a session has been waiting for a while,
a probe asks the server on a new connection.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from rove.frontier.postgres.session import Session

SILENT_SECONDS = 3.0
"""A session that has waited for this long is a reason to probe the server."""
PROBE_SECONDS = 4.0
"""Timeout of a probe. A silence is reported within the sum of the two, and a heartbeat of the process."""
CHECK_SECONDS = 0.5
STANDBY_AWAY = "commits wait for a synchronous standby that does not answer"

Probe = Callable[[list[int]], Awaitable[bool]]
"""Takes the server's process ids of silent sessions; returns whether one waits for a standby."""


class SilenceWatch:
    """Watches the sessions of one process."""

    def __init__(
        self, probe: Probe, on_waiting: Callable[[bool], None], *, silent_seconds: float = SILENT_SECONDS
    ) -> None:
        """`on_waiting` is told when commits begin to wait for a standby, and when they no longer do."""
        self._probe = probe
        self._on_waiting = on_waiting
        self._silent_seconds = silent_seconds
        self._held: set[Session] = set()
        self._task: asyncio.Task[None] | None = None
        self._is_waiting = False

    @contextmanager
    def over(self, session: Session) -> Iterator[None]:
        """Watch a session while it is held."""
        self._held.add(session)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            self._held.discard(session)

    def disconnect(self) -> None:
        """Break off the sessions that wait for an answer, so that their work is repeated."""
        for session in self._silent():
            session.connection.terminate()

    def close(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()

    async def _watch(self) -> None:
        """Probe the server while sessions are silent."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            silent = self._silent()
            if not silent:
                self._set_waiting(False)
                continue
            self._set_waiting(await self._probe([session.connection.get_server_pid() for session in silent]))
            await asyncio.sleep(self._silent_seconds)  # a long query needs no more probes than that

    def _silent(self) -> list[Session]:
        since = time.monotonic() - self._silent_seconds
        return [session for session in self._held if session.active_at < since and not session.connection.is_closed()]

    def _set_waiting(self, is_waiting: bool) -> None:
        if is_waiting is not self._is_waiting:
            self._is_waiting = is_waiting
            self._on_waiting(is_waiting)
