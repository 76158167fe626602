"""How a crawl stops: by request, at the end of the grace period, and when visits are overdue."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from rove.config import Limits
from rove.crawl.shutdown import Ending
from rove.errors import FrontierError
from rove.fetch.contract import Request
from rove.frontier.clock import steady_seconds
from rove.frontier.contract import Frontier
from rove.policy.constants import VISIT_BUDGET
from tests.unit.crawl.scripted import ScriptedFetcher, page
from tests.unit.crawl.workspace import Workspace, front_pages


class Away:
    """A frontier whose database does not answer."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._stopped = asyncio.Event()
        self.waited: set[str] = set()

    def stop_waiting(self, seconds: float) -> None:
        self._stopped.set()

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._frontier, name)
        if not inspect.iscoroutinefunction(real):
            return real

        async def wait(*_: object, **__: object) -> None:
            self.waited.add(name)
            await self._stopped.wait()
            raise FrontierError("the database is away")

        return wait


class TestStop:
    """Shutting a crawl down."""

    async def test_unused_leases_are_given_back(self, workspace: Workspace) -> None:
        workspace.fetcher = ScriptedFetcher(dict.fromkeys(front_pages(10), page()))
        await workspace.open(*front_pages(10), delay=1000.0)
        crawl = workspace.crawl(concurrency=2, delay=1000.0, store=workspace.store())
        leased = 0

        async def stop(request: Request) -> None:
            """Stop once both slots are busy, then wait until the unused leases are given back."""
            nonlocal leased
            while len(workspace.fetcher.requested) < 2:
                await workspace.counts()
            leased = max(leased, (await workspace.counts()).domains["leased"])
            crawl.stop()
            while (await workspace.counts()).domains["leased"] > 2:
                pass

        workspace.fetcher.before_answer = stop
        assert await crawl.run() is Ending.STOPPED
        assert leased > 2, "some domains were claimed ahead"
        counts = await workspace.counts()
        assert len(workspace.fetcher.requested) == 2
        assert counts.domains["leased"] == 0
        assert counts.domains["waiting"] == 2
        assert counts.domains["ready"] == 8
        assert counts.urls_pending == 10

    async def test_the_time_limit_holds_while_the_database_is_away(self, workspace: Workspace) -> None:
        """Neither a heartbeat nor what precedes a claim returns until the shutdown gives up waiting."""
        await workspace.open(*front_pages(1))
        frontier = Away(workspace.frontier)
        crawl = workspace.crawl(frontier=frontier, limits=Limits(max_duration=2.5), store=workspace.store())
        with pytest.raises(FrontierError, match="the database is away"):
            await crawl.run()
        assert crawl._shutdown.ending is Ending.MAX_DURATION
        assert frontier.waited >= {"note_alive", "responding_due"}

    async def test_fetches_in_flight_may_finish(self, workspace: Workspace) -> None:
        workspace.fetcher = ScriptedFetcher(dict.fromkeys(front_pages(3), page()))
        await workspace.open(*front_pages(3))
        crawl = workspace.crawl(concurrency=1, store=workspace.store())

        async def stop(request: Request) -> None:
            if not request.url.text.endswith("robots.txt"):
                crawl.stop()
                await workspace.some_turns()
                assert crawl.progress.is_stopping, "the panel says so"

        workspace.fetcher.before_answer = stop
        await crawl.run()
        assert workspace.progress.internal_errors == 0
        assert len(workspace.fetcher.pages_requested) == 1
        assert (await workspace.counts()).pages == workspace.progress.pages == 1
        assert set(await workspace.pages()) == set(workspace.fetcher.pages_requested)

    async def test_a_fetch_that_outlasts_the_grace_period_is_cancelled(self, workspace: Workspace) -> None:
        await workspace.open("http://h0.test/", delay=1000.0)
        crawl = workspace.crawl(delay=1000.0, store=workspace.store(), grace_seconds=0.05)

        async def hang(request: Request) -> None:
            crawl.stop()
            await asyncio.Event().wait()

        workspace.fetcher.before_answer = hang
        assert await crawl.run() is Ending.STOPPED
        counts = await workspace.counts()
        assert (counts.urls_pending, counts.requests, counts.domains["leased"]) == (1, 1, 0)
        due = await workspace.frontier.next_due()
        assert due is not None and 990 < due <= 1000, "a request was made, so the delay applies"

    async def test_a_crawl_that_is_stopped_at_once_ends_at_once(self, workspace: Workspace) -> None:
        await workspace.open(*front_pages(3))
        crawl = workspace.crawl(store=workspace.store())
        crawl.stop()
        async with asyncio.timeout(5):
            assert await crawl.run() is Ending.STOPPED
        assert workspace.fetcher.requested == []
        assert (await workspace.counts()).domains["ready"] == 3

    async def test_the_first_reason_to_end_counts(self, workspace: Workspace) -> None:
        await workspace.open()
        crawl = workspace.crawl(store=workspace.store())
        crawl.stop(Ending.MAX_DURATION)
        crawl.stop(Ending.STOPPED)
        assert await crawl.run() is Ending.MAX_DURATION

    async def test_loading_seeds_is_stopped_too(self, workspace: Workspace) -> None:
        await workspace.open()
        crawl = workspace.crawl(store=workspace.store())
        cancelled = False

        async def load(_: Callable[[], None]) -> None:
            nonlocal cancelled
            crawl.stop()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled = True
                raise

        async with asyncio.timeout(5):
            assert await crawl.run(workspace.seeds(load)) is Ending.STOPPED
        assert cancelled


class TestOverdue:
    """No request starts after the deadline of a lease, by the steady clock."""

    async def test_a_visit_past_its_deadline_is_cancelled(self, workspace: Workspace) -> None:
        await workspace.open("http://h0.test/", delay=1000.0)
        suspended = 0.0
        crawl = workspace.crawl(delay=1000.0, store=workspace.store(), clock=lambda: steady_seconds() + suspended)

        async def suspend(request: Request) -> None:
            nonlocal suspended
            suspended = VISIT_BUDGET + 1
            try:
                await asyncio.Event().wait()
            finally:
                crawl.stop()

        workspace.fetcher.before_answer = suspend
        async with asyncio.timeout(10):
            await crawl.run()
        assert workspace.fetcher.requested == ["http://h0.test/robots.txt"]
        assert await workspace.states() == {"http://h0.test/": "pending"}
        assert workspace.progress.errors == {"aborted": 1}

    async def test_a_lease_that_waited_too_long_is_not_used(self, workspace: Workspace) -> None:
        workspace.fetcher = ScriptedFetcher(dict.fromkeys(front_pages(2), page()))
        await workspace.open(*front_pages(2), delay=1000.0)
        suspended = 0.0
        crawl = workspace.crawl(
            concurrency=1, delay=1000.0, store=workspace.store(), clock=lambda: steady_seconds() + suspended
        )

        async def suspend(request: Request) -> None:
            nonlocal suspended
            while (await workspace.counts()).domains["leased"] < 2:
                pass
            suspended = VISIT_BUDGET + 1
            workspace.fetcher.before_answer = stop

        async def stop(request: Request) -> None:
            crawl.stop()

        workspace.fetcher.before_answer = suspend
        async with asyncio.timeout(10):
            await crawl.run()
        # The first visit was in flight during the suspend. The second domain was claimed again before its request.
        assert len(workspace.fetcher.requested) == 2
        assert len(set(workspace.fetcher.requested)) == 2
        ((visits,),) = await workspace.rows("SELECT value FROM counter WHERE name = 'visits'")
        assert visits >= 3
