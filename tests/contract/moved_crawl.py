"""A crawl in SQLite with rows of every kind, and the schema in PostgreSQL that tests move it to."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import msgspec

from rove.frontier.clock import Anchor, machine_time, steady_seconds
from rove.frontier.contract import Frontier
from rove.frontier.move.bookmark import is_moving
from rove.frontier.move.mover import move
from rove.frontier.move.tables import TABLES
from rove.frontier.postgres.backend import PostgresBackend
from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.priority import HELD, RETRIED
from rove.frontier.records import Node, Policy
from rove.frontier.seed_source import SeedSource
from rove.frontier.sqlite.backend import SqliteBackend
from rove.frontier.sqlite.catalog import SqliteCatalog
from rove.frontier.sqlite.database import SqliteDatabase
from rove.frontier.sqlite.frontier import SqliteFrontier
from rove.model.ledger import Content, DelaySource, Location, RequestKind
from rove.model.samples import Sample
from rove.model.skipped import SkippedLink
from rove.model.urls import UrlState
from rove.model.visits import Deferred, Lease, OriginRecord, Pace, RobotsStatus, VisitResult
from rove.policy.retry_filter import RetryFilter
from tests.contract.harness import first_urls, page_row, url, visited

POLICY = Policy(delay=70.0, budget=180.0, max_pages_per_domain=4)
MACHINE = Node(key="here", host="host", path="/data")
SETTINGS = '{"delay":70}'
TEXT = -77
DAY = 86_400_000
WALL = 1_700_000_000_000
SAMPLES = [
    Sample(node="", ended=WALL + 10_000 * i, seconds=10.0, figures={"visits": i, "cpu.1": i / 8}) for i in range(1, 13)
]
TIMES = {
    "domain": ("ready_at", "not_before"),
    "origin": ("expires_at", "fetched_at"),
    "robots_text": ("at",),
    "request": ("began", "ended"),
    "skipped": ("at",),
    "exclusion": ("at", "lifted_at"),
    "retry": ("at", "ended"),
    "run": ("started",),
    "process": ("started", "seen"),
}


@dataclass
class Clock:
    """The clock of a crawl in SQLite, which runs until the test stops it."""

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

    def save(self, path: Path) -> None:
        """Write the clock to the file, where the move reads it."""
        anchor = msgspec.json.encode(Anchor(boot=machine_time().boot, offset_ms=self.offset)).decode()
        with sqlite_file(path) as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('clock', ?)", (anchor,))


class Target:
    """A schema for one test."""

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
        """Let the test set the server's clock: add an offset to it, or stop it."""
        database = PostgresDatabase(self.url, self.schema)
        await database.open(create=True)
        await database.close()
        await self.rows("CREATE TABLE test_clock AS SELECT 0::bigint AS ahead, null::bigint AS now")
        await self.rows(
            "CREATE OR REPLACE FUNCTION server_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$ "
            "SELECT coalesce(now, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + ahead) "
            "FROM test_clock $$"
        )

    async def drop(self) -> None:
        await self.rows(f'DROP SCHEMA IF EXISTS "{self.schema}" CASCADE')

    async def move(
        self,
        path: Path,
        say: Callable[[str], None] = lambda text: None,
        *,
        slice_rows: int = 5,
        progress_seconds: float = 0.0,
        node: Node = MACHINE,
    ) -> dict[str, int]:
        """Move in slices so small that each table has several, and report each."""
        return await move(
            path, self.url, self.schema, node, say=say, slice_rows=slice_rows, progress_seconds=progress_seconds
        )

    async def is_moving(self) -> bool:
        async with self.database() as database:
            return await is_moving(database)

    @asynccontextmanager
    async def database(self) -> AsyncIterator[PostgresDatabase]:
        database = PostgresDatabase(self.url, self.schema)
        await database.open()
        try:
            yield database
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


@asynccontextmanager
async def sqlite_database(path: Path) -> AsyncIterator[SqliteDatabase]:
    database = SqliteDatabase(path)
    await database.open(create=True)
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[SqliteBackend]:
    backend = SqliteBackend(path)
    await backend.open(create=True)
    try:
        yield backend
    finally:
        await backend.close()


async def crawl_in(folder: Path) -> tuple[Path, Clock]:
    """Create a stopped crawl with rows of every kind."""
    path, clock = folder / "frontier.sqlite", Clock()
    async with opened(path) as backend, sqlite_database(path) as database:
        clock.save(path)
        await backend.catalog.save(SETTINGS, SeedSource(id=0, path="seeds/0", name="top.csv"))
        await backend.catalog.save(SETTINGS, SeedSource(id=0, path="seeds/1", name="more.csv"))
        await backend.catalog.save_progress((await backend.catalog.seed_sources())[0])
        await SqliteCatalog(database, clock).begin_retry(RetryFilter(error="dns"), who="ann", delay=70.0)
        await _exclude(SqliteCatalog(database, clock), clock)
        frontier = SqliteFrontier(database, POLICY, clock)
        await frontier.begin(await backend.begin_run())
        await _crawl(frontier, clock)
        # One more process, which dies while it holds a lease.
        later = SqliteFrontier(database, POLICY, clock)
        await later.begin(await backend.begin_run())
        await later.add([url("https://late.test/"), url("https://later.test/", 1)], as_seeds=True)
        assert len(await later.claim(1)) == 1
        clock.advance(3)
    clock.save(path)
    return path, clock


