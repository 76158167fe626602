"""Limits the visits to one address, however many domains lead there.

A machine may host ten thousand domains. Each of them has a delay of its own, but together they would be a flood. So a
visit needs room at its address: few visits are there at once, and few begin in a second. A visit that finds no room
ends at once and comes back later, so that it holds no slot while it waits. The limits hold for one process. The same
limits serve groups of addresses, which then stand for an address.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

FIRST_GUESS = 1.0
"""The assumed duration of a visit to an address at which none has ended yet."""
MEMORY = 8
"""The duration of a visit is a moving average over about this many visits."""
SLACK = 1.1
"""Visits come back a little more slowly than the limits allow, so that few have to be sent away again."""
SHORTEST_WAIT = 0.05
LONGEST_WAIT = 3_600.0
"""The longest time after which a visit comes back. Nobody can say whether there will be room still later."""
SMALLEST_SWEEP = 1_000
"""Addresses remembered before those that are not in use are forgotten."""


class Room(NamedTuple):
    """A visit's place at an address."""

    address: str
    began: float


class _Use:
    """What is known of one address."""

    __slots__ = ("begins", "queue_end", "seconds", "visits")

    def __init__(self) -> None:
        self.visits = 0
        """Visits that are there now."""
        self.begins: deque[float] = deque()
        """When the last visits began, as many as may begin within the window."""
        self.queue_end = 0.0
        """When the last visit that was sent away comes back."""
        self.seconds = FIRST_GUESS
        """How long a visit takes."""


class AddressRoom:
    """Gives visits room at addresses, or tells them when to come back."""

    def __init__(
        self,
        *,
        at_once: int | None,
        per_second: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Limit the visits to one address `at_once` and `per_second`; None means no limit."""
        self._at_once = at_once
        self._clock = clock
        self._burst = None if per_second is None else max(1, int(per_second))
        """Visits that may begin within the window."""
        self._window = 0.0 if per_second is None or self._burst is None else self._burst / per_second
        self._uses: dict[str, _Use] = {}
        self._sweep_at = SMALLEST_SWEEP

    def __len__(self) -> int:
        """Count the addresses that are remembered."""
        return len(self._uses)

    @property
    def remembered(self) -> int:
        """How many addresses were visited lately."""
        return len(self._uses)

    def take(self, addresses: Sequence[str]) -> Room | None:
        """Take room at the first of these addresses that has some; None if none has. The caller must give it back."""
        now = self._clock()
        for address in addresses:
            use = self._use_of(address, now)
            if self._earliest(use, now) <= now:
                use.visits += 1
                if self._burst is not None:
                    use.begins.append(now)
                return Room(address, now)
        return None

    def give_back(self, room: Room) -> None:
        """End a visit."""
        use = self._uses[room.address]
        use.visits -= 1
        use.seconds += (self._clock() - room.began - use.seconds) / MEMORY

    def wait_for(self, addresses: Sequence[str]) -> float:
        """Return the seconds after which to come back, and expect the visit then. `take` has found no room."""
        now = self._clock()
        uses = [self._use_of(address, now) for address in addresses]
        use = min(uses, key=lambda use: max(use.queue_end, self._earliest(use, now)))
        back = max(use.queue_end, self._earliest(use, now), now + SHORTEST_WAIT)
        use.queue_end = back + SLACK * self._interval(use)
        return min(LONGEST_WAIT, back - now)

    def _earliest(self, use: _Use, now: float) -> float:
        """Return when the next visit may begin, as far as is known; `now` or earlier if there is room."""
        earliest = now
        if self._burst is not None:
            while use.begins and use.begins[0] <= now - self._window:
                use.begins.popleft()
            if len(use.begins) >= self._burst:
                earliest = use.begins[0] + self._window
        if self._at_once is not None and use.visits >= self._at_once:
            earliest = max(earliest, now + use.seconds / self._at_once)
        return earliest

    def _interval(self, use: _Use) -> float:
        """Return the seconds between two visits at the fastest pace that the limits allow."""
        by_rate = 0.0 if self._burst is None else self._window / self._burst
        by_visits = 0.0 if self._at_once is None else use.seconds / self._at_once
        return max(by_rate, by_visits)

    def _use_of(self, address: str, now: float) -> _Use:
        use = self._uses.get(address)
        if use is None:
            if len(self._uses) >= self._sweep_at:
                self._forget_unused(now)
            use = self._uses[address] = _Use()
        return use

    def _forget_unused(self, now: float) -> None:
        latest = now - self._window
        self._uses = {
            address: use
            for address, use in self._uses.items()
            if use.visits or use.queue_end > now or (use.begins and use.begins[-1] > latest)
        }
        self._sweep_at = max(SMALLEST_SWEEP, 2 * len(self._uses))
