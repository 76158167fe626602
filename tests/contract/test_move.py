"""A crawl that is moved from SQLite to PostgreSQL goes on as if nothing had happened."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import msgspec
import pytest

from rove.errors import FrontierError, UsageError
from rove.frontier.clock import Anchor, machine_time, steady_seconds
from rove.frontier.contract import Catalog, Frontier, FrontierReader, Node, Policy, SeedSource
from rove.frontier.move.bookmark import is_moving
from rove.frontier.move.mover import PROGRESS_SECONDS, SLICE_ROWS, Moved, Mover, move
from rove.frontier.move.source import Source
from rove.frontier.move.tables import TABLES
from rove.frontier.postgres.backend import PostgresBackend
from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.frontier import PostgresFrontier
from rove.frontier.priority import HELD, RETRIED, URLS_PER_ADD
from rove.frontier.queries import load_queries
from rove.frontier.runs import crawled_seconds
from rove.frontier.sqlite.backend import SqliteBackend
from rove.frontier.sqlite.catalog import SqliteCatalog
from rove.frontier.sqlite.frontier import SqliteFrontier
from rove.model.ledger import (
    Content,
    DelaySource,
    Location,
    RequestKind,
)
from rove.model.urls import UrlState
from rove.model.visits import (
    Deferred,
    Lease,
    OriginRecord,
    Pace,
    RobotsStatus,
    VisitResult,
)
from rove.urls.fingerprint import fingerprint_bytes
from tests.contract.harness import first_urls, page_row, url, visited

POLICY = Policy(delay=70.0, budget=180.0, max_pages_per_domain=4)
MACHINE = Node(key="here", host="host", path="/data")
SETTINGS = '{"delay":70}'
STEP = 50.0
TEXT = -77
DAY = 86_400_000
NAMES = tuple(table.name for table in TABLES if table.name != "counter")
TIMES = {
    "domain": ("ready_at", "not_before"),
    "origin": ("expires_at", "fetched_at"),
    "request": ("began", "ended"),
    "exclusion": ("at", "lifted_at"),
    "run": ("started",),
    "process": ("started", "seen"),
}


@dataclass
class Clock:
    """The clock of a crawl in SQLite; it runs by itself until it is stopped."""

    offset: int = field(default_factory=lambda: 5_000_000_000 - int(steady_seconds() * 1000))
    stopped_at: int | None = None

    def __call__(self) -> int:
        if self.stopped_at is not None:
            return self.stopped_at
        return self.offset + int(steady_seconds() * 1000)

    def seconds(self) -> float:
        return self() / 1000

    def advance(self, seconds: float) -> None:
        self.offset += round(seconds * 1000)
        if self.stopped_at is not None:
            self.stopped_at += round(seconds * 1000)

    def keep(self, path: Path) -> None:
        """Write it to the file, where the move finds it."""
        anchor = msgspec.json.encode(
            Anchor(boot=machine_time().boot, offset_ms=self.offset)
        ).decode()
        with _sqlite(path) as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('clock', ?)", (anchor,))


class Target:
    """A schema of a test's own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.schema = f"move_{uuid4().hex[:12]}"

    async def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        connection = await asyncpg.connect(self.url)
        try:
            await connection.execute(f'SET search_path = "{self.schema}"')
            return [tuple(row) for row in await connection.fetch(sql, *parameters)]
        finally:
            await connection.close()

    async def take_clock(self) -> None:
        """Let the test move the clock: it runs by itself, with an offset, until it is stopped."""
        database = PostgresDatabase(self.url, self.schema)
        await database.open(create=True)
        await database.close()
        await self.rows("CREATE TABLE test_clock AS SELECT 0::bigint AS ahead, null::bigint AS now")
        await self.rows(
            "CREATE OR REPLACE FUNCTION server_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$ "
            "SELECT coalesce(now, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + ahead) "
            "FROM test_clock $$"
        )

    async def move(
        self,
        path: Path,
        say: Callable[[str], None] = lambda text: None,
        *,
        slice_rows: int = 5,
        progress_seconds: float = 0.0,
        node: Node = MACHINE,
    ) -> Moved:
        """Move in slices so small that each table has several, and report each."""
        return await move(
            path,
            self.url,
            self.schema,
            node,
            say=say,
            slice_rows=slice_rows,
            progress_seconds=progress_seconds,
        )

    async def is_moving(self) -> bool:
        database = PostgresDatabase(self.url, self.schema)
        await database.open()
        try:
            return await is_moving(database)
        finally:
            await database.close()

    @asynccontextmanager
    async def backend(self, machine: Node = MACHINE) -> AsyncIterator[PostgresBackend]:
        backend = PostgresBackend(self.url, self.schema, machine)
        await backend.open(create=True)
        try:
            yield backend
        finally:
            await backend.close()


