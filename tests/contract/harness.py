"""Opens each frontier with a clock that the test moves."""

from __future__ import annotations

import inspect
import math
import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Protocol

import asyncpg

from rove.frontier.contract import Backend, Catalog, Frontier, FrontierReader
from rove.frontier.era_file import EraFile
from rove.frontier.postgres.backend import PostgresBackend
from rove.frontier.postgres.catalog import PostgresCatalog
from rove.frontier.postgres.connector import SESSION_SETTINGS
from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.frontier import PostgresFrontier
from rove.frontier.postgres.reader import PostgresTables
from rove.frontier.postgres.session import Session
from rove.frontier.reader import CrawlReader
from rove.frontier.records import Node, Policy
from rove.frontier.sqlite.backend import SqliteBackend
from rove.frontier.sqlite.catalog import SqliteCatalog
from rove.frontier.sqlite.database import SqliteDatabase
from rove.frontier.sqlite.eras import begin_era_if_older
from rove.frontier.sqlite.frontier import SqliteFrontier
from rove.frontier.sqlite.reader import SqliteTables
from rove.model.ledger import DelaySource, RequestKind, RequestRow
from rove.model.urls import NewUrl, PendingUrl, UrlState
from rove.model.visits import Deferred, Lease, Pace, Settled, VisitResult
from tests.urls import canonical

DELAY = 70.0
BUDGET = 180.0
START = 1_700_000_000_000
TICK = 0.001
"""The frontier adds one millisecond to each delay, because its clock is truncated."""
DEFAULT_SLICE = 500
NODE = Node(key="k", host="h", path="/p")
"""The node of the frontiers on PostgreSQL, which is machine 1."""
NO_PACE = Pace()
PENDING = (
    "SELECT d.id, d.pending, count(u.domain) FROM domain d "
    "LEFT JOIN url u ON u.domain = d.id AND u.state = 0 GROUP BY d.id"
)


class Harness(Protocol):
    """A database with a clock that the test moves, and frontiers on it."""

    slice: int
    """Rows or URLs that a reader or a bulk settle reads at a time."""
    era_file: EraFile
    """What the data directory remembers of the database."""

    async def open(
        self,
        *,
        delay: float = DELAY,
        budget: float = BUDGET,
        page_limit: int | None = None,
        max_pages_per_domain: int | None = None,
        limits_epoch: int = 0,
        horizon: float = math.inf,
    ) -> Frontier:
        """Open a frontier on the harness's database, as one more process would."""

    def reader(self) -> FrontierReader:
        """Return a reader of the database that was opened last."""

    def catalog(self) -> Catalog:
        """Return the catalog of the database that was opened last."""

    async def backend(self) -> Backend:
        """Open a backend on the same database."""

    def now(self) -> int:
        """Return the time, in milliseconds of the crawl's clock."""

    def advance(self, seconds: float) -> None:
        """Let time pass."""

    async def close(self) -> None:
        """Close everything."""

    async def counted_pending(self) -> dict[int, tuple[int, int]]:
        """Return each domain's counter of pending URLs beside the number of its pending rows."""

    async def statement(self, sql: str) -> list[Any]:
        """Return the rows of a statement of the test's own, which both databases understand."""


class SqliteHarness:
    """The embedded frontier under a fake clock."""

    def __init__(self, folder: Path) -> None:
        self.slice = DEFAULT_SLICE
        self.era_file = EraFile()
        self._path = folder / "frontier.sqlite"
        self._now = START
        self._databases: list[SqliteDatabase] = []
        self._backends: list[SqliteBackend] = []

    async def open(self, **policy: Any) -> Frontier:
        database = SqliteDatabase(self._path)
        self._databases.append(database)
        await database.open(create=True)
        frontier = SqliteFrontier(
            database,
            _policy(**policy),
            clock=lambda: self._now,
            urls_per_slice=self.slice,
            era_file=self.era_file,
        )
        await database.write(lambda: begin_era_if_older(database, self.era_file, self._now))
        rows = await database.fetch("begin_run", now=self._now, wall=time.time())
        await frontier.begin(run=rows[0][0])
        return frontier

    def reader(self) -> FrontierReader:
        tables = SqliteTables(self._databases[-1], lambda: self._now)
        return CrawlReader(tables, limit=self.slice, ledger_limit=self.slice + 1, domain_limit=self.slice)

    def catalog(self) -> Catalog:
        return SqliteCatalog(self._databases[-1], clock=lambda: self._now)

    async def backend(self) -> Backend:
        backend = SqliteBackend(self._path)
        self._backends.append(backend)
        await backend.open()
        return backend

    def now(self) -> int:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += round(seconds * 1000)

    async def close(self) -> None:
        for backend in self._backends:
            await backend.close()
        for database in self._databases:
            await database.close()

    async def counted_pending(self) -> dict[int, tuple[int, int]]:
        rows = await self.statement(PENDING)
        return {domain: (counter, counted) for domain, counter, counted in rows}

    async def statement(self, sql: str) -> list[Any]:
        with closing(sqlite3.connect(self._path)) as connection, connection:
            return connection.execute(sql).fetchall()


