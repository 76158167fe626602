"""Looks that are taken a while after they were asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from rove.fetch.looks import Looks
from tests.unit.fetch_server import on_loop

AFTER = 0.05


class Thing:
    """Notes when it was looked at."""

    def __init__(self, then: Callable[[Thing], None] = lambda thing: None) -> None:
        self.look_at = 0.0
        self.looks: list[float] = []
        self._then = then

    def look(self) -> None:
        self.looks.append(asyncio.get_running_loop().time())
        self._then(self)


@on_loop
async def test_each_is_looked_at_once_and_not_too_early() -> None:
    looks = Looks(AFTER)
    asked = asyncio.get_running_loop().time()
    first, second = Thing(), Thing()
    looks.ask(first)
    await asyncio.sleep(AFTER / 2)
    looks.ask(second)
    await asyncio.sleep(3 * AFTER)
    assert len(first.looks) == len(second.looks) == 1
    assert asked + AFTER <= first.looks[0] <= second.looks[0]
    assert second.looks[0] >= asked + AFTER * 1.4


@on_loop
async def test_it_may_ask_again_while_it_is_looked_at() -> None:
    looks = Looks(AFTER)
    thing = Thing(looks.ask)
    looks.ask(thing)
    await asyncio.sleep(4.5 * AFTER)
    looks.close()
    times = len(thing.looks)
    assert times >= 2
    await asyncio.sleep(2 * AFTER)
    assert len(thing.looks) == times


@on_loop
async def test_who_is_over_or_has_asked_anew_is_not_looked_at_for_the_old_time() -> None:
    looks = Looks(AFTER)
    over, anew, other = Thing(), Thing(), Thing()
    for thing in (over, anew, other):
        looks.ask(thing)
    over.look_at = 0.0
    await asyncio.sleep(AFTER / 2)
    again = asyncio.get_running_loop().time()
    looks.ask(anew)
    await asyncio.sleep(3 * AFTER)
    assert over.looks == []
    assert len(other.looks) == 1
    assert len(anew.looks) == 1 and anew.looks[0] >= again + AFTER


@pytest.mark.parametrize("later", [False, True])
@on_loop
async def test_one_that_fails_does_not_keep_the_others_from_being_looked_at(later: bool) -> None:
    def fail(thing: Thing) -> None:
        raise ValueError("no")

    complaints: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context["exception"]))
    looks = Looks(AFTER)
    bad, good = Thing(fail), Thing()
    looks.ask(bad)
    if later:
        await asyncio.sleep(AFTER / 2)
    looks.ask(good)
    await asyncio.sleep(3 * AFTER)
    assert len(complaints) == 1 and len(good.looks) == 1
