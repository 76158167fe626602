"""A crawl that is moved from SQLite to PostgreSQL continues as it would have in SQLite."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rove.errors import FrontierError
from rove.frontier.contract import Catalog, Frontier, FrontierReader
from rove.frontier.move.mover import PROGRESS_SECONDS
from rove.frontier.move.tables import TABLES
from rove.frontier.postgres.backend import PostgresBackend
from rove.frontier.postgres.frontier import PostgresFrontier
from rove.frontier.priority import URLS_PER_ADD
from rove.frontier.queries import load_queries
from rove.frontier.runs import crawled_seconds
from rove.frontier.seed_source import SeedSource
from rove.frontier.sqlite.backend import SqliteBackend
from rove.frontier.sqlite.frontier import SqliteFrontier
from rove.model.ledger import DelaySource
from rove.model.text_hash import robots_name
from rove.model.urls import UrlState
from rove.model.visits import Lease
from tests.contract.harness import url
from tests.contract.moved_crawl import (
    DAY,
    POLICY,
    SETTINGS,
    TEXT,
    Clock,
    Target,
    check_times,
    crawl_in,
    interrupted,
    opened,
    settled_visit,
    sqlite_database,
    sqlite_file,
)

STEP = 50.0
SHARED = {"counter": "name NOT IN ('visits', 'adds')"}
"""Rows that are not sequences in PostgreSQL."""


@asynccontextmanager
async def _both(
    path: Path, clock: Clock, target: Target
) -> AsyncIterator[tuple[SqliteBackend, SqliteFrontier, PostgresBackend, Frontier]]:
    """Resume the crawl in both databases, with stopped clocks."""
    await target.rows("UPDATE test_clock SET now = clock_ms()")
    clock.stopped_at = clock()
    async with (
        opened(path) as here,
        sqlite_database(path) as here_database,
        target.backend() as there,
        target.database() as there_database,
    ):
        sqlite = SqliteFrontier(here_database, POLICY, clock)
        await sqlite.begin(await here.begin_run())
        ((machine,),) = await target.rows("SELECT id FROM machine")
        postgres = PostgresFrontier(there_database, POLICY, machine, clock.seconds)
        await postgres.begin(await there.begin_run())
        yield here, sqlite, there, postgres


async def test_a_moved_crawl_continues_as_it_would_have(tmp_path: Path, target: Target) -> None:
    path, clock = await crawl_in(tmp_path)
    await target.take_clock()
    await target.move(path)
    async with _both(path, clock, target) as (_, sqlite, _, postgres):
        assert await postgres.counts() == await sqlite.counts()
        assert await postgres.next_due() == pytest.approx(await sqlite.next_due(), abs=1)
        assert await postgres.recover() == await sqlite.recover() == 4
        retried: set[str] = set()
        for step in range(30):
            leases = await sqlite.claim(100)
            same = await postgres.claim(100)
            assert _as_offered(same) == _as_offered(leases), f"after {step * STEP} s"
            assert await postgres.counts() == await sqlite.counts()
            retried |= {u.url for lease in leases for u in lease.urls if u.attempts}
            await sqlite.settle([settled_visit(lease, UrlState.DONE) for lease in leases])
            await postgres.settle([settled_visit(lease, UrlState.DONE) for lease in same])
            new = [url(f"https://other.test/new/{step}"), url(f"https://n{step % 3}.test/{step}")]
            assert (await postgres.add(new)).unseen == (await sqlite.add(new)).unseen == 2
            clock.advance(STEP)
            await target.rows("UPDATE test_clock SET now = now + $1", round(STEP * 1000))
        assert retried == {"https://held.test/", "https://again.test/"}
        assert await postgres.counts() == await sqlite.counts()


def _as_offered(leases: list[Lease]) -> dict[str, Any]:
    return {
        lease.name: (lease.crawl_delay, lease.pace, [(u.url, u.depth, u.attempts) for u in lease.urls])
        for lease in leases
    }


async def test_all_rows_are_the_same(tmp_path: Path, target: Target) -> None:
    path, clock = await crawl_in(tmp_path)
    await target.take_clock()
    moved = await target.move(path)
    assert moved["URLs"] == 78
    assert moved["domains"] == 15
    assert not await target.is_moving()
    with sqlite_file(path) as connection:
        for table in TABLES:
            sql = f"SELECT count(*) FROM {table.name} WHERE {SHARED.get(table.name, 'true')}"
            (count,) = connection.execute(sql).fetchone()
            assert moved[table.title] == count > 0
            assert await target.rows(sql) == [(count,)]
        order = "SELECT url, depth FROM url WHERE state = 0 ORDER BY domain, priority, position"
        assert await target.rows(order) == connection.execute(order).fetchall()
        leased = "SELECT id, owner, token, unsettled FROM domain WHERE owner IS NOT NULL ORDER BY id"
        assert await target.rows(leased) == connection.execute(leased).fetchall()
        keys = connection.execute("SELECT domain, origin FROM origin").fetchall()
        urls = connection.execute("SELECT domain, fingerprint FROM url").fetchall()
    async with _both(path, clock, target) as (here, sqlite, there, postgres):
        assert await there.catalog.settings() == SETTINGS
        assert await there.catalog.secret() == await here.catalog.secret(), "ids stay the same"
        assert await there.catalog.exclusions() == ["bad.example", "worse.example"]
        await _check_exclusions(here.catalog, there.catalog, *await _shifts(path, target))
        assert await there.catalog.seed_sources() == await here.catalog.seed_sources()
        (retry,), (moved_retry,) = await here.catalog.retries(), await there.catalog.retries()
        assert replace(moved_retry, at=retry.at, ended=retry.ended) == retry
        seeds = [[u.url async for part in backend.reader.seeds() for u in part] for backend in (here, there)]
        assert seeds[0] == seeds[1] and len(seeds[0]) == 2
        texts = await here.reader.contents([TEXT])
        assert len(texts) == 1 and await there.reader.contents([TEXT]) == texts
        samples = [[s async for part in backend.reader.samples() for s in part] for backend in (here, there)]
        contents = [[(s.ended, s.seconds, s.figures, s.histograms) for s in part] for part in samples]
        assert contents[0] == contents[1] and contents[0]
        await _check_ledger(here.reader, there.reader, *await _shifts(path, target))
        for key in urls:
            assert await there.reader.url(*key) == await here.reader.url(*key)
        origins = {record.origin: record for record in await postgres.origins(keys)}
        for record in await sqlite.origins(keys):
            moved_record = origins[record.origin]
            assert 0 <= moved_record.valid_for - record.valid_for < 1
            assert 0 <= record.age - moved_record.age < 1
            assert record == moved_record.replace(valid_for=record.valid_for, age=record.age)
            text = await there.reader.robots_text(robots_name(record.body))
            assert text == record.body
        runs = await here.reader.runs(), await there.reader.runs()
        assert [run.id for run in runs[0]] == [run.id for run in runs[1]]
        assert crawled_seconds(runs[1]) == pytest.approx(crawled_seconds(runs[0]), abs=0.5)
        people = await here.reader.participants(), await there.reader.participants()
        assert [p.process for p in people[0]] == [p.process for p in people[1]]
        assert all(p.is_here for p in people[1])
        clock.advance(DAY / 1000)
        await _check_numbers(target, path, postgres)
        await there.catalog.save(SETTINGS, SeedSource(id=0, path="seeds/2", name="third"))
        assert [source.id for source in await there.catalog.seed_sources()] == [1, 2, 3]


async def _shifts(path: Path, target: Target) -> tuple[int, int]:
    """Return the smallest and the largest shift of the requests' times."""
    with sqlite_file(path) as connection:
        here = [row[0] for row in connection.execute("SELECT began FROM request ORDER BY visit")]
    there = [row[0] for row in await target.rows("SELECT began FROM request ORDER BY visit")]
    shifts = [b - a for a, b in zip(here, there, strict=True)]
    return min(shifts), max(shifts)