@pytest.fixture
def target(postgres_url: str) -> Iterator[Target]:
    target = Target(postgres_url)
    yield target

    async def drop() -> None:
        connection = await asyncpg.connect(postgres_url)
        await connection.execute(f'DROP SCHEMA IF EXISTS "{target.schema}" CASCADE')
        await connection.close()

    asyncio.run(drop())


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[SqliteBackend]:
    backend = SqliteBackend(path)
    await backend.open(create=True)
    try:
        yield backend
    finally:
        await backend.close()


async def crawl_in(folder: Path) -> tuple[Path, Clock]:
    """A stopped crawl in which everything has happened that can."""
    path, clock = folder / "frontier.sqlite", Clock()
    async with opened(path) as backend:
        clock.keep(path)
        await backend.catalog.save(SETTINGS, SeedSource(id=0, path="seeds/0", name="top.csv"))
        await backend.catalog.save(SETTINGS, SeedSource(id=0, path="seeds/1", name="more.csv"))
        await backend.catalog.save_progress((await backend.catalog.seed_sources())[0])
        await _exclude(SqliteCatalog(backend._database, clock), clock)
        frontier = SqliteFrontier(backend._database, POLICY, clock)
        await frontier.begin(await backend.begin_run())
        await _crawl(frontier, clock)
        # One more process, which dies with its leases.
        later = SqliteFrontier(backend._database, POLICY, clock)
        await later.begin(await backend.begin_run())
        await later.add([url("https://late.test/"), url("https://later.test/", 1)])
        assert len(await later.claim(1)) == 1
        clock.advance(3)
    clock.keep(path)
    return path, clock


async def _exclude(catalog: SqliteCatalog, clock: Clock) -> None:
    """One that holds, and one that was lifted and holds again."""
    patterns = ["bad.example", "worse.example"]
    assert await catalog.add_exclusions(patterns, who="ann", reason="asked to") == patterns
    clock.advance(1)
    assert await catalog.lift_exclusions(["bad.example"], who="bob") == ["bad.example"]
    clock.advance(1)
    assert await catalog.add_exclusions(patterns, who="cid", reason="") == ["bad.example"]


