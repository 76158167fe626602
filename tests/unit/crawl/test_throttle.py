"""How many visits may start, and who is told when more may."""

from __future__ import annotations

from rove.crawl.throttle import Throttle


class Watched:
    """A throttle, and how often it has said that more visits may start."""

    def __init__(self, limit: int) -> None:
        self.throttle = Throttle(limit)
        self.told = 0
        self.throttle.on_room = self._on_room

    def _on_room(self) -> None:
        self.told += 1


def test_it_tells_only_of_a_higher_limit() -> None:
    watched = Watched(4)
    watched.throttle.limit = 2
    watched.throttle.limit = 2
    assert watched.told == 0 and watched.throttle.allowed == 2
    watched.throttle.limit = 3
    assert watched.told == 1 and watched.throttle.allowed == 3


def test_nothing_may_start_while_it_is_shut() -> None:
    watched = Watched(2)
    watched.throttle.shut()
    assert watched.throttle.allowed == 0
    watched.throttle.limit = 8
    assert watched.told == 0 and watched.throttle.allowed == 0
    watched.throttle.open()
    assert watched.told == 1 and watched.throttle.allowed == 8
