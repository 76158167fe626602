"""A crawl that its owner has paused."""

from __future__ import annotations

import asyncio
from typing import Any

from rove.config import Limits
from rove.crawl.shutdown import Ending
from rove.fetch.contract import Request
from tests.unit.crawl.scripted import ScriptedFetcher, page
from tests.unit.crawl.workspace import Workspace, front_pages

PATIENCE = 60.0
"""Only a hang may take this long."""


async def until_it_says_so(workspace: Workspace) -> None:
    """Wait until the panel shows the pause."""
    while True:
        if workspace.progress.troubles == {"operator": "paused by 'rove pause'"}:
            return
        await asyncio.sleep(0.01)


async def until_the_process_says_so(workspace: Workspace) -> None:
    """Wait for the heartbeat with the pause, which comes a moment after the panel shows it."""
    while await workspace.rows("SELECT paused FROM process") != [(1,)]:
        pass


async def until_nothing_is_leased(workspace: Workspace) -> None:
    while (await workspace.counts()).domains["leased"]:
        pass


async def test_visits_in_flight_finish_and_no_new_one_starts(workspace: Workspace) -> None:
    workspace.fetcher = ScriptedFetcher(dict.fromkeys(front_pages(10), page()))
    await workspace.open(*front_pages(10))
    crawl = workspace.crawl(concurrency=2, store=workspace.store())
    in_flight = asyncio.Event()

    async def hold(request: Request) -> None:
        """Pause the crawl during its first two visits, whose leases were claimed together with others."""
        if len(workspace.fetcher.requested) == 2 and not in_flight.is_set():
            assert (await workspace.counts()).domains["leased"] > 2, "some domains were claimed ahead"
            crawl.set_paused(True)
            in_flight.set()
        await in_flight.wait()

    workspace.fetcher.before_answer = hold
    running = asyncio.create_task(crawl.run())
    async with asyncio.timeout(PATIENCE):
        await until_nothing_is_leased(workspace)
        await until_it_says_so(workspace)
        await workspace.some_turns()
        assert (await workspace.counts()).pages == 2, "visits in flight finish, and no other one starts"
        crawl.set_paused(False)
        assert await running is Ending.EXHAUSTED
    assert (await workspace.counts()).pages == 10


async def test_a_claim_that_returns_after_the_pause_began_is_given_back(workspace: Workspace) -> None:
    await workspace.open(*front_pages(3))
    frontier: Any = _PausedDuringClaim(workspace.frontier)
    crawl = frontier.crawl = workspace.crawl(frontier=frontier, store=workspace.store())
    running = asyncio.create_task(crawl.run())
    async with asyncio.timeout(PATIENCE):
        await until_it_says_so(workspace)
        assert frontier.has_claimed
        await until_nothing_is_leased(workspace)
        await workspace.some_turns()
        assert workspace.fetcher.requested == []
        crawl.stop()
        assert await running is Ending.STOPPED
    assert (await workspace.counts()).domains["ready"] == 3


class _PausedDuringClaim:
    """A frontier that pauses the crawl when a claim has leased its domains."""

    def __init__(self, frontier: Any) -> None:
        self._frontier = frontier
        self.crawl: Any = None
        self.has_claimed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frontier, name)

    async def claim(self, limit: int) -> Any:
        leases = await self._frontier.claim(limit)
        assert leases and not self.has_claimed, "a paused crawl claims nothing"
        self.has_claimed = True
        self.crawl.set_paused(True)
        return leases


async def test_a_paused_crawl_does_not_end_because_nothing_is_left(workspace: Workspace) -> None:
    await workspace.open()
    crawl = workspace.crawl(store=workspace.store())
    crawl.set_paused(True)
    running = asyncio.create_task(crawl.run())
    async with asyncio.timeout(PATIENCE):
        await until_it_says_so(workspace)
        await until_the_process_says_so(workspace)
        await workspace.some_turns()
        assert not running.done()
        crawl.set_paused(False)
        assert await running is Ending.EXHAUSTED
    assert await workspace.rows("SELECT paused FROM process") == [(0,)]


async def test_a_pause_that_begins_at_the_last_look_keeps_the_crawl(workspace: Workspace) -> None:
    await workspace.open()
    frontier: Any = _PausedAtLastLook(workspace.frontier)
    crawl = frontier.crawl = workspace.crawl(frontier=frontier, store=workspace.store())
    running = asyncio.create_task(crawl.run())
    async with asyncio.timeout(PATIENCE):
        await until_it_says_so(workspace)
        assert not running.done()
        crawl.stop()
        assert await running is Ending.STOPPED


class _PausedAtLastLook:
    """A frontier that pauses the crawl when it finds that nothing is left."""

    def __init__(self, frontier: Any) -> None:
        self._frontier = frontier
        self.crawl: Any = None
        self.looks = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frontier, name)

    async def next_due(self, *, failing_within: float = 0.0) -> float | None:
        due: float | None = await self._frontier.next_due(failing_within=failing_within)
        self.looks += 1
        if self.looks == 2:
            self.crawl._claimer._is_paused = True  # without the wake-up of set_paused, which would look again
        return due


async def test_limits_and_stops_work_while_paused(workspace: Workspace) -> None:
    await workspace.open(*front_pages(3))
    for limits, expected in ((Limits(max_duration=0.1), Ending.MAX_DURATION), (Limits(), Ending.STOPPED)):
        crawl = workspace.crawl(store=workspace.store(), limits=limits)
        crawl.set_paused(True)
        running = asyncio.create_task(crawl.run())
        if expected is Ending.STOPPED:
            await workspace.some_turns()
            crawl.stop()
        async with asyncio.timeout(PATIENCE):
            assert await running is expected
    assert workspace.fetcher.requested == []
