"""The deadline of a transfer that may have to wait for memory.

A pause is our own doing, so it does not count against the server. But the visit has a deadline too, and pauses do not
move that one. Pure: takes times, returns times.
"""

from __future__ import annotations


class Pauses:
    """The pauses of one transfer and the deadline that follows from them."""

    __slots__ = ("_began", "_deadline", "happened", "latest", "seconds")

    def __init__(self, *, deadline: float, latest: float) -> None:
        """Pauses move the server's `deadline`, up to `latest`."""
        self._deadline = deadline
        self.latest = max(deadline, latest)
        """The deadline that no pause can move."""
        self._began: float | None = None
        self.seconds = 0.0
        """Time spent in pauses that have ended."""
        self.happened = False
        """Whether there was any pause, however short."""

    @property
    def is_on(self) -> bool:
        """Whether the transfer is paused now."""
        return self._began is not None

    @property
    def deadline(self) -> float:
        """The time by which the transfer must end, given its pauses so far."""
        return self.latest if self.is_on else min(self._deadline + self.seconds, self.latest)

    def is_overdue(self, now: float) -> bool:
        """Whether a transfer that was paused has missed its deadline; libcurl watches the others."""
        return self.happened and now >= self.deadline

    def begin(self, now: float) -> None:
        """Start a pause."""
        self._began = now
        self.happened = True

    def end(self, now: float) -> None:
        """End the pause, if there is one."""
        if self._began is not None:
            self.seconds += now - self._began
            self._began = None
