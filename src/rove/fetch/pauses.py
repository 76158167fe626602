"""The time that a transfer has, when it may have to wait for memory in between.

A pause is our affair, so it does not count as the server's time; but the visit that the request belongs to has its
end, whatever was waited for. Pure: moments in, moments out.
"""

from __future__ import annotations


class Pauses:
    """The pauses of one transfer."""

    __slots__ = ("_began", "_longest", "_started", "_total", "have_been", "seconds")

    def __init__(self, *, started: float, total: float, longest: float) -> None:
        """`total` seconds are the server's; with the pauses it may be `longest`."""
        self._started = started
        self._total = total
        self._longest = max(total, longest)
        self._began: float | None = None
        self.seconds = 0.0
        """For which it was paused, without the pause that it is in."""
        self.have_been = False
        """Whether it was ever paused, for however short."""

    @property
    def is_on(self) -> bool:
        """Whether it is paused."""
        return self._began is not None

    def begin(self, now: float) -> None:
        """Pause."""
        self._began = now
        self.have_been = True

    def end(self, now: float) -> None:
        """Go on, or be over."""
        if self._began is not None:
            self.seconds += now - self._began
            self._began = None

    @property
    def latest(self) -> float:
        """The moment at which it must be over as things stand."""
        if self.is_on:
            return self._started + self._longest
        return self._started + min(self._total + self.seconds, self._longest)

    @property
    def longest(self) -> float:
        """Seconds from its start to the latest moment that there can be."""
        return self._longest