async def _exclude(catalog: SqliteCatalog, clock: Clock) -> None:
    """Exclude two patterns; lift one of them and exclude it again."""
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
            _with_text(settled_visit(leases["done.test"], UrlState.DONE, UrlState.BLOCKED)),
            settled_visit(leases["idle.test"], UrlState.FAILED),
            _paced(leases["redirected.test"]),
            settled_visit(capped, *[UrlState.DONE] * 4),
            _deferred(leases["deferred.test"], 40.0, failing=False),
            _deferred(leases["again.test"], 40.0, failing=False),
            _deferred(leases["held.test"], 640.0, failing=True),
            visited(leases["nothing.test"], requested=False).replace(skipped=_skipped()),
        ]
    )
    await frontier.exclude({leases["x.test"].domain: "x.test", 77: "never.test"})
    await frontier.count({"not_accepted.too-deep": 5})
    await frontier.add_samples(SAMPLES)


def settled_visit(lease: Lease, *states: UrlState) -> VisitResult:
    location = Location(file="a.warc.gz", offset=5, length=6)
    rows = [
        page_row(lease, pending.url, seq, status=200, size=9, title="Straße", raw=location)
        for seq, pending in enumerate(lease.urls[: len(states)])
    ]
    return visited(lease, *states, requests=rows)


def _skipped() -> list[SkippedLink]:
    """Return links that were not taken; some have the same fingerprint, or differ in the domain alone."""
    keys = [(reason, number % 5, number % 3) for number in range(12) for reason in ("budget", "port")]
    return [
        SkippedLink(reason=reason, fingerprint=fingerprint, domain=domain, url="http://x.test/ü", page="http://y.test/")
        for reason, fingerprint, domain in keys
    ]


def _with_text(visit: VisitResult) -> VisitResult:
    """Give the first page of a visit a text that other pages may refer to."""
    first, *rest = visit.requests
    where = Location(file="b.warc.gz", offset=7, length=8)
    text = Content(
        hash=TEXT,
        sha1_64=-5,
        domain=visit.lease.domain,
        visit=visit.lease.token,
        where=where,
        url=first.url,
        fetched_at=first.started,
    )
    rows = [first.replace(text=where, content_hash=TEXT), *rest]
    return visit.replace(requests=rows, contents=[text])


def _paced(lease: Lease) -> VisitResult:
    """Return a visit that backed off, and fetched robots.txt."""
    settled = settled_visit(lease, UrlState.REDIRECTED)
    robots = page_row(lease, lease.urls[0].url, 7, address="192.0.2.1")
    return settled.replace(
        requests=[*settled.requests, robots.replace(kind=RequestKind.ROBOTS, robots="9" * 32)],
        pace=Pace(backoff=280.0, failures=2),
        pause=300.0,
        pause_from=DelaySource.RETRY_AFTER,
    )


def _deferred(lease: Lease, seconds: float, *, failing: bool) -> VisitResult:
    waiting = Deferred(fingerprint=lease.urls[0].fingerprint, seconds=seconds, attempts=1, failing=failing)
    return visited(lease, deferred=[waiting], requests=[page_row(lease, lease.urls[0].url, 8)])


async def check_times(path: Path, target: Target, clock: Clock) -> None:
    """Every time is the same on the other clock: not earlier, and less than a second later."""
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
    path: Path, target: Target, table: str, column: str, bounds: tuple[int, int], where: str = "true"
) -> None:
    keys = {
        "skipped": "reason || '/' || fingerprint || '/' || domain",
        "url": "url",
        "origin": "origin",
        "request": "visit || '/' || seq",
        "robots_text": "name",
    }
    key = keys.get(table, "id")
    sql = f"SELECT {key}, {column} FROM {table} WHERE {where}"
    with sqlite_file(path) as connection:
        here = dict(connection.execute(sql))
    there = dict(await target.rows(sql))
    assert here.keys() == there.keys()
    assert here
    for row, time in here.items():
        if time is None:
            assert there[row] is None
        else:
            assert bounds[0] <= there[row] - time <= bounds[1], f"{table}.{column} of {row}"


class Stop(Exception):
    pass


async def interrupted(target: Target, path: Path, messages: int) -> bool:
    """Stop the move at its N-th message; return False if it ended before."""
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        if len(said) >= messages:
            raise Stop

    try:
        await target.move(path, say)
    except Stop:
        return True
    return False


async def dump(target: Target) -> dict[str, list[Any]]:
    """Return all rows, without the times."""
    dump = {}
    for table in (*(table.name for table in TABLES), "machine"):
        rows = await target.rows(f"SELECT to_jsonb(t) FROM {table} AS t")
        records = [msgspec.json.decode(row[0]) for row in rows]
        for row in records:
            for column in TIMES.get(table, ()):
                row[column] = row[column] is None
            if row.get("priority", 0) >= RETRIED:
                del row["position"]
        dump[table] = sorted(records, key=str)
    for sequence in ("visit_number", "add_number"):
        dump[sequence] = await target.rows(f"SELECT last_value, is_called FROM {sequence}")
    return dump


async def enlarge(path: Path, clock: Clock) -> None:
    async with sqlite_database(path) as database:
        frontier = SqliteFrontier(database, POLICY, clock)
        await frontier.begin(None)
        await frontier.add([url(f"https://big{i % 200}.test/{i}") for i in range(3000)])


@contextmanager
def sqlite_file(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that commits and closes."""
    connection = sqlite3.connect(path)
    try:
        with connection:
            yield connection
    finally:
        connection.close()