async def _crawl(frontier: Frontier, clock: Clock) -> None:
    names = ["done", "deferred", "nothing", "redirected", "left", "lost", "other", "capped"]
    await frontier.add([url(f"https://{n}.test/{i}", i % 3) for n in names for i in range(9)])
    alone = ["held", "again", "idle", "x"]
    await frontier.add([url(f"https://{name}.test/") for name in alone])
    clock.advance(1)
    leases = {lease.name: lease for lease in await frontier.claim(100)}
    assert len(leases) == 12
    capped = leases["capped.test"]
    capped = capped.replace(urls=await first_urls(frontier, capped, 4))
    await frontier.put_origins(
        [
            OriginRecord(
                domain=leases[name].domain,
                origin=f"https://{name}",
                status=RobotsStatus.RULES,
                body=b"User-agent: *\nCrawl-delay: 310\n" * 40,
                crawl_delay=delay,
                valid_for=3600.0,
                source=f"https://www.{name}/robots.txt",
                etag='W/"1"',
                last_modified="Mon, 16 Nov 2026 04:00:00 GMT",
            )
            for name, delay in (("done.test", 310.0), ("left.test", 310.0), ("other.test", 0.0))
        ]
    )
    clock.advance(2)
    await frontier.settle(
        [
            _with_text(_settled(leases["done.test"], UrlState.DONE, UrlState.BLOCKED)),
            _settled(leases["idle.test"], UrlState.FAILED),
            _paced(leases["redirected.test"]),
            _settled(capped, *[UrlState.DONE] * 4),
            _deferred(leases["deferred.test"], 40.0, failing=False),
            _deferred(leases["again.test"], 40.0, failing=False),
            _deferred(leases["held.test"], 640.0, failing=True),
            visited(leases["nothing.test"], asked=False),
        ]
    )
    await frontier.exclude({leases["x.test"].domain: "x.test", 77: "never.test"})
    await frontier.count({"not_accepted.too-deep": 5})


def _settled(lease: Lease, *states: UrlState) -> VisitResult:
    location = Location(file="a.warc.gz", offset=5, length=6)
    rows = [
        page_row(lease, pending.url, seq, status=200, size=9, title="Straße", raw=location)
        for seq, pending in enumerate(lease.urls[: len(states)])
    ]
    return visited(lease, *states, requests=rows)


def _with_text(visit: VisitResult) -> VisitResult:
    """A visit whose first page has a text that another may refer to."""
    first, *rest = visit.requests
    where = Location(file="b.warc.gz", offset=7, length=8)
    text = Content(
        hash=TEXT,
        checked=-5,
        domain=visit.lease.domain,
        visit=visit.lease.token,
        where=where,
        url=first.url,
        fetched_at=first.started,
    )
    rows = [first.replace(text=where, content_hash=TEXT), *rest]
    return visit.replace(requests=rows, contents=[text])


def _paced(lease: Lease) -> VisitResult:
    """A visit that learnt to ask less often, and asked another domain for its robots.txt."""
    settled = _settled(lease, UrlState.REDIRECTED)
    elsewhere = page_row(lease, lease.urls[0].url, 7, other_domain=77, address="192.0.2.1")
    return settled.replace(
        requests=[*settled.requests, elsewhere.replace(kind=RequestKind.ROBOTS, content_hash=9)],
        pace=Pace(backoff=280.0, failures=2),
        pause=300.0,
        pause_from=DelaySource.RETRY_AFTER,
    )


def _deferred(lease: Lease, seconds: float, *, failing: bool) -> VisitResult:
    waiting = Deferred(
        fingerprint=lease.urls[0].fingerprint, seconds=seconds, attempts=1, failing=failing
    )
    return visited(lease, deferred=[waiting], requests=[page_row(lease, lease.urls[0].url, 8)])


@asynccontextmanager
async def _both(
    path: Path, clock: Clock, target: Target
) -> AsyncIterator[tuple[SqliteBackend, SqliteFrontier, PostgresBackend, Frontier]]:
    """The crawl on both sides, begun again by one process each, with clocks that stand still."""
    await target.rows("UPDATE test_clock SET now = clock_ms()")
    clock.stopped_at = clock()
    async with opened(path) as here, target.backend() as there:
        sqlite = SqliteFrontier(here._database, POLICY, clock)
        await sqlite.begin(await here.begin_run())
        postgres = PostgresFrontier(there._database, POLICY, there._machine_id, clock.seconds)
        await postgres.begin(await there.begin_run())
        yield here, sqlite, there, postgres


