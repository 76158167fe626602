"""How many slots may work, and which slots wake up when the limit rises."""

from __future__ import annotations

import asyncio

from rove.crawl.throttle import Throttle
from tests.unit.fetch.server import on_loop


class Clock:
    """A clock that the test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


async def ready(tasks: list[asyncio.Task[None]]) -> list[int]:
    """Return the numbers of the slots that may work."""
    for _ in range(5):
        await asyncio.sleep(0)
    return [number for number, task in enumerate(tasks) if task.done()]


@on_loop
async def test_slots_below_the_limit_work() -> None:
    throttle = Throttle(4, clock=Clock())
    assert throttle.lower(2)
    slots = [asyncio.create_task(throttle.wait_for_turn(number)) for number in range(4)]
    assert await ready(slots) == [0, 1]
    for _ in range(10):
        throttle.note_visit()
    assert await ready(slots) == [0, 1, 2]
    for _ in range(20):
        throttle.note_visit()
    assert await ready(slots) == [0, 1, 2, 3]
    assert throttle.allowed == 4, "never more than there are slots"


@on_loop
async def test_no_slot_starts_while_it_is_shut() -> None:
    throttle = Throttle(2, clock=Clock())
    throttle.shut()
    assert throttle.allowed == 0
    slots = [asyncio.create_task(throttle.wait_for_turn(number)) for number in range(2)]
    throttle.note_visit()
    assert await ready(slots) == []
    throttle.open()
    assert await ready(slots) == [0, 1]


@on_loop
async def test_a_slot_that_is_cancelled_leaves_nothing_behind() -> None:
    throttle = Throttle(1, clock=Clock())
    throttle.shut()
    slot = asyncio.create_task(throttle.wait_for_turn(0))
    await asyncio.sleep(0)
    slot.cancel()
    await asyncio.wait([slot])
    throttle.open()
    assert slot.cancelled()


def test_the_limit_drops_to_one_at_least_and_never_rises() -> None:
    throttle = Throttle(10, clock=Clock())
    assert not throttle.lower(10)
    assert throttle.lower(0.2)
    assert throttle.allowed == 1
    assert not throttle.lower(0.2) or throttle.allowed == 1


def test_a_second_drop_within_the_cooldown_is_ignored() -> None:
    clock = Clock()
    throttle = Throttle(100, clock=clock)
    assert throttle.lower(50)
    assert not throttle.lower(25)
    clock.now += 2.0
    assert throttle.lower(25)


def test_the_limit_rests_before_it_rises_again() -> None:
    clock = Clock()
    throttle = Throttle(100, clock=clock)
    throttle.lower(50, rest=60.0)
    for _ in range(100):
        throttle.note_visit()
    assert throttle.allowed == 50
    clock.now += 60.0
    for _ in range(101):
        throttle.note_visit()
    assert throttle.allowed == 60