async def _check_exclusions(here: Catalog, there: Catalog, least: int, most: int) -> None:
    """The history is the same, with its times on the other clock."""
    before, after = await here.exclusion_history(), await there.exclusion_history()
    assert [(e.pattern, e.who, e.lifted_by) for e in after] == [
        ("bad.example", "ann", "bob"),
        ("worse.example", "ann", ""),
        ("bad.example", "cid", ""),
    ]
    for old, new in zip(before, after, strict=True):
        assert replace(new, at=old.at, lifted_at=old.lifted_at) == old
        assert least - 1000 <= new.at - old.at <= most + 1000
        assert (new.lifted_at is None) == (old.lifted_at is None)
    assert await there.add_exclusions(["new.example"], who="", reason="") == ["new.example"]


async def _check_ledger(here: FrontierReader, there: FrontierReader, least: int, most: int) -> None:
    """All requests are the same, with their times on the other clock."""
    before = [row async for row in here.ledger()]
    after = [row async for row in there.ledger()]
    assert before
    for old, new in zip(before, after, strict=True):
        assert least <= new.began - old.began == new.ended - old.ended <= most
        assert new.replace(began=old.began, ended=old.ended) == old
    assert {row.delay_from for row in after} >= {DelaySource.DELAY, DelaySource.CRAWL_DELAY, DelaySource.RETRY_AFTER}


async def _check_numbers(target: Target, path: Path, postgres: Frontier) -> None:
    """New visits and new URLs get numbers after all earlier ones."""
    with sqlite_file(path) as connection:
        counters = dict(connection.execute("SELECT name, value FROM counter"))
    await target.rows("UPDATE test_clock SET now = now + $1", DAY)
    leases = await postgres.claim(100)
    assert min(lease.token for lease in leases) == counters["visits"] + 1
    await postgres.add([url("https://quite-new.test/")])
    newest = "SELECT position FROM url WHERE url = 'https://quite-new.test/'"
    ((position,),) = await target.rows(newest)
    assert position // URLS_PER_ADD == counters["adds"] + 1
    assert "visits" not in dict(await target.rows("SELECT name, value FROM counter"))