async def test_goes_on_as_it_would_have(tmp_path: Path, target: Target) -> None:
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
            await sqlite.settle([_settled(lease, UrlState.DONE) for lease in leases])
            await postgres.settle([_settled(lease, UrlState.DONE) for lease in same])
            new = [url(f"https://other.test/new/{step}"), url(f"https://n{step % 3}.test/{step}")]
            assert (await postgres.add(new)).unseen == (await sqlite.add(new)).unseen == 2
            clock.advance(STEP)
            await target.rows("UPDATE test_clock SET now = now + $1", round(STEP * 1000))
        assert retried == {"https://held.test/", "https://again.test/"}
        assert await postgres.counts() == await sqlite.counts()


def _as_offered(leases: list[Lease]) -> dict[str, Any]:
    return {
        lease.name: (
            lease.crawl_delay,
            lease.pace,
            [(u.url, u.depth, u.attempts) for u in lease.urls],
        )
        for lease in leases
    }


async def test_what_is_kept_is_the_same(tmp_path: Path, target: Target) -> None:
    path, clock = await crawl_in(tmp_path)
    await target.take_clock()
    moved = await target.move(path)
    assert moved.rows["url"] == 78
    assert moved.rows["domain"] == 15
    assert not await target.is_moving()
    with _sqlite(path) as connection:
        for table in NAMES:
            (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            assert moved.rows[table] == count > 0
            assert await target.rows(f"SELECT count(*) FROM {table}") == [(count,)]
        order = "SELECT url, depth FROM url WHERE state = 0 ORDER BY domain, priority, position"
        assert await target.rows(order) == connection.execute(order).fetchall()
        leased = (
            "SELECT id, owner, token, unsettled FROM domain WHERE owner IS NOT NULL ORDER BY id"
        )
        assert await target.rows(leased) == connection.execute(leased).fetchall()
        keys = connection.execute("SELECT domain, origin FROM origin").fetchall()
        urls = connection.execute("SELECT domain, fingerprint FROM url").fetchall()
    async with _both(path, clock, target) as (here, sqlite, there, postgres):
        assert await there.catalog.settings() == SETTINGS
        assert await there.catalog.exclusions() == ["bad.example", "worse.example"]
        await _check_exclusions(here.catalog, there.catalog, *await _shifts(path, target))
        assert await there.catalog.seed_sources() == await here.catalog.seed_sources()
        texts = await here.reader.contents([TEXT])
        assert len(texts) == 1 and await there.reader.contents([TEXT]) == texts
        await _check_ledger(here.reader, there.reader, *await _shifts(path, target))
        for key in urls:
            assert await there.reader.url(*key) == await here.reader.url(*key)
        origins = {record.origin: record for record in await postgres.origins(keys)}
        for record in await sqlite.origins(keys):
            moved_record = origins[record.origin]
            assert 0 <= moved_record.valid_for - record.valid_for < 1
            assert 0 <= record.age - moved_record.age < 1
            assert record == moved_record.replace(valid_for=record.valid_for, age=record.age)
            text = await there.reader.robots_text(fingerprint_bytes(record.body))
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
    """The least and the most that times were moved by, from those of the runs."""
    with _sqlite(path) as connection:
        here = [row[0] for row in connection.execute("SELECT began FROM request ORDER BY visit")]
    there = [row[0] for row in await target.rows("SELECT began FROM request ORDER BY visit")]
    shifts = [b - a for a, b in zip(here, there, strict=True)]
    return min(shifts), max(shifts)


async def _check_exclusions(here: Catalog, there: Catalog, least: int, most: int) -> None:
    """The whole history, with its times by the other clock."""
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
    """All requests, with their times by the other clock."""
    before = [row async for row in here.ledger()]
    after = [row async for row in there.ledger()]
    assert before
    for old, new in zip(before, after, strict=True):
        assert least <= new.began - old.began == new.ended - old.ended <= most
        assert new.replace(began=old.began, ended=old.ended) == old
    assert {row.delay_from for row in after} >= {
        DelaySource.DELAY,
        DelaySource.CRAWL_DELAY,
        DelaySource.RETRY_AFTER,
    }
    assert [row.seq async for row in there.elsewhere(77)] == [7]


async def _check_numbers(target: Target, path: Path, postgres: Frontier) -> None:
    """New visits and new URLs come behind all that were."""
    with _sqlite(path) as connection:
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
    await _check_times(path, target, clock)
    assert clock() - before < 60_000


async def test_a_day_between_does_not_shorten_delays(tmp_path: Path, target: Target) -> None:
    path, clock = await crawl_in(tmp_path)
    await target.take_clock()
    await _interrupted(target, path, 6)
    clock.advance(DAY / 1000)
    clock.keep(path)
    await target.rows("UPDATE test_clock SET ahead = ahead + $1", DAY)
    await target.move(path)
    await _check_times(path, target, clock)


async def test_the_shift_is_that_of_each_start(tmp_path: Path, target: Target) -> None:
    """The server's clock is set forward between two starts: what comes then is reckoned by the new one."""
    path, _ = await crawl_in(tmp_path)
    await target.take_clock()
    await _interrupted(target, path, 1)
    ((first,),) = await target.rows("SELECT count(*) FROM domain")
    await target.rows("UPDATE test_clock SET ahead = $1", DAY)
    await target.move(path)
    times = [row[1] for row in await target.rows("SELECT id, not_before FROM domain ORDER BY id")]
    with _sqlite(path) as connection:
        rows = connection.execute("SELECT not_before FROM domain ORDER BY id").fetchall()
    shifts = [there - here for there, (here,) in zip(times, rows, strict=True)]
    assert 0 < first < len(shifts)
    assert {round((shift - shifts[0]) / DAY) for shift in shifts[:first]} == {0}
    assert {round((shift - shifts[0]) / DAY) for shift in shifts[first:]} == {1}
    assert shifts[-1] - shifts[0] == pytest.approx(DAY, abs=1000)


async def _check_times(path: Path, target: Target, clock: Clock) -> None:
    """Every moment is the same one by the other clock: not earlier, and no second later."""
    earliest = clock()
    ((there,),) = await target.rows("SELECT clock_ms()")
    least, most = there - clock(), there - earliest + 1000
    for table, columns in TIMES.items():
        for column in columns:
            await _check_column(path, target, table, column, (least, most))
    await _check_column(path, target, "url", "position", (least, most), f"priority >= {RETRIED}")
    await _check_column(path, target, "url", "position", (0, 0), f"priority < {RETRIED}")
    deferred = await target.rows("SELECT priority FROM url WHERE priority >= $1", RETRIED)
    assert sorted(deferred) == [(RETRIED,), (RETRIED,), (HELD,)]


async def _check_column(
    path: Path,
    target: Target,
    table: str,
    column: str,
    bounds: tuple[int, int],
    where: str = "true",
) -> None:
    keys = {"url": "url", "origin": "origin", "request": "visit || '/' || seq"}
    key = keys.get(table, "id")
    sql = f"SELECT {key}, {column} FROM {table} WHERE {where}"
    with _sqlite(path) as connection:
        here = dict(connection.execute(sql))
    there = dict(await target.rows(sql))
    assert here.keys() == there.keys()
    assert here
    for row, time in here.items():
        if time is None:
            assert there[row] is None
        else:
            assert bounds[0] <= there[row] - time <= bounds[1], f"{table}.{column} of {row}"


class _Stop(Exception):
    pass


async def _interrupted(target: Target, path: Path, words: int) -> bool:
    """Move until it has said so much; whether that was before its end."""
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        if len(said) >= words:
            raise _Stop

    try:
        await target.move(path, say)
    except _Stop:
        return True
    return False


async def _dump(target: Target) -> dict[str, list[Any]]:
    """All rows, without the times."""
    dump = {}
    for table in (*NAMES, "counter", "machine"):
        rows = await target.rows(f"SELECT to_jsonb(t) FROM {table} AS t")
        found = [msgspec.json.decode(row[0]) for row in rows]
        for row in found:
            for column in TIMES.get(table, ()):
                row[column] = row[column] is None
            if row.get("priority", 0) >= RETRIED:
                del row["position"]
        dump[table] = sorted(found, key=str)
    for sequence in ("visit_number", "add_number"):
        dump[sequence] = await target.rows(f"SELECT last_value, is_called FROM {sequence}")
    return dump


async def test_interrupted_after_every_slice(tmp_path: Path, target: Target) -> None:
    path, clock = await crawl_in(tmp_path)
    times = 0
    while await _interrupted(target, path, 1):
        times += 1
        assert await target.is_moving()
        assert await target.rows("SELECT 1 FROM meta WHERE key = 'settings'") == []
        if times == 12:
            break
    assert times == 12
    again = await target.move(path)
    assert not await target.is_moving()
    await _check_times(path, target, clock)
    await _check_same_as_at_once(path, target, again)


async def _check_same_as_at_once(path: Path, target: Target, moved: Moved) -> None:
    whole = Target(target.url)
    try:
        assert await whole.move(path, slice_rows=SLICE_ROWS) == moved
        assert await _dump(whole) == await _dump(target)
    finally:
        await whole.rows(f'DROP SCHEMA "{whole.schema}" CASCADE')


KILLED = """
import asyncio, os, signal, sys, threading
from pathlib import Path
from rove.frontier.contract import Node
from rove.frontier.move.mover import move

path, url, schema, words, pause = sys.argv[1:]
left = int(words)

def say(text):
    global left
    left -= 1
    if left == 0:
        threading.Timer(float(pause), os.kill, (os.getpid(), signal.SIGKILL)).start()

machine = Node(key="here", host="host", path="/data")
asyncio.run(
    move(Path(path), url, schema, machine, say=say, slice_rows=20, progress_seconds=0.0)
)
"""


async def test_killed_at_random_moments(tmp_path: Path, target: Target) -> None:
    path, clock = await crawl_in(tmp_path)
    await _enlarge(path, clock)
    chance = random.Random(4)
    ends = []
    for _ in range(4):
        arguments = [str(path), target.url, target.schema]
        arguments += [str(chance.randrange(1, 30)), str(chance.uniform(0, 0.02))]
        ended = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", KILLED, *arguments], timeout=60
        )
        ends.append(ended.returncode)
    assert ends.count(-signal.SIGKILL) >= 3, ends
    moved = await target.move(path, slice_rows=SLICE_ROWS)
    await _check_times(path, target, clock)
    await _check_same_as_at_once(path, target, moved)