class PostgresHarness:
    """The frontier on PostgreSQL, whose clock function reads a table that the test writes."""

    def __init__(self, url: str, schema: str) -> None:
        self.url = url
        self.schema = schema
        self.slice = DEFAULT_SLICE
        self.era_file = EraFile()
        self._now = START
        self._written = 0
        self._databases: list[PostgresDatabase] = []
        self._backends: list[PostgresBackend] = []

    async def open(self, **policy: Any) -> Frontier:
        is_first = not self._databases
        if not is_first:
            await self._write_clock()
        database = PostgresDatabase(self.url, self.schema, era_file=self.era_file)
        self._databases.append(database)
        await database.open(create=True)
        if is_first:
            await self._replace_clock()
            await database.value("this_machine", key=NODE.key, host=NODE.host, path=NODE.path)
        await self._write_clock()
        frontier = PostgresFrontier(
            database,
            _policy(**policy),
            machine=1,
            steady=lambda: self._now / 1000,
            node=NODE,
            urls_per_slice=self.slice,
        )
        await frontier.begin(await database.value("begin_run", wall=0.0))
        return _OnTime(frontier, self._write_clock)

    def reader(self) -> FrontierReader:
        tables = PostgresTables(self.database, NODE.key)
        reader = CrawlReader(tables, limit=self.slice, ledger_limit=self.slice + 1, domain_limit=self.slice)
        return _OnTime(reader, self._write_clock)

    def catalog(self) -> Catalog:
        catalog = PostgresCatalog(self.database, lambda: 1)
        return _OnTime(catalog, self._write_clock)

    async def backend(self) -> Backend:
        """Open a backend on the same database, as node 1, to which the frontiers belong."""
        backend = PostgresBackend(self.url, self.schema, NODE)
        self._backends.append(backend)
        await backend.open()
        return backend

    @property
    def database(self) -> PostgresDatabase:
        """The database that was opened last."""
        return self._databases[-1]

    def now(self) -> int:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += round(seconds * 1000)

    async def close(self) -> None:
        for backend in self._backends:
            await backend.close()
        for database in self._databases:
            await database.close()
        self._databases.clear()
        self._backends.clear()

    async def empty(self) -> None:
        """Empty all tables, which is twenty times as fast as making a new schema."""
        self._databases.append(PostgresDatabase(self.url, self.schema))
        await self.database.open(create=True)
        tables = await self.rows(
            "SELECT tablename FROM pg_tables WHERE schemaname = $1 AND tablename <> 'migration'", self.schema
        )
        names = ", ".join(row[0] for row in tables)
        await self.rows(f"TRUNCATE {names} RESTART IDENTITY")
        await self.close()

    async def drop(self) -> None:
        """Drop the schema."""
        connection = await asyncpg.connect(self.url)
        await connection.execute(f'DROP SCHEMA IF EXISTS "{self.schema}" CASCADE')
        await connection.close()

    async def counted_pending(self) -> dict[int, tuple[int, int]]:
        rows = await self.rows(PENDING)
        return {domain: (counter, counted) for domain, counter, counted in rows}

    async def statement(self, sql: str) -> list[Any]:
        return await self.rows(sql)

    async def rows(self, sql: str, *parameters: Any) -> list[Any]:
        """Return the rows of a statement of the test's own."""
        return await raw(self.database, sql, *parameters)

    async def _replace_clock(self) -> None:
        for sql in (
            "CREATE TABLE IF NOT EXISTS test_clock (now bigint)",
            (
                "CREATE OR REPLACE FUNCTION server_ms() RETURNS bigint LANGUAGE sql VOLATILE AS "
                "$$ SELECT now FROM test_clock $$"
            ),
            "SELECT amend_clock(0)",
            "INSERT INTO test_clock VALUES (0)",
        ):
            await self.rows(sql)

    async def _write_clock(self) -> None:
        if self._written != self._now:
            self._written = self._now
            await self.rows("UPDATE test_clock SET now = $1", self._now)


