"""A crawl is opened for those who look, and closed when nobody does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from rove.errors import FrontierError, UsageError
from rove.inspect.open_crawl import Archive
from rove.observe.dashboard.watched import WatchedCrawl


class Crawls:
    """Counts how many crawls are open."""

    def __init__(self) -> None:
        self.opened = 0
        self.closed = 0
        self.was_closed = asyncio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Archive]:
        self.opened += 1
        try:
            yield cast(Archive, object())
        finally:
            self.closed += 1
            self.was_closed.set()


async def test_readers_share_one_open_crawl() -> None:
    crawls = Crawls()
    watched = WatchedCrawl(crawls.open)
    async with watched.reading() as first, watched.reading() as second:
        assert first is second
    async with watched.reading() as third:
        assert third is first
    assert (crawls.opened, crawls.closed) == (1, 0)
    await watched.close()
    assert crawls.closed == 1


async def test_a_crawl_that_nobody_reads_is_closed() -> None:
    crawls = Crawls()
    watched = WatchedCrawl(crawls.open, idle_seconds=0.0)
    async with watched.reading():
        await asyncio.sleep(0.01)
        assert crawls.closed == 0
    await crawls.was_closed.wait()
    async with watched.reading():
        assert crawls.opened == 2
    await watched.close()


async def test_after_an_error_the_next_reader_opens_the_crawl_anew() -> None:
    crawls = Crawls()
    watched = WatchedCrawl(crawls.open)
    async with watched.reading() as other:
        with pytest.raises(FrontierError):
            async with watched.reading():
                raise FrontierError("the database is gone")
        assert crawls.closed == 0, "another reader still uses it"
        async with watched.reading() as fresh:
            assert fresh is not other
    await watched.close()
    assert (crawls.opened, crawls.closed) == (2, 2)


async def test_a_mistake_of_the_reader_leaves_the_crawl_open() -> None:
    crawls = Crawls()
    watched = WatchedCrawl(crawls.open)
    with pytest.raises(UsageError):
        async with watched.reading():
            raise UsageError("that is not a URL")
    async with watched.reading():
        assert crawls.opened == 1
    await watched.close()


async def test_an_old_crawl_is_opened_anew() -> None:
    crawls = Crawls()
    watched = WatchedCrawl(crawls.open, max_age=0.0)
    async with watched.reading() as first:
        pass
    async with watched.reading() as second:
        assert second is not first
    await watched.close()
    assert (crawls.opened, crawls.closed) == (2, 2)