async def _enlarge(path: Path, clock: Clock) -> None:
    async with opened(path) as backend:
        frontier = SqliteFrontier(backend._database, POLICY, clock)
        await frontier.begin(None)
        await frontier.add([url(f"https://big{i % 200}.test/{i}") for i in range(3000)])


class FlakyDatabase(PostgresDatabase):
    """Loses its connection now and then, before or after a commit."""

    def __init__(self, url: str, schema: str) -> None:
        super().__init__(url, schema, connections=1)
        self.dropped = {"before": 0, "after": 0}
        self._chance = random.Random(2)

    async def transaction(self, what: str, work: Any, **options: Any) -> Any:
        async def dropped_before_commit(session: Any) -> Any:
            result = await work(session)
            if self._drops(what, "before"):
                await session.connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            return result

        return await super().transaction(what, dropped_before_commit, **options)

    async def run(self, what: str, work: Any, **options: Any) -> Any:
        async def dropped_after_commit(session: Any) -> Any:
            result = await work(session)
            if self._drops(what, "after"):
                raise ConnectionResetError
            return result

        return await super().run(what, dropped_after_commit, **options)

    def _drops(self, what: str, when: str) -> bool:
        drops = "move" in what and self._chance.random() < 0.2
        self.dropped[when] += drops
        return drops


