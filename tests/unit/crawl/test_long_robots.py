"""Long robots.txt files are read in turn, in slices, and do not take the time of other visits."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from rove.crawl.long_robots import LongRobots
from rove.policy.robots_lines import LONG_ROBOTS
from tests.unit.crawl.scripted import ROBOTS, A, World, page, robots

LONG = "User-agent: *\n" + "# comment\n" * 8_000 + "Disallow: /closed\n"
MANY = "User-agent: *\n" + "".join(f"Disallow: /private/{n}\n" for n in range(5_000))


async def test_others_get_a_turn() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    reduced = await LongRobots().reduced(LONG.encode())
    task.cancel()
    assert reduced is not None and b"Disallow: /closed" in reduced.body
    assert turns > len(LONG) // LONG_ROBOTS


async def test_a_second_file_waits_for_its_share() -> None:
    """After some time of work, nine times as long passes before the next file is read."""
    now = 100.0
    long_robots = LongRobots(lambda: now, share=0.1)
    await long_robots.reduced(LONG.encode())
    second = asyncio.create_task(long_robots.reduced(LONG.encode()))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not second.done()
    assert await second is not None


async def test_if_too_many_wait_the_next_is_not_read() -> None:
    long_robots = LongRobots(max_waiting=2)
    waiting = [asyncio.create_task(long_robots.reduced(LONG.encode())) for _ in range(3)]
    results = await asyncio.gather(*waiting)
    assert [result is None for result in results] == [False, False, True]
    assert await long_robots.reduced(LONG.encode()) is not None


async def test_a_cancelled_visit_leaves_its_place() -> None:
    long_robots = LongRobots(max_waiting=1)
    task = asyncio.create_task(long_robots.reduced(LONG.encode()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await long_robots.reduced(LONG.encode()) is not None


class TestVisits:
    """What a visit does with a long robots.txt."""

    async def test_only_what_applies_to_rove_is_stored(self, world: World) -> None:
        await world.open(f"{A}/", f"{A}/closed", script={ROBOTS: robots(LONG), f"{A}/": page()})
        record = await world.visit()
        assert world.fetcher.requested == [ROBOTS, f"{A}/"]
        assert await world.states() == {f"{A}/": "done", f"{A}/closed": "pending"}
        (known,) = await world.frontier.origins([(record.lease.domain, A)])
        assert b"Disallow: /closed" in known.body and len(known.body) < 200
        assert record.requests[0].marks == ()

    async def test_rules_that_are_ignored_are_marked(self, world: World) -> None:
        await world.open(f"{A}/", script={ROBOTS: robots(MANY), f"{A}/": page()})
        record = await world.visit()
        assert record.requests[0].marks == ("robots-cut",)
        assert (await world.frontier.counts()).marks == {"robots-cut": 1}

    async def test_without_time_for_it_the_origin_counts_as_unreachable(self, world: World) -> None:
        await world.open(f"{A}/", script={ROBOTS: robots(LONG)})
        context = replace(world.context(), long_robots=LongRobots(max_waiting=0))
        world.context = lambda: context  # type: ignore[method-assign]
        record = await world.visit()
        assert world.fetcher.requested == [ROBOTS]
        assert record.requests[0].error == "busy"
        assert await world.states() == {f"{A}/": "pending"}
