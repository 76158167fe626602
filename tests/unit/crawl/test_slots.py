"""How many visits are in flight while the throttle rises and falls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from rove.crawl.loop import Crawl
from rove.fetch.contract import Request
from tests.unit.crawl.scripted import ScriptedFetcher, page
from tests.unit.crawl.test_loop_outage import running, until
from tests.unit.crawl.workspace import Workspace, front_pages

HOSTS = 40


class SlowWeb:
    """A web whose answers wait until the test lets them go."""

    def __init__(self, workspace: Workspace) -> None:
        self.urls = front_pages(HOSTS)
        script: dict[str, Any] = {url: page() for url in self.urls}
        self.fetcher = workspace.fetcher = ScriptedFetcher(script)
        self.fetcher.before_answer = self._before_answer
        self.waiting = 0
        self.most = 0
        self._released = asyncio.Semaphore(0)

    async def _before_answer(self, request: Request) -> None:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        await self._released.acquire()
        self.waiting -= 1

    def release(self, count: int) -> None:
        """Let this many requests be answered."""
        for _ in range(count):
            self._released.release()


@asynccontextmanager
async def slow_crawl(workspace: Workspace, concurrency: int) -> AsyncIterator[tuple[Crawl, SlowWeb]]:
    web = SlowWeb(workspace)
    await workspace.open(*web.urls)
    async with running(workspace, concurrency=concurrency) as (crawl, _):
        await until(lambda: web.waiting == concurrency)
        # The test moves the throttle instead.
        setattr(workspace.pressure, "check", lambda **_: None)  # noqa: B010 - for mypy
        yield crawl, web
        web.release(10 * HOSTS)
        await until(lambda: crawl.progress.pages == HOSTS)


async def test_a_lower_limit_cancels_nothing_and_a_higher_one_fills_up_at_once(workspace: Workspace) -> None:
    async with slow_crawl(workspace, 8) as (crawl, web):
        assert workspace.pressure is not None
        throttle = workspace.pressure.throttle
        throttle.limit = 3
        await workspace.some_turns()
        assert web.waiting == crawl.progress.in_flight == 8, "visits in flight go on"
        web.release(8 + 5)  # all are given a robots.txt, and five their page
        await until(lambda: crawl.progress.in_flight == 3)
        throttle.limit = 20
        await until(lambda: web.waiting == 20)
        assert web.most == 20


async def test_names_are_looked_up_while_domains_wait_for_a_slot(workspace: Workspace) -> None:
    async with slow_crawl(workspace, 8) as (crawl, web):
        await workspace.some_turns()
        begun = {request.url.origin for request in web.fetcher.requests}
        assert len(begun) == crawl.progress.in_flight == 8 and begun.isdisjoint(web.fetcher.looked_ahead)
        assert len(web.fetcher.looked_ahead) == 2, "the queue holds a quarter of the slots"


async def test_more_visits_start_when_memory_is_no_longer_short(workspace: Workspace) -> None:
    async with slow_crawl(workspace, 4) as (crawl, web):
        assert workspace.pressure is not None
        throttle = workspace.pressure.throttle
        throttle.shut()
        web.release(8)
        await until(lambda: crawl.progress.in_flight == 0)
        throttle.open()
        await until(lambda: web.waiting == 4)
