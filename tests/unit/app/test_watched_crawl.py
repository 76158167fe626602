"""The numbers of a crawl that runs in other processes, and a database that is away or can only be read as a copy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from rove.app.panel_view import View, plain_line
from rove.app.watched_crawl import COPY_SECONDS, SILENT, WatchedCrawl
from rove.config import Limits, Settings
from rove.datadir import DataDir
from rove.errors import FrontierError, RoveError, UsageError
from rove.frontier.runs import Vitals
from rove.inspect.open_crawl import Archive
from rove.model.counts import Counts
from rove.model.urls import UrlState
from rove.policy.limiting import Factor
from rove.store.reader import WarcReader
from tests.contract.harness import DELAY, page_row, visited
from tests.unit.crawl.scripted import World


class Reading:
    """Opens the crawl of a world, and can fail in every way."""

    def __init__(self, world: World, folder: Path) -> None:
        self._world = world
        self.data = DataDir(folder / "data")
        self.now = 0.0
        self.opened = 0
        self.copies = False
        self.error: Exception | None = None
        self.hangs = False
        self.said: list[str] = []
        self.watched = WatchedCrawl(self.open, on_news=self.said.append, clock=lambda: self.now, patience=30.0)

    @asynccontextmanager
    async def open(self, on_news: Callable[[str], None]) -> AsyncIterator[Archive]:
        self.opened += 1
        if self.copies:
            on_news("reading a temporary copy")
        reader: Any = self._world.harness.reader()
        read_counts = reader.counts

        async def counts() -> Counts:
            if self.hangs:
                await asyncio.Event().wait()
            if self.error is not None:
                raise self.error
            result: Counts = await read_counts()
            return result

        reader.counts = counts
        yield Archive(
            data=self.data, reader=reader, catalog=self._world.harness.catalog(), pages=WarcReader(self.data.warc)
        )

    async def view(self) -> View:
        view = await self.watched.view()
        assert view is not None, "the crawl runs"
        return view


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


async def begin(world: World) -> None:
    """Make one page of one of two domains, and report a heartbeat."""
    await world.open("http://a.test/", "http://a.test/2", "http://b.test/", "http://b.test/2")
    settings = Settings(email="me@crawler.test", limits=Limits(max_pages=100))
    await world.harness.catalog().save(settings.to_json(), None)
    for lease in await world.frontier.claim(2):
        row = page_row(lease, lease.urls[0].url, size=100)
        await world.frontier.settle([visited(lease, UrlState.DONE, requests=[row])])
    world.advance(DELAY / 2)
    vitals = Vitals(pages=2, pages_per_second=0.5, in_flight=0, at_once=500, held_by="demand")
    await world.frontier.note_alive(vitals)


async def test_the_view_of_a_running_crawl(world: World, tmp_path: Path) -> None:
    await begin(world)
    reading = Reading(world, tmp_path)
    with reading.data.held():
        view = await reading.view()
    assert (view.counters.at_once, view.counters.pages, view.counts.pages, view.rate) == (500, 2, 2, 0.5)
    assert view.next_visit == pytest.approx(DELAY / 2) and view.seconds == pytest.approx(DELAY / 2)
    assert view.left == "98 pages (about 3 min 16 s)"
    assert view.limiting is not None and view.limiting.factor is Factor.POLITENESS
    assert plain_line(view).startswith(
        "35.0 s: 2 pages, 0.5/s now, 0.1/s on average, 200 B, 0 in flight of at most 500"
    )


async def test_a_crawl_that_does_not_run_has_no_view(world: World, tmp_path: Path) -> None:
    await begin(world)
    reading = Reading(world, tmp_path)
    assert await reading.watched.view() is None
    assert reading.watched.status is not None and reading.watched.status.counts.pages == 2
    await reading.watched.close()


async def test_a_database_that_is_away_leaves_the_last_numbers(world: World, tmp_path: Path) -> None:
    await begin(world)
    reading = Reading(world, tmp_path)
    with reading.data.held():
        first = await reading.view()
        reading.error = FrontierError("the frontier failed")
        assert (await reading.view()).counters.troubles == {"database": "the frontier failed"}
        reading.error, reading.hangs, reading.watched._patience = None, True, 0.01
        away = await reading.view()
        assert away.counters.troubles == {"database": SILENT} and away.counts == first.counts
        reading.hangs, reading.watched._patience = False, 30.0
        assert (await reading.view()).counters.troubles == {}


@pytest.mark.parametrize(
    ("error", "expected", "sentence"),
    [(UsageError("it holds no crawl"), UsageError, "holds no crawl"), (None, RoveError, "does not answer")],
)
async def test_without_any_numbers_an_error_ends_the_command(
    world: World, tmp_path: Path, error: Exception | None, expected: type[RoveError], sentence: str
) -> None:
    await begin(world)
    reading = Reading(world, tmp_path)
    reading.error, reading.hangs, reading.watched._patience = error, error is None, 0.01 if error is None else 30.0
    with pytest.raises(expected, match=sentence):
        await reading.watched.view()


async def test_a_copy_is_replaced_from_time_to_time(world: World, tmp_path: Path) -> None:
    await begin(world)
    reading = Reading(world, tmp_path)
    reading.copies = True
    with reading.data.held():
        for second in range(3 * int(COPY_SECONDS)):
            reading.now = float(second)
            await reading.view()
    assert reading.opened == 3
    assert reading.said == ["reading a temporary copy"], "once is enough"


async def test_a_database_that_can_be_read_is_opened_once(world: World, tmp_path: Path) -> None:
    await begin(world)
    reading = Reading(world, tmp_path)
    with reading.data.held():
        for second in range(0, 10_000, 1_000):
            reading.now = float(second)
            await reading.view()
    assert reading.opened == 1
