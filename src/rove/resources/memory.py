"""Accounts for the memory that bodies and pages take, so that a process stays below its ceiling.

Every visit has a share: the bytes it has received, and later the bytes it holds until they are written. A small body
is covered by an amount that is set aside for every fetch. Larger bodies grow freely while less than half of the room is
used. Beyond that, a body must reserve the most it can still need. Reservations are granted in the order of the
requests. Until then the transfer is paused.

No transfer waits for ever. A body with a reservation needs no second one, and a page in memory needs none to be
written. The paused bodies together hold at most half of the room, and no reservation is larger than the other half, so
each one fits in the end.

Decoding and parsing a page takes much more memory for a moment. The event loop does it for one page at a time, and room
for one is set aside. It starts only while the account is not overdrawn. Large pages take turns, each in its own round
of the event loop. Several in a row would keep the loop from its sockets for so long that responses which have arrived
would count as timeouts.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

SMALL = 32 * 1024
"""Bytes of a body that are set aside for every fetch."""
LARGE = 256 * 1024
"""Pages with larger bodies take turns to be decoded and parsed."""


class Memory:
    """The memory that all visits of a process may hold."""

    def __init__(
        self, room: int, *, on_short: Callable[[], None] = lambda: None, on_eased: Callable[[], None] = lambda: None
    ) -> None:
        """`room` is in bytes. `on_short` and `on_eased` are called when memory gets short and when it no longer is."""
        self._room = room
        self.used = 0
        """Bytes held and reserved, beyond the amount that is set aside for each fetch."""
        self.held = 0
        """Bytes held, without reservations."""
        self._waiting: dict[Share, tuple[int, Callable[[], None]]] = {}
        """For each share that waits, the bytes to reserve and a function to call when they are reserved."""
        self._on_short = on_short
        self._on_eased = on_eased
        self._was_short = False
        self._readers: deque[asyncio.Future[None]] = deque()
        self._is_turn_scheduled = False

    @property
    def room(self) -> int:
        """Bytes that may be used."""
        return self._room

    @room.setter
    def room(self, room: int) -> None:
        self._room = room
        self._grant()

    @property
    def waiting(self) -> int:
        """The number of paused transfers."""
        return len(self._waiting)

    @property
    def is_short(self) -> bool:
        """Whether nothing new should begin."""
        return bool(self._waiting) or self.used > self._room

    @property
    def is_overdrawn(self) -> bool:
        """Whether more than the room is used, which happens because a page can take more memory than its body."""
        return self.used > self._room

    async def turn(self) -> None:
        """Wait for the turn to decode and parse a page. The caller must do both before its next await."""
        turn = asyncio.get_running_loop().create_future()
        self._readers.append(turn)
        self._schedule_turn()
        await turn

    def _schedule_turn(self) -> None:
        if self._readers and not self._is_turn_scheduled and not self.is_overdrawn:
            self._is_turn_scheduled = True
            asyncio.get_running_loop().call_soon(self._give_turn)

    def _give_turn(self) -> None:
        self._is_turn_scheduled = False
        if self.is_overdrawn:
            return
        while self._readers:
            turn = self._readers.popleft()
            if not turn.done():
                turn.set_result(None)
                break
        self._schedule_turn()

    def _may_grow_freely(self, size: int) -> bool:
        return not self._waiting and self.used + size <= self._room // 2

    def _reserve(self, share: Share, need: int, go_on: Callable[[], None]) -> bool:
        """Reserve memory now, or call `go_on` when it is reserved."""
        need = min(need, self._room // 2)
        if not self._waiting and self.used + need <= self._room:
            share._take_reservation(need)
            return True
        self._waiting[share] = need, go_on
        self._report()
        return False

    def _change(self, size: int) -> None:
        if not size:
            return
        self.used += size
        if size < 0:
            self._grant()
        else:
            self._report()

    def _leave(self, share: Share) -> None:
        if self._waiting.pop(share, None) is not None:
            self._grant()

    def _grant(self) -> None:
        """Grant reservations for which there is room now, in the order of the requests."""
        while self._waiting:
            share, (need, go_on) = next(iter(self._waiting.items()))
            if self.used + min(need, self._room // 2) > self._room:
                break
            del self._waiting[share]
            share._take_reservation(need)
            go_on()
        self._schedule_turn()
        self._report()

    def _report(self) -> None:
        is_short = self.is_short
        if self._was_short is not is_short:
            self._was_short = is_short
            (self._on_short if is_short else self._on_eased)()


class Share:
    """The part of the memory that one visit uses."""

    __slots__ = ("_charged", "_has_reservation", "_held", "memory")

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._held = 0
        """Bytes received or held."""
        self._charged = 0
        """Bytes in the account: those held beyond SMALL, or reserved."""
        self._has_reservation = False

    def grow(self, size: int) -> bool:
        """Hold `size` more bytes if that is possible now; return whether it was."""
        held = self._held + size
        over = held - SMALL
        if over > self._charged:
            # A body with a reservation never waits again: two of them could wait for each other.
            if not (self._has_reservation or self.memory._may_grow_freely(over - self._charged)):
                return False
            self._charge(over)
        self._held = held
        self.memory.held += size
        return True

    def ask(self, most: int, go_on: Callable[[], None]) -> bool:
        """Reserve memory for a body of at most `most` bytes. If that must wait, return False and call `go_on` later."""
        need = max(most - SMALL - self._charged, 0)
        return self.memory._reserve(self, need, go_on)

    def wait_no_more(self) -> None:
        """Stop waiting for a reservation, because the transfer has ended."""
        self.memory._leave(self)

    def keep(self, size: int) -> None:
        """Hold `size` bytes in place of the body and of any reservation."""
        if size == self._held == self._charged and not (self._has_reservation or self.memory._waiting):
            return
        self.memory.held += size - self._held
        self._held = size
        self._has_reservation = False
        self.wait_no_more()
        self._charge(size)

    def _take_reservation(self, size: int) -> None:
        self._has_reservation = True
        self._charge(self._charged + size)

    def _charge(self, size: int) -> None:
        change, self._charged = size - self._charged, size
        self.memory._change(change)