@asynccontextmanager
async def connected(harness: PostgresHarness) -> AsyncIterator[Any]:
    """Connect with the settings of the frontier's own connections."""
    settings = {**SESSION_SETTINGS, "search_path": f'"{harness.schema}"'}
    connection = await asyncpg.connect(harness.url, server_settings=settings)
    try:
        yield connection
    finally:
        await connection.close()


async def raw(database: PostgresDatabase, sql: str, *parameters: Any) -> list[Any]:
    """Return the rows of a statement that is no named query."""

    async def work(session: Session) -> list[Any]:
        rows: list[Any] = await session.connection.fetch(sql, *parameters)
        return rows

    return await database.run("test", work)


class _OnTime:
    """Sets the database's clock before each use of a frontier or a part of one."""

    def __init__(self, whole: object, set_clock: Any) -> None:
        self._whole = whole
        self._set_clock = set_clock

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._whole, name)
        if not inspect.iscoroutinefunction(attribute):
            return attribute

        async def on_time(*arguments: Any, **options: Any) -> Any:
            await self._set_clock()
            return await attribute(*arguments, **options)

        return on_time


def _policy(
    *,
    delay: float = DELAY,
    budget: float = BUDGET,
    page_limit: int | None = None,
    max_pages_per_domain: int | None = None,
    limits_epoch: int = 0,
    horizon: float = math.inf,
) -> Policy:
    return Policy(
        delay=delay,
        budget=budget,
        page_limit=page_limit,
        max_pages_per_domain=max_pages_per_domain,
        limits_epoch=limits_epoch,
        horizon=horizon,
    )


def url(text: str, depth: int = 0, **more: object) -> NewUrl:
    """Return a URL to add."""
    parsed = canonical(text)
    assert parsed is not None
    return parsed.new_url(depth=depth, **more)  # type: ignore[arg-type]


def page_row(lease: Lease, page: str, seq: int = 0, **more: object) -> RequestRow:
    """Return a request that a visit made."""
    parsed = canonical(page)
    assert parsed is not None
    return RequestRow(
        visit=lease.token,
        seq=seq,
        domain=parsed.domain,
        kind=RequestKind.PAGE,
        url=parsed.text,
        fingerprint=parsed.fingerprint,
        started=1.0,
        began=START,
        ended=START + 1_000,
        **more,  # type: ignore[arg-type]
    )


async def first_urls(frontier: Frontier, lease: Lease, count: int) -> list[PendingUrl]:
    """Return the next URLs of a leased domain: those that came with the lease, then more."""
    rest = await frontier.more(lease, lease.urls[-1], max(0, count - len(lease.urls)))
    return [*lease.urls, *rest][:count]


def visited(
    lease: Lease,
    *states: UrlState,
    requested: bool = True,
    since_finish: float = 0.0,
    deferred: Sequence[Deferred] = (),
    requests: Sequence[RequestRow] = (),
    pace: Pace = NO_PACE,
    pause: float = 0.0,
    pause_from: DelaySource = DelaySource.DELAY,
) -> VisitResult:
    """Return a visit that settles the first URLs of a lease, one for each state.

    It ended a little over a millisecond earlier than `since_finish`, so that its delay ends on a whole second.
    """
    assert len(states) <= len(lease.urls), "each state needs a URL"
    settled = [
        Settled(fingerprint=pending.fingerprint, state=state)
        for pending, state in zip(lease.urls, states, strict=False)
    ]
    return VisitResult(
        lease=lease,
        requested=requested,
        since_finish=since_finish + 1.5 * TICK,
        settled=settled,
        deferred=deferred,
        requests=requests,
        pace=pace,
        pause=pause,
        pause_from=pause_from,
    )
