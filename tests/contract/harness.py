"""What the contract tests need of every frontier: to be opened with a clock that the test moves."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import asyncpg

from rove.frontier.contract import (
    Catalog,
    Frontier,
    FrontierReader,
    MovedContent,
    Node,
    Policy,
)
from rove.frontier.postgres.backend import PostgresBackend
from rove.frontier.postgres.catalog import PostgresCatalog
from rove.frontier.postgres.database import Database as PostgresDatabase
from rove.frontier.postgres.frontier import PostgresFrontier
from rove.frontier.postgres.reader import PostgresReader
from rove.frontier.sqlite.backend import SqliteBackend
from rove.frontier.sqlite.catalog import SqliteCatalog
from rove.frontier.sqlite.database import Database
from rove.frontier.sqlite.frontier import SqliteFrontier
from rove.frontier.sqlite.reader import SqliteReader
from rove.model.ledger import (
    DelaySource,
    Location,
    RequestKind,
    RequestRow,
)
from rove.model.urls import NewUrl, PendingUrl, UrlState
from rove.model.visits import (
    Deferred,
    Lease,
    Pace,
    Settled,
    VisitResult,
)
from rove.urls.canonical import canonical

DELAY = 70.0
BUDGET = 180.0
START = 1_700_000_000_000
NO_PACE = Pace()
PENDING = (
    "SELECT d.id, d.pending, count(u.domain) FROM domain d "
    "LEFT JOIN url u ON u.domain = d.id AND u.state = 0 GROUP BY d.id"
)


class Harness(Protocol):
    """A database with a clock that the test moves, and frontiers on it."""

    async def open(
        self,
        *,
        delay: float = DELAY,
        budget: float = BUDGET,
        max_pages_per_domain: int | None = None,
        limits_epoch: int = 0,
        horizon: float = math.inf,
    ) -> Frontier:
        """A frontier on the harness's database, as one more process would open it."""

    def reader(self) -> FrontierReader:
        """A reader of what was last opened."""

    def catalog(self) -> Catalog:
        """The catalog of what was last opened."""

    async def place_again(self, rows: Sequence[RequestRow]) -> None:
        """What a backend does of that name."""

    async def place_contents(self, moved: Sequence[MovedContent]) -> None:
        """What a backend does of that name."""

    async def forget_contents(self, places: Sequence[tuple[int, Location]]) -> None:
        """What a backend does of that name."""

    def now(self) -> int:
        """The time, in milliseconds of the crawl's clock."""

    def advance(self, seconds: float) -> None:
        """Let time pass."""

    async def close(self) -> None:
        """Close everything."""

    async def counted_pending(self) -> dict[int, tuple[int, int]]:
        """Of each domain with any: its kept count of pending URLs, and the rows counted."""


