"""The requests of a visit in the in-flight log."""

from __future__ import annotations

import asyncio

import pytest

from rove.crawl.inflight_log import inflight_files, lost_visits
from rove.errors import StoreError
from rove.fetch.contract import Request
from rove.frontier.records import LostVisit
from rove.model.ledger import DelaySource, Settlement
from rove.model.text_hash import robots_name
from tests.unit.crawl.scripted import DELAY, NOTHING_PRIVATE, ROBOTS, A, World, page, refused, robots


class TestInflightLog:
    """Every request is in the in-flight log before it is sent."""

    async def test_a_line_is_written_before_and_after_each_request(self, world: World) -> None:
        await world.open(f"{A}/", script={ROBOTS: NOTHING_PRIVATE, f"{A}/": page()})
        seen: list[list[tuple[str, str, int]]] = []

        async def look(request: Request) -> None:
            world.advance(3)
            seen.append(logged(world))

        world.fetcher.before_answer = look
        held = await world.claim()
        record, visit = world.start(held)
        await visit.run()
        read = (ROBOTS, "", 200)
        assert seen == [[(ROBOTS, "lost", 0)], [read, (f"{A}/", "lost", 0)]]
        assert logged(world) == [read, (f"{A}/", "", 200)]
        (lost,) = logged_visits(world)
        assert (lost.visit, lost.domain) == (held.lease.token, held.lease.domain)
        assert lost.robots == [NOTHING_PRIVATE.body]
        assert lost.earliest == world.harness.now() + 1000 * DELAY + 1
        assert [row.robots for row in lost.rows] == [robots_name(NOTHING_PRIVATE.body), ""]
        assert [(row.began, row.ended) for row in lost.rows] == [(row.began, row.ended) for row in record.requests]

    async def test_the_pause_that_an_answer_asks_for_is_logged_with_it(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": refused(503, ("Retry-After", "900"))})
        held = await world.claim()
        _, visit = world.start(held)
        await visit.run()
        (lost,) = logged_visits(world)
        assert lost.earliest == world.harness.now() + 900_001
        assert {row.delay_from for row in lost.rows} == {DelaySource.RETRY_AFTER}

    async def test_a_crawl_delay_is_logged_before_the_page_is_requested(self, world: World) -> None:
        await world.open(f"{A}/", script={f"{A}/": page()})
        world.fetcher.script[ROBOTS] = robots("User-agent: *\nCrawl-delay: 500\n")
        seen: dict[str, list[float]] = {}

        async def look(request: Request) -> None:
            seen[request.url.text] = [row.delay for lost in logged_visits(world) for row in lost.rows]

        world.fetcher.before_answer = look
        await world.visit()
        assert seen == {ROBOTS: [DELAY], f"{A}/": [500.0, 500.0]}

    async def test_a_request_that_outlives_its_lease_is_late_and_ends_at_the_deadline(self, world: World) -> None:
        """Its process was suspended. The server has seen no more of it than until the deadline."""
        await world.open(f"{A}/", script={ROBOTS: NOTHING_PRIVATE, f"{A}/": page()})

        async def suspend(request: Request) -> None:
            if request.url.text == f"{A}/":
                world.advance(1_000)

        world.fetcher.before_answer = suspend
        held = await world.claim()
        record, visit = world.start(held)
        await visit.run()
        robots_row, row = record.requests
        assert (robots_row.settlement, row.settlement) == (Settlement.SETTLED, Settlement.LATE)
        assert row.ended == int((held.deadline + held.clock_offset) * 1000)
        assert (record.settled, record.deferred, record.pages) == ({}, {}, [])

    async def test_a_cancelled_request_is_logged_as_aborted(self, world: World) -> None:
        await world.open(f"{A}/")
        started = asyncio.Event()

        async def hang(request: Request) -> None:
            started.set()
            await asyncio.Event().wait()

        world.fetcher.before_answer = hang
        held = await world.claim()
        _, visit = world.start(held)
        task = asyncio.ensure_future(visit.run())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert logged(world) == [(ROBOTS, "aborted", 0)]

    async def test_without_a_log_no_request_is_made(self, world: World) -> None:
        await world.open(f"{A}/")
        world.log_folder.write_text("in the way")
        held = await world.claim()
        _, visit = world.start(held)
        with pytest.raises(StoreError):
            await visit.run()
        assert world.fetcher.requested == []


def logged_visits(world: World) -> list[LostVisit]:
    """Return the visits that the next start would find if this process were killed now."""
    paths = [path for _, path in inflight_files(world.log_folder)]
    return lost_visits(1, paths, DELAY)


def logged(world: World) -> list[tuple[str, str, int]]:
    rows = [row for lost in logged_visits(world) for row in lost.rows]
    return [(row.url, row.error, row.status) for row in rows]
