"""An account of the memory that bodies and pages take, so that a process keeps under its ceiling.

Every visit has a share: what it has received, and later what it keeps until that is written down. A small body is
within what is set aside for each fetch. Up to half of the room larger ones just grow. Beyond that a body goes on only
when all that it may come to is promised to it, in the order in which they asked; until then its transfer is paused.
Nobody can wait for ever: what has a promise comes to its end without asking again, what is kept is written down
without asking anybody, and the paused have at most the half that every promise fits beside.

Decoding and reading a page takes much more for a moment. There is one event loop, so that this is one page at a time,
and room for it is set aside; it begins only while the account is not overdrawn. Large pages are read by turns, each in
a round of the event loop of its own: many in a row would keep it from its sockets for so long that servers which have
answered seem not to have. No I/O happens here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

SMALL = 32 * 1024
"""Bytes of a body that are set aside for every fetch."""
LARGE = 256 * 1024
"""Bytes of a body from which on it is read by turns."""


@dataclass(slots=True)
class _Waiter:
    need: int
    go_on: Callable[[], None]


class Memory:
    """What all visits of a process may hold."""

    def __init__(
        self,
        room: int,
        *,
        on_short: Callable[[], None] = lambda: None,
        on_eased: Callable[[], None] = lambda: None,
    ) -> None:
        """`room` is bytes; `on_short` is told that it is short, `on_eased` that it is not any more."""
        self._room = room
        self._used = 0
        self.held = 0
        """Bytes that are really there."""
        self._waiting: dict[Share, _Waiter] = {}
        self._on_short = on_short
        self._on_eased = on_eased
        self._was_short = False
        self._readers: deque[asyncio.Future[None]] = deque()
        self._turn_comes = False

    @property
    def used(self) -> int:
        """Bytes held and promised, over what is set aside for each fetch."""
        return self._used

    @property
    def room(self) -> int:
        """Bytes that may be used."""
        return self._room

    @room.setter
    def room(self, room: int) -> None:
        self._room = room
        self._look()

    @property
    def waiting(self) -> int:
        """How many transfers are paused."""
        return len(self._waiting)

    @property
    def is_short(self) -> bool:
        """Whether it is not the time to begin something new."""
        return bool(self._waiting) or self._used > self._room

    @property
    def is_overdrawn(self) -> bool:
        """Whether more is used than there is room: pages were read that are larger than their bodies."""
        return self._used > self._room

    async def turn(self) -> None:
        """Wait for the turn to decode and read a page, which is to be done at once then."""
        turn = asyncio.get_running_loop().create_future()
        self._readers.append(turn)
        self._call_reader()
        await turn

    def _call_reader(self) -> None:
        if self._readers and not self._turn_comes and not self.is_overdrawn:
            self._turn_comes = True
            asyncio.get_running_loop().call_soon(self._give_turn)

    def _give_turn(self) -> None:
        self._turn_comes = False
        if self.is_overdrawn:
            return
        while self._readers:
            turn = self._readers.popleft()
            if not turn.done():
                turn.set_result(None)
                break
        self._call_reader()

    def _grows_freely(self, size: int) -> bool:
        return not self._waiting and self._used + size <= self._room // 2

    def _promise(self, share: Share, need: int, go_on: Callable[[], None]) -> bool:
        """Whether so much is promised at once; if not, `go_on` is called when it is."""
        need = min(need, self._room // 2)
        if not self._waiting and self._used + need <= self._room:
            share._take_promise(need)
            return True
        self._waiting[share] = _Waiter(need, go_on)
        self._tell()
        return False

    def _change(self, size: int) -> None:
        if not size:
            return
        self._used += size
        if size < 0:
            self._look()
        else:
            self._tell()

    def _leave(self, share: Share) -> None:
        if self._waiting.pop(share, None) is not None:
            self._look()

    def _look(self) -> None:
        """There may be room again: whoever waits longest has it first."""
        while self._waiting:
            share, waiter = next(iter(self._waiting.items()))
            if self._used + min(waiter.need, self._room // 2) > self._room:
                break
            del self._waiting[share]
            share._take_promise(waiter.need)
            waiter.go_on()
        self._call_reader()
        self._tell()

    def _tell(self) -> None:
        is_short = self.is_short
        if self._was_short is not is_short:
            self._was_short = is_short
            (self._on_short if is_short else self._on_eased)()


class Share:
    """What one visit holds of it."""

    __slots__ = ("_charged", "_has_promise", "_held", "memory")

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._held = 0
        """Bytes received or kept."""
        self._charged = 0
        """Bytes in the account: held over what is set aside, or promised."""
        self._has_promise = False

    def grow(self, size: int) -> bool:
        """Whether so many more bytes may be held now; they are, then."""
        held = self._held + size
        over = held - SMALL
        if over > self._charged:
            # Whoever holds a promise never asks again: two of them would wait for each other.
            if not (self._has_promise or self.memory._grows_freely(over - self._charged)):
                return False
            self._charge(over)
        self._held = held
        self.memory.held += size
        return True

    def ask(self, most: int, go_on: Callable[[], None]) -> bool:
        """Whether room for a body of at most so many bytes is promised at once; else `go_on` is called when it is."""
        need = max(most - SMALL - self._charged, 0)
        return self.memory._promise(self, need, go_on)

    def wait_no_more(self) -> None:
        """The transfer is over: nothing more comes."""
        self.memory._leave(self)

    def keep(self, size: int) -> None:
        """From now on so much is held, and nothing promised: the body is gone, and this is what came of it."""
        if size == self._held == self._charged and not (self._has_promise or self.memory._waiting):
            return  # as it is
        self.memory.held += size - self._held
        self._held = size
        self._has_promise = False
        self.wait_no_more()
        self._charge(size)

    def _take_promise(self, size: int) -> None:
        self._has_promise = True
        self._charge(self._charged + size)

    def _charge(self, size: int) -> None:
        change, self._charged = size - self._charged, size
        self.memory._change(change)