async def test_a_server_that_drops_connections(tmp_path: Path, target: Target) -> None:
    """Each slice is written once, whether its commit was lost or only the answer to it."""
    path, clock = await crawl_in(tmp_path)
    await _enlarge(path, clock)
    source, database = Source(path), FlakyDatabase(target.url, target.schema)
    await source.open()
    await database.open(create=True)
    try:
        moved = await Mover(source, database, MACHINE, lambda text: None, slice_rows=100).run()
    finally:
        await database.close()
        await source.close()
    assert min(database.dropped.values()) > 2, database.dropped
    await _check_same_as_at_once(path, target, moved)


async def test_again_after_the_end_changes_nothing(tmp_path: Path, target: Target) -> None:
    path, _ = await crawl_in(tmp_path)
    moved = await target.move(path)
    async with target.backend() as there:
        frontier = await there.begin(POLICY, await there.begin_run())
        await frontier.add([url("https://since.test/")])
        await frontier.claim(3)
    before = await _dump(target)
    said: list[str] = []
    assert await target.move(path, said.append) == moved
    assert await _dump(target) == before
    assert said == []


async def test_a_copy_that_was_overtaken_is_refused(tmp_path: Path, target: Target) -> None:
    path, clock = await crawl_in(tmp_path)
    await target.move(path)
    await _enlarge(path, clock)
    with pytest.raises(UsageError, match="earlier copy of this crawl"):
        await target.move(path)


