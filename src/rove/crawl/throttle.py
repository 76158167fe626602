"""How many fetches a process makes at once: as many as it was told, fewer where the machine cannot bear them.

Slots are numbered, and one works only while its number is below what is allowed. What is allowed falls at once when
something runs short and rises again slowly, with the visits that end well. Pure but for the waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

GROWTH = 0.1
"""What a visit that ended adds to what is allowed."""


class Throttle:
    """Lets slots work."""

    def __init__(self, most: int, *, clock: Callable[[], float]) -> None:
        self._most = most
        self._allowed = float(most)
        self._clock = clock
        self._lowered_at = float("-inf")
        self._rests_until = float("-inf")
        self._is_shut = False
        self._waiting: dict[int, asyncio.Future[None]] = {}

    @property
    def allowed(self) -> int:
        """Visits that may be under way at once."""
        return 0 if self._is_shut else int(self._allowed)

    def lower(self, to: float, *, rest: float = 0.0, again: float = 0.0) -> bool:
        """Allow no more than this, and not more again before `rest` seconds have passed; whether it fell.

        What was noticed within `again` seconds of the last fall is still its reason, and changes nothing.
        """
        now = self._clock()
        if now - self._lowered_at < again or to >= self._allowed:
            return False
        self._lowered_at, self._rests_until = now, now + rest
        self._allowed = max(1.0, to)
        return True

    def shut(self) -> None:
        """Let nobody begin anything for now."""
        self._is_shut = True

    def open(self) -> None:
        """Let those begin again who may."""
        self._is_shut = False
        self._wake()

    def visited(self) -> None:
        """A visit has ended: perhaps there may be more of them at once."""
        if self._allowed < self._most and self._clock() >= self._rests_until:
            self._allowed = min(self._allowed + GROWTH, float(self._most))
            self._wake()

    async def turn(self, number: int) -> None:
        """Wait until the slot of this number, from 0, may work."""
        while number >= self.allowed:
            self._waiting[number] = asyncio.get_running_loop().create_future()
            try:
                await self._waiting[number]
            finally:
                del self._waiting[number]

    def _wake(self) -> None:
        if not self._waiting:
            return
        allowed = self.allowed
        for number, future in self._waiting.items():
            if number < allowed and not future.done():
                future.set_result(None)