async def test_delays_end_when_they_would_have(tmp_path: Path, target: Target) -> None:
    path, clock = await crawl_in(tmp_path)
    before = clock()
    await target.move(path)
    await check_times(path, target, clock)
    assert clock() - before < 60_000


async def test_a_day_between_does_not_shorten_delays(tmp_path: Path, target: Target) -> None:
    path, clock = await crawl_in(tmp_path)
    await target.take_clock()
    await interrupted(target, path, 6)
    clock.advance(DAY / 1000)
    clock.save(path)
    await target.rows("UPDATE test_clock SET ahead = ahead + $1", DAY)
    await target.move(path)
    await check_times(path, target, clock)


async def test_the_shift_is_that_of_each_start(tmp_path: Path, target: Target) -> None:
    """The server's clock is set forward between two starts. Rows of the second start use the new clock."""
    path, _ = await crawl_in(tmp_path)
    await target.take_clock()
    await interrupted(target, path, 1)
    ((first,),) = await target.rows("SELECT count(*) FROM domain")
    await target.rows("UPDATE test_clock SET ahead = $1", DAY)
    await target.move(path)
    times = [row[1] for row in await target.rows("SELECT id, not_before FROM domain ORDER BY id")]
    with sqlite_file(path) as connection:
        rows = connection.execute("SELECT not_before FROM domain ORDER BY id").fetchall()
    shifts = [there - here for there, (here,) in zip(times, rows, strict=True)]
    assert 0 < first < len(shifts)
    assert {round((shift - shifts[0]) / DAY) for shift in shifts[:first]} == {0}
    assert {round((shift - shifts[0]) / DAY) for shift in shifts[first:]} == {1}
    assert shifts[-1] - shifts[0] == pytest.approx(DAY, abs=1000)


async def test_text_that_postgresql_cannot_store(tmp_path: Path, target: Target) -> None:
    path, _ = await crawl_in(tmp_path)
    with sqlite_file(path) as connection:
        connection.execute("UPDATE request SET title = 'a' || char(0) || 'b' WHERE visit = 1")
        connection.execute("UPDATE request SET title = CAST(x'61EDA08062' AS TEXT) WHERE visit = 2")
        connection.execute("UPDATE request SET title = CAST(x'61FF0062' AS TEXT) WHERE visit = 3")
        connection.execute("DELETE FROM exclusion")
        for pattern in ("a\0b", "a\0c", "a\x01", "b", "ä"):
            connection.execute(
                "INSERT INTO exclusion (pattern, at, wall, who, reason) VALUES (?, 1, 1, '', '')", (pattern,)
            )
        visits = [row[0] for row in connection.execute("SELECT DISTINCT visit FROM request")]
    await target.move(path, slice_rows=1)
    titles = dict(await target.rows("SELECT visit, title FROM request"))
    expected = {1: "a\ufffdb", 2: "a\ufffdb", 3: "a\ufffd\ufffdb"}
    assert {1, 2, 3} & set(visits)
    assert all(titles[visit] == expected[visit] for visit in visits if visit in expected)
    patterns = {row[0] for row in await target.rows("SELECT pattern FROM exclusion")}
    assert patterns == {"a\ufffdb", "a\ufffdc", "a\x01", "b", "ä"}


async def test_a_value_that_does_not_fit_is_an_error(tmp_path: Path, target: Target) -> None:
    path, _ = await crawl_in(tmp_path)
    with sqlite_file(path) as connection:
        connection.execute(f"UPDATE request SET status = {1 << 40}")
    with pytest.raises(FrontierError, match="a row of the table request does not fit"):
        await target.move(path)
    assert await target.is_moving()


async def test_slices_are_found_by_key(tmp_path: Path) -> None:
    path, _ = await crawl_in(tmp_path)
    values = {"shift": 1, "machine": 1, "retried": 1, "limit": 5, "key0": 1, "key1": 1, "key2": 1}
    with sqlite_file(path) as connection:
        for table in TABLES:
            query = load_queries("move")[f"slice_{table.name}"]
            plan = str(connection.execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall())
            assert "SEARCH" in plan, plan
            assert "TEMP B-TREE" not in plan, plan


async def test_progress_is_reported_at_intervals(tmp_path: Path, target: Target) -> None:
    path, _ = await crawl_in(tmp_path)
    said: list[str] = []
    await target.move(path, said.append, progress_seconds=PROGRESS_SECONDS)
    assert said == ["comparing the copy with the crawl"]
    other = Target(target.url)
    await other.move(path, said.append)
    await other.drop()
    assert "URLs: 40 of 78" in said
    assert "domains: 15 of 15" in said
    assert "robots.txt records: 3" in said


def test_the_queries_name_every_table_and_state() -> None:
    queries = load_queries("move")
    names = [table.name for table in TABLES]
    assert queries["clear"].split(None, 1)[1].split(", ") == names
    assert queries["analyze"].split(None, 1)[1].split(", ") == names
    assert re.findall(r"FROM (\w+)", queries["holds_rows"]) == names
    states = re.findall(r'state = (\d)\) AS "(\w+) URLs"', queries["count_url"])
    assert [(int(number), name) for number, name in states] == [(state.value, state.name.lower()) for state in UrlState]