async def test_a_crawl_that_went_on_between_is_moved_whole(tmp_path: Path, target: Target) -> None:
    path, clock = await crawl_in(tmp_path)
    assert await _interrupted(target, path, 8)
    await _enlarge(path, clock)
    said: list[str] = []
    moved = await target.move(path, said.append, slice_rows=SLICE_ROWS)
    assert moved.rows["url"] == 3078
    assert any("gone on" in text for text in said)
    await _check_same_as_at_once(path, target, moved)


async def test_refuses_what_holds_another_crawl(tmp_path: Path, target: Target) -> None:
    path, _ = await crawl_in(tmp_path)
    async with target.backend() as there:
        await there.catalog.save("{}", None)
    with pytest.raises(UsageError, match="exists already"):
        await target.move(path)
    await target.rows("DELETE FROM meta")
    await target.rows("INSERT INTO url VALUES (1, 2, 3, 4, 0, 0, 0, 0, 0, false, 'https://a/', '')")
    with pytest.raises(UsageError, match="exists already"):
        await target.move(path)
    assert await target.rows("SELECT count(*) FROM domain") == [(0,)]
    assert not await target.is_moving()


async def test_refuses_the_move_of_another_crawl(tmp_path: Path, target: Target) -> None:
    (tmp_path / "other").mkdir()
    other, _ = await crawl_in(tmp_path / "other")
    path, _ = await crawl_in(tmp_path)
    assert await _interrupted(target, other, 3)
    with pytest.raises(UsageError, match="unfinished move of another crawl"):
        await target.move(path)
    await target.move(other)
    with pytest.raises(UsageError, match="exists already"):
        await target.move(path)


async def test_refuses_a_file_without_a_crawl(tmp_path: Path, target: Target) -> None:
    with pytest.raises(UsageError, match="holds no crawl"):
        await target.move(tmp_path / "frontier.sqlite")
    async with opened(tmp_path / "frontier.sqlite"):
        pass
    with pytest.raises(UsageError, match="holds no crawl"):
        await target.move(tmp_path / "frontier.sqlite")
    schemas = await target.rows(
        "SELECT 1 FROM pg_namespace WHERE nspname = $1::text::name", target.schema
    )
    assert schemas == []


async def test_rows_that_are_missing_are_noticed(tmp_path: Path, target: Target) -> None:
    path, _ = await crawl_in(tmp_path)
    assert await _interrupted(target, path, 8)
    await target.rows("DELETE FROM url WHERE url = (SELECT min(url) FROM url WHERE state = 0)")
    with pytest.raises(FrontierError, match="URLs: 78 here, 77 there; pending URLs: "):
        await target.move(path)
    assert await target.is_moving()
    assert await target.rows("SELECT 1 FROM meta WHERE key = 'settings'") == []


