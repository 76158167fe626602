"""No more than so many connections at once to one address, however many names lead there.

A host with ten thousand domains is one machine. Each domain has its own delay, and this is what they
have in common. The limit is the process's own; addresses are known only while they are in use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

_Waiter = asyncio.Future[str]


class PerAddress:
    """Hands out places at addresses, first come, first served."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken: dict[str, int] = {}
        self._waiting: dict[str, dict[_Waiter, Sequence[str]]] = {}
        """In order of arrival at each full address, with all the addresses that would do."""

    def __len__(self) -> int:
        """How many addresses are remembered: those that are in use."""
        return len(self._taken.keys() | self._waiting.keys())

    async def take(self, addresses: Sequence[str], within: float) -> str | None:
        """A place at one of the addresses, the first that has one free; None if none had in time.

        Whoever gets one gives it back.
        """
        for address in addresses:
            taken = self._taken.get(address, 0)
            if taken < self._limit:
                self._taken[address] = taken + 1
                return address
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        for address in addresses:
            self._waiting.setdefault(address, {})[waiter] = addresses
        try:
            await asyncio.wait((waiter,), timeout=max(0.0, within))
        except asyncio.CancelledError:
            if waiter.done():
                self.give_back(waiter.result())
            else:
                self._leave(waiter, addresses)
            raise
        if waiter.done():
            return waiter.result()
        self._leave(waiter, addresses)
        return None

    def give_back(self, address: str) -> None:
        """A place is free: the next who waits for this address has it at once."""
        waiting = self._waiting.get(address)
        if waiting:
            waiter, addresses = next(iter(waiting.items()))
            self._leave(waiter, addresses)
            waiter.set_result(address)
        elif self._taken[address] > 1:
            self._taken[address] -= 1
        else:
            del self._taken[address]

    def _leave(self, waiter: _Waiter, addresses: Sequence[str]) -> None:
        """Wait no longer, at any of the addresses."""
        for address in addresses:
            waiting = self._waiting.get(address)
            if waiting is not None:
                waiting.pop(waiter, None)
                if not waiting:
                    del self._waiting[address]
