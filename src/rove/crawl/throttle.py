"""How many visits of a process may be in flight at once."""

from __future__ import annotations

from collections.abc import Callable


class Throttle:
    """The number of visits that may be in flight. A lower number cancels no visit; it only starts fewer."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._is_shut = False
        self.on_room: Callable[[], None] = lambda: None
        """Called when more visits may start."""

    @property
    def limit(self) -> int:
        """How many visits may be in flight, unless no new ones may start."""
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        before, self._limit = self._limit, limit
        if limit > before and not self._is_shut:
            self.on_room()

    @property
    def allowed(self) -> int:
        """How many visits may be in flight now."""
        return 0 if self._is_shut else self._limit

    def shut(self) -> None:
        """Let no visit start until `open` is called."""
        self._is_shut = True

    def open(self) -> None:
        """Let visits start again."""
        self._is_shut = False
        self.on_room()