async def test_two_movers_do_not_mix(tmp_path: Path, target: Target) -> None:
    """A copy of the data directory has the same name; whoever comes second to a slice leaves it."""
    path, _ = await crawl_in(tmp_path)
    assert await _interrupted(target, path, 1)
    shutil.copy(path, tmp_path / "copy.sqlite")
    ends = await asyncio.gather(
        target.move(path), target.move(tmp_path / "copy.sqlite"), return_exceptions=True
    )
    failures = [end for end in ends if isinstance(end, BaseException)]
    assert all("another process is moving" in str(failure) for failure in failures)
    await _check_same_as_at_once(path, target, await target.move(path))


async def test_a_data_directory_that_got_another_name(tmp_path: Path, target: Target) -> None:
    path, _ = await crawl_in(tmp_path)
    rows = "SELECT m.key FROM process AS p LEFT JOIN machine AS m ON m.id = p.machine"
    for words, key in ((22, "first"), (1, "second"), (None, "third"), (None, "fourth")):
        machine = Node(key=key, host="h", path="p")
        said: list[str] = []

        def say(text: str, said: list[str] = said, words: int | None = words) -> None:
            said.append(text)
            if len(said) == words:
                raise _Stop

        try:
            await target.move(path, say, node=machine)
        except _Stop:
            assert words is not None
        assert await target.rows("SELECT key FROM machine") == [(key,)]
    assert {key for (key,) in await target.rows(rows)} == {"fourth"}


async def test_text_that_postgresql_cannot_store(tmp_path: Path, target: Target) -> None:
    path, _ = await crawl_in(tmp_path)
    with _sqlite(path) as connection:
        connection.execute("UPDATE request SET title = 'a' || char(0) || 'b' WHERE visit = 1")
        connection.execute("UPDATE request SET title = CAST(x'61EDA08062' AS TEXT) WHERE visit = 2")
        connection.execute("UPDATE request SET title = CAST(x'61FF0062' AS TEXT) WHERE visit = 3")
        connection.execute("DELETE FROM exclusion")
        for pattern in ("a\0b", "a\0c", "a\x01", "b", "ä"):
            connection.execute(
                "INSERT INTO exclusion (pattern, at, wall, who, reason) VALUES (?, 1, 1, '', '')",
                (pattern,),
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
    with _sqlite(path) as connection:
        connection.execute(f"UPDATE request SET status = {1 << 40}")
    with pytest.raises(FrontierError, match="a row of the table request does not fit"):
        await target.move(path)
    assert await target.is_moving()


async def test_slices_are_found_by_key(tmp_path: Path) -> None:
    path, _ = await crawl_in(tmp_path)
    values = {"shift": 1, "machine": 1, "retried": 1, "limit": 5, "key0": 1, "key1": 1}
    with _sqlite(path) as connection:
        for table in TABLES:
            query = load_queries("move")[f"slice_{table.name}"]
            plan = str(connection.execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall())
            assert "SEARCH" in plan, plan
            assert "TEMP B-TREE" not in plan, plan


async def test_says_how_far_it_is_now_and_then(tmp_path: Path, target: Target) -> None:
    path, _ = await crawl_in(tmp_path)
    said: list[str] = []
    await target.move(path, said.append, progress_seconds=PROGRESS_SECONDS)
    assert said == ["comparing the copy with the crawl"]
    other = Target(target.url)
    await other.move(path, said.append)
    await other.rows(f'DROP SCHEMA "{other.schema}" CASCADE')
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
    assert [(int(number), name) for number, name in states] == [
        (state.value, state.name.lower()) for state in UrlState
    ]


@contextmanager
def _sqlite(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that commits and closes."""
    connection = sqlite3.connect(path)
    try:
        with connection:
            yield connection
    finally:
        connection.close()
