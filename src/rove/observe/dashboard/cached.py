"""Shares one answer among all who ask at about the same time: ten open pages cost the crawl no more than one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

SHARE = 10
"""An answer is kept at least this many times as long as it took to read."""

T = TypeVar("T")


class Cached(Generic[T]):
    """Keeps the last answer for a while."""

    def __init__(
        self,
        read: Callable[[], Awaitable[T]],
        *,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`read` is called when the last answer is older than `seconds`, and only once at a time."""
        self._read = read
        self._seconds = seconds
        self._clock = clock
        self._reading = asyncio.Lock()
        self._answer: T | None = None
        self._fresh_until = float("-inf")

    async def get(self) -> T:
        """Return the answer."""
        async with self._reading:
            began = self._clock()
            if self._answer is None or began >= self._fresh_until:
                self._answer = await self._read()
                now = self._clock()
                self._fresh_until = now + max(self._seconds, SHARE * (now - began))
            return self._answer