class SqliteHarness:
    """The embedded frontier under a fake clock."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "frontier.sqlite"
        self._now = START
        self._databases: list[Database] = []

    async def open(self, **policy: Any) -> Frontier:
        database = Database(self._path)
        self._databases.append(database)
        await database.open(create=True)
        frontier = SqliteFrontier(database, _policy(**policy), clock=lambda: self._now)
        rows = await database.run(
            lambda: database.execute("begin_run", now=self._now, wall=time.time())
        )
        await frontier.begin(run=rows[0][0])
        return frontier

    def reader(self) -> FrontierReader:
        return SqliteReader(self._databases[-1], clock=lambda: self._now)

    def catalog(self) -> Catalog:
        return SqliteCatalog(self._databases[-1], clock=lambda: self._now)

    async def place_again(self, rows: Sequence[RequestRow]) -> None:
        await self._backend().place_again(rows)

    async def place_contents(self, moved: Sequence[MovedContent]) -> None:
        await self._backend().place_contents(moved)

    async def forget_contents(self, places: Sequence[tuple[int, Location]]) -> None:
        await self._backend().forget_contents(places)

    def _backend(self) -> SqliteBackend:
        backend = SqliteBackend(self._path)
        backend._database = self._databases[-1]
        return backend

    def now(self) -> int:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += round(seconds * 1000)

    async def close(self) -> None:
        for database in self._databases:
            await database.close()

    async def counted_pending(self) -> dict[int, tuple[int, int]]:
        database = self._databases[-1]
        rows = await database.run(lambda: database._connection.execute(PENDING).fetchall())
        return {domain: (kept, counted) for domain, kept, counted in rows}


class PostgresHarness:
    """The frontier on PostgreSQL, whose clock function reads a table that the test writes."""

    def __init__(self, url: str, schema: str) -> None:
        self.url = url
        self.schema = schema
        self._now = START
        self._written = 0
        self._databases: list[PostgresDatabase] = []

    async def open(self, **policy: Any) -> Frontier:
        database = PostgresDatabase(self.url, self.schema)
        is_first = not self._databases
        self._databases.append(database)
        await database.open(create=True)
        if is_first:
            await self._replace_clock(database)
        await self._write_clock()
        frontier = PostgresFrontier(
            database, _policy(**policy), machine=1, steady=lambda: self._now / 1000
        )
        run = await database.run("begin", lambda session: session.value("begin_run", wall=0.0))
        await frontier.begin(run)
        return _OnTime(frontier, self._write_clock)  # type: ignore[return-value]

    def reader(self) -> FrontierReader:
        reader = PostgresReader(self._databases[-1], "")
        return _OnTime(reader, self._write_clock)  # type: ignore[return-value]

    def catalog(self) -> Catalog:
        catalog = PostgresCatalog(self._databases[-1], lambda: 1)
        return _OnTime(catalog, self._write_clock)  # type: ignore[return-value]

    async def place_again(self, rows: Sequence[RequestRow]) -> None:
        await self._backend().place_again(rows)

    async def place_contents(self, moved: Sequence[MovedContent]) -> None:
        await self._backend().place_contents(moved)

    async def forget_contents(self, places: Sequence[tuple[int, Location]]) -> None:
        await self._backend().forget_contents(places)

    def _backend(self) -> PostgresBackend:
        backend = PostgresBackend(self.url, self.schema, Node(key="", host="", path=""))
        backend._database = self._databases[-1]
        backend._machine_id = 1
        return backend

    def now(self) -> int:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += round(seconds * 1000)

    async def close(self) -> None:
        for database in self._databases:
            await database.close()
        self._databases.clear()

    async def empty(self) -> None:
        """Back to the state of a new schema; a new one would take twenty times as long."""
        database = PostgresDatabase(self.url, self.schema)
        await database.open(create=True)
        async with database._pool.acquire() as connection:
            tables = await connection.fetch(
                "SELECT tablename FROM pg_tables WHERE schemaname = $1 AND tablename <> 'migration'",
                self.schema,
            )
            names = ", ".join(row[0] for row in tables)
            await connection.execute(f"TRUNCATE {names} RESTART IDENTITY")
        await database.close()

    async def drop(self) -> None:
        """Take the schema away."""
        connection = await asyncpg.connect(self.url)
        await connection.execute(f'DROP SCHEMA IF EXISTS "{self.schema}" CASCADE')
        await connection.close()

    async def counted_pending(self) -> dict[int, tuple[int, int]]:
        rows = await self.rows(PENDING)
        return {domain: (kept, counted) for domain, kept, counted in rows}

    async def rows(self, sql: str, *parameters: Any) -> list[Any]:
        """What a statement of the test's own brings."""
        async with self._databases[-1]._pool.acquire() as connection:
            found: list[Any] = await connection.fetch(sql, *parameters)
            return found

    async def _replace_clock(self, database: PostgresDatabase) -> None:
        async with database._pool.acquire() as connection:
            await connection.execute(
                "CREATE TABLE IF NOT EXISTS test_clock (now bigint);"
                "CREATE OR REPLACE FUNCTION server_ms() RETURNS bigint LANGUAGE sql VOLATILE AS "
                "$$ SELECT now FROM test_clock $$;"
                "CREATE OR REPLACE FUNCTION clock_ms() RETURNS bigint LANGUAGE sql VOLATILE AS "
                "$$ SELECT server_ms() + 0 $$;"
                "INSERT INTO test_clock VALUES (0)"
            )

    async def _write_clock(self) -> None:
        if self._written != self._now:
            self._written = self._now
            await self.rows("UPDATE test_clock SET now = $1", self._now)


class _OnTime:
    """A frontier, or a part of one, before each use of which the database's clock is set."""

    def __init__(self, whole: object, set_clock: Any) -> None:
        self._whole = whole
        self._set_clock = set_clock

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._whole, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def on_time(*arguments: Any, **options: Any) -> Any:
            await self._set_clock()
            return await found(*arguments, **options)

        return on_time


def _policy(
    *,
    delay: float = DELAY,
    budget: float = BUDGET,
    max_pages_per_domain: int | None = None,
    limits_epoch: int = 0,
    horizon: float = math.inf,
) -> Policy:
    return Policy(
        delay=delay,
        budget=budget,
        max_pages_per_domain=max_pages_per_domain,
        limits_epoch=limits_epoch,
        horizon=horizon,
    )


def url(text: str, depth: int = 0, **more: object) -> NewUrl:
    """A URL to add."""
    found = canonical(text)
    assert found is not None
    return found.new_url(depth=depth, **more)  # type: ignore[arg-type]


def page_row(lease: Lease, page: str, seq: int = 0, **more: object) -> RequestRow:
    """A request that the visit made."""
    found = canonical(page)
    assert found is not None
    return RequestRow(
        visit=lease.token,
        seq=seq,
        domain=found.domain,
        kind=RequestKind.PAGE,
        url=found.text,
        fingerprint=found.fingerprint,
        started=1.0,
        began=START,
        ended=START + 1_000,
        **more,  # type: ignore[arg-type]
    )


async def first_urls(frontier: Frontier, lease: Lease, count: int) -> list[PendingUrl]:
    """The next URLs of a leased domain: those that came with the lease, and what is read on behind them."""
    rest = await frontier.more(lease, lease.urls[-1], max(0, count - len(lease.urls)))
    return [*lease.urls, *rest][:count]


def visited(
    lease: Lease,
    *states: UrlState,
    asked: bool = True,
    since_finish: float = 0.0,
    deferred: Sequence[Deferred] = (),
    requests: Sequence[RequestRow] = (),
    pace: Pace = NO_PACE,
    pause: float = 0.0,
    pause_from: DelaySource = DelaySource.DELAY,
) -> VisitResult:
    """A visit that settles the lease's first URLs, one for each state given."""
    assert len(states) <= len(lease.urls), "each state is that of a URL"
    settled = [
        Settled(fingerprint=pending.fingerprint, state=state)
        for pending, state in zip(lease.urls, states, strict=False)
    ]
    return VisitResult(
        lease=lease,
        asked=asked,
        since_finish=since_finish,
        settled=settled,
        deferred=deferred,
        requests=requests,
        pace=pace,
        pause=pause,
        pause_from=pause_from,
    )
