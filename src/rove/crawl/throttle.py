"""Limits how many slots of a process may work at once.

Slots are numbered, and a slot works only while its number is below the limit. The limit drops at once when a resource
runs short. It rises again slowly, with every visit that ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

GROWTH = 0.1
"""How much each finished visit raises the limit."""
COOLDOWN = 2.0
"""Seconds after a drop in which further ones are ignored, because they report the same shortage."""


class Throttle:
    """The number of slots that may work, and the slots that wait for their turn."""

    def __init__(self, slots: int, *, clock: Callable[[], float]) -> None:
        self._slots = slots
        self._allowed = float(slots)
        self._clock = clock
        self._lowered_at = float("-inf")
        self._rests_until = float("-inf")
        self._is_shut = False
        self._waiting: dict[int, asyncio.Future[None]] = {}

    @property
    def allowed(self) -> int:
        """How many visits may be in flight at once."""
        return 0 if self._is_shut else int(self._allowed)

    def lower(self, limit: float, *, rest: float = 0.0) -> bool:
        """Lower the limit, and keep it there for `rest` seconds; return whether it dropped."""
        now = self._clock()
        if now - self._lowered_at < COOLDOWN or limit >= self._allowed:
            return False
        self._lowered_at, self._rests_until = now, now + rest
        self._allowed = max(1.0, limit)
        return True

    def shut(self) -> None:
        """Let no slot start a visit until `open` is called."""
        self._is_shut = True

    def open(self) -> None:
        """Let slots start visits again."""
        self._is_shut = False
        self._wake()

    def note_visit(self) -> None:
        """Raise the limit a little, because a visit has ended."""
        if self._allowed < self._slots and self._clock() >= self._rests_until:
            self._allowed = min(self._allowed + GROWTH, float(self._slots))
            self._wake()

    async def wait_for_turn(self, number: int) -> None:
        """Wait until the slot with this number, counted from 0, may work."""
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
