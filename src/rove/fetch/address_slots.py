"""Limits the connections to one address, however many names lead there.

A machine may host ten thousand domains. Each domain has a delay of its own, but they share this limit. It holds for
one process. An address is remembered only while it is in use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

_Waiter = asyncio.Future[str]


class AddressSlots:
    """Hands out connection slots at addresses, first come, first served."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken: dict[str, int] = {}
        self._waiting: dict[str, dict[_Waiter, Sequence[str]]] = {}
        """The waiters of each full address, in order of arrival, with all the addresses that each would accept."""

    def __len__(self) -> int:
        """Count the addresses in use."""
        return len(self._taken.keys() | self._waiting.keys())

    async def acquire(self, addresses: Sequence[str], within: float) -> str | None:
        """Take a slot at the first address with a free one, and return the address; None if all stay busy this long.

        The caller must release the slot.
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
                self.release(waiter.result())
            raise
        finally:
            self._leave(waiter, addresses)
        return waiter.result() if waiter.done() else None

    def release(self, address: str) -> None:
        """Free a slot, or pass it on to the first waiter."""
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
        """Remove a waiter from the queues of all its addresses."""
        for address in addresses:
            waiting = self._waiting.get(address)
            if waiting is not None:
                waiting.pop(waiter, None)
                if not waiting:
                    del self._waiting[address]
