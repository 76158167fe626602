"""The last pages before --max-pages: slow sites do not hold them up, and the limit stays exact."""

from __future__ import annotations

import asyncio

import pytest

from rove.config import Limits
from rove.crawl.shutdown import Ending
from rove.crawl.slots import SLOW_SECONDS
from rove.fetch.contract import Request
from rove.frontier.clock import steady_seconds
from tests.unit.crawl.scripted import ScriptedFetcher, page
from tests.unit.crawl.workspace import Workspace, front_pages


class SlowSites:
    """Lets the first requests for pages take for ever. The clock jumps so far ahead that each of them is slow."""

    def __init__(self, workspace: Workspace, hosts: int, *, slow: int) -> None:
        self._skipped = 0.0
        self._slow = slow
        self.urls = front_pages(hosts)
        workspace.fetcher = ScriptedFetcher(dict.fromkeys(self.urls, page()))
        workspace.fetcher.before_answer = self._hold

    def clock(self) -> float:
        return steady_seconds() + self._skipped

    async def _hold(self, request: Request) -> None:
        if not request.url.text.endswith("/robots.txt") and self._slow:
            self._slow -= 1
            self._skipped += SLOW_SECONDS + 1
            await asyncio.Event().wait()


@pytest.mark.parametrize(("hosts", "slow", "limit"), [(2, 1, 1), (9, 2, 5), (5, 4, 4)])
async def test_a_slow_site_gives_its_page_to_another(workspace: Workspace, hosts: int, slow: int, limit: int) -> None:
    sites = SlowSites(workspace, hosts, slow=slow)
    await workspace.open(*sites.urls, delay=0.0)
    assert await workspace.run(clock=sites.clock, limits=Limits(max_pages=limit)) is Ending.MAX_PAGES
    counts = await workspace.counts()
    assert counts.pages == workspace.progress.pages == limit
    assert counts.domains["leased"] == 0
    assert set((await workspace.states()).values()) <= {"done", "pending"}, "no site has failed"
    assert 1 <= workspace.progress.errors["aborted"] <= slow


async def test_the_second_visit_to_a_slow_site_may_take_its_time(workspace: Workspace) -> None:
    """Otherwise the crawl would never end if all sites that are left are slow."""
    sites = SlowSites(workspace, 2, slow=2)
    await workspace.open(*sites.urls)
    assert await workspace.run(clock=sites.clock, limits=Limits(max_pages=1)) is Ending.MAX_PAGES
    assert (await workspace.counts()).pages == 1
    assert len(workspace.fetcher.pages_requested) == 3


async def test_a_slow_site_is_not_cancelled_if_no_other_can_bring_its_page(workspace: Workspace) -> None:
    (url,) = front_pages(1)
    skipped = 0.0
    workspace.fetcher = ScriptedFetcher({url: page()})

    async def take_long(request: Request) -> None:
        nonlocal skipped
        if request.url.text == url:
            skipped = SLOW_SECONDS + 1
            await workspace.some_turns()

    workspace.fetcher.before_answer = take_long
    await workspace.open(url)
    ending = await workspace.run(clock=lambda: steady_seconds() + skipped, limits=Limits(max_pages=1))
    assert ending is Ending.MAX_PAGES and workspace.fetcher.pages_requested == [url]
