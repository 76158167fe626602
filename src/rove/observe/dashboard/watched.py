"""The crawl that a dashboard shows. It is opened when somebody looks, and closed when nobody has looked for a while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from rove.errors import FrontierError, StaleDatabase, StoreError, Unreachable
from rove.inspect.open_crawl import Archive

MAX_AGE = 60.0
"""An open crawl is opened again after this time, because it may have moved to another database."""
DATABASE_ERRORS = (FrontierError, StaleDatabase, StoreError, Unreachable)
IDLE_SECONDS = 20.0
"""A crawl that nobody reads is closed after this time, so that no connection is left to it."""


class _Opened:
    """An open crawl and the number of its readers."""

    def __init__(self, context: AbstractAsyncContextManager[Archive], archive: Archive) -> None:
        self.context = context
        self.archive = archive
        self.opened_at = time.monotonic()
        self.readers = 0
        self.is_stale = False
        self.idle: asyncio.TimerHandle | None = None

    @property
    def age(self) -> float:
        return time.monotonic() - self.opened_at


class WatchedCrawl:
    """Opens a crawl for reading, again and again."""

    def __init__(
        self,
        open: Callable[[], AbstractAsyncContextManager[Archive]],
        *,
        max_age: float = MAX_AGE,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        """`open` opens the crawl."""
        self._open = open
        self._max_age = max_age
        self._idle_seconds = idle_seconds
        self._opening = asyncio.Lock()
        self._opened: _Opened | None = None
        self._closing: set[asyncio.Task[object]] = set()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Archive]:
        """Give the open crawl to a reader. After an error of the database, the next reader opens it anew."""
        opened = await self._current()
        opened.readers += 1
        try:
            yield opened.archive
        except DATABASE_ERRORS:
            opened.is_stale = True
            raise
        finally:
            opened.readers -= 1
            self._release(opened)

    async def close(self) -> None:
        """Close the crawl."""
        if self._opened is not None:
            self._close(self._opened)
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def _current(self) -> _Opened:
        async with self._opening:
            if self._opened is not None and (self._opened.is_stale or self._opened.age >= self._max_age):
                stale, self._opened = self._opened, None
                stale.is_stale = True
                self._release(stale)
            if self._opened is None:
                context = self._open()
                self._opened = _Opened(context, await context.__aenter__())
            elif self._opened.idle is not None:
                self._opened.idle.cancel()
                self._opened.idle = None
            return self._opened

    def _release(self, opened: _Opened) -> None:
        if opened.readers:
            return
        if opened.is_stale:
            self._close(opened)
        else:
            opened.idle = asyncio.get_running_loop().call_later(self._idle_seconds, self._close_idle, opened)

    def _close_idle(self, opened: _Opened) -> None:
        if not opened.readers:
            self._close(opened)

    def _close(self, opened: _Opened) -> None:
        if self._opened is opened:
            self._opened = None
        if opened.idle is not None:
            opened.idle.cancel()
        task = asyncio.create_task(opened.context.__aexit__(None, None, None))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
