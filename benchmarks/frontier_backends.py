"""The frontiers that benchmarks.frontier measures: how each backend is opened, filled in bulk and dropped."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from rove.frontier.contract import Frontier
from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.frontier import PostgresFrontier
from rove.frontier.priority import URLS_PER_ADD
from rove.frontier.records import Policy
from rove.frontier.sqlite.database import SqliteDatabase
from rove.frontier.sqlite.frontier import SqliteFrontier
from rove.model.urls import NewUrl
from rove.urls.canonical import NO_IDS

BUDGET = 180.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How many domains a frontier holds, and how many URLs in each."""

    domains: int
    per_domain: int

    @property
    def urls(self) -> int:
        """The number of all URLs."""
        return self.domains * self.per_domain


def domain_name(number: int) -> str:
    """Return the name of a domain."""
    return f"site{number}.test"


def url_text(number: int, page: int) -> str:
    """Return the URL of a page of a domain."""
    return f"https://www.site{number}.test/articles/2026/the-title-of-page-{page}"


def new_url(number: int, page: int, *, is_foreign: bool = False) -> NewUrl:
    """Return a link to a page."""
    name, text = domain_name(number), url_text(number, page)
    return NewUrl(NO_IDS.domain_id(name), name, NO_IDS.domain_id(text), text, 1, is_foreign=is_foreign)


@dataclass(frozen=True, slots=True)
class Sqlite:
    """A frontier on SQLite."""

    file: str
    name: str = "SQLite"

    @asynccontextmanager
    async def opened(self, policy: Policy) -> AsyncIterator[Frontier]:
        """Open the frontier as one more process of the crawl does."""
        database = SqliteDatabase(Path(self.file))
        await database.open(create=True)
        frontier = SqliteFrontier(database, policy)
        await frontier.begin(run=1)
        try:
            yield frontier
        finally:
            await database.close()

    async def fill(self, plan: Plan) -> None:
        """Insert the URLs in the order of arrival, without their indexes, and create the indexes afterwards."""
        async with self.opened(policy()):
            pass
        with sqlite3.connect(self.file, isolation_level=None) as base:
            indexes = base.execute(
                "SELECT name, sql FROM sqlite_master WHERE name IN ('url_key', 'url_pending')"
            ).fetchall()
            base.execute("PRAGMA synchronous = OFF")
            base.execute("BEGIN")
            for name, _ in indexes:
                base.execute(f"DROP INDEX {name}")
            base.executemany(
                "INSERT INTO domain (id, name, ready_at, pending) VALUES (?, ?, ?, ?)",
                (
                    (NO_IDS.domain_id(domain_name(number)), domain_name(number), number, plan.per_domain)
                    for number in range(plan.domains)
                ),
            )
            base.executemany(
                "INSERT INTO url (domain, fingerprint, url, priority, position, depth) VALUES (?, ?, ?, 1, ?, 1)",
                _rows_by_arrival(plan),
            )
            base.executemany("INSERT INTO counter VALUES (?, ?)", _counters(plan).items())
            base.execute("INSERT INTO counter VALUES ('adds', ?)", (plan.urls // URLS_PER_ADD + 1,))
            for _, index in indexes:
                base.execute(index)
            base.execute("COMMIT")
            base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        base.close()

    async def drop(self) -> None:
        """Delete the database."""
        for path in Path(self.file).parent.glob(f"{Path(self.file).name}*"):
            path.unlink()


@dataclass(frozen=True, slots=True)
class Postgres:
    """A frontier on PostgreSQL."""

    url: str
    schema: str
    name: str = "PostgreSQL"

    @asynccontextmanager
    async def opened(self, policy: Policy) -> AsyncIterator[Frontier]:
        """Open the frontier as one more process of the crawl does."""
        database = PostgresDatabase(self.url, self.schema)
        await database.open(create=True)
        frontier = PostgresFrontier(database, policy, machine=1)
        await frontier.begin(run=1)
        try:
            yield frontier
        finally:
            await database.close()

    @asynccontextmanager
    async def connected(self, **settings: str) -> AsyncIterator[Any]:
        """Open a connection to the schema outside of the frontier."""
        connection = await asyncpg.connect(self.url, server_settings={**settings, "search_path": f'"{self.schema}"'})
        try:
            yield connection
        finally:
            await connection.close()

    async def fill(self, plan: Plan) -> None:
        """Copy the URLs in the order of arrival, without their indexes, and create the indexes afterwards."""
        async with self.opened(policy()):
            pass
        async with self.connected(maintenance_work_mem="512MB") as connection:
            await self._fill(connection, plan)

    async def _fill(self, connection: Any, plan: Plan) -> None:
        index = await connection.fetchval("SELECT pg_get_indexdef('url_pending'::regclass)")
        await connection.execute("ALTER TABLE url DROP CONSTRAINT url_pkey; DROP INDEX url_pending")
        await connection.copy_to_table(
            "domain",
            source=_lines(
                f"{NO_IDS.domain_id(domain_name(number))}\t{domain_name(number)}\t{number}\t{plan.per_domain}\n"
                for number in range(plan.domains)
            ),
            columns=["id", "name", "ready_at", "pending"],
        )
        await connection.copy_to_table(
            "url",
            source=_lines(_lines_by_arrival(plan)),
            columns=["domain", "fingerprint", "url", "priority", "position", "depth"],
        )
        await connection.execute("ALTER TABLE url ADD PRIMARY KEY (domain, fingerprint)")
        await connection.execute(index)
        await connection.executemany(
            "INSERT INTO counter (name, slot, value) VALUES ($1, 0, $2)", _counters(plan).items()
        )
        await connection.execute(f"SELECT setval('add_number', {plan.urls // URLS_PER_ADD + 1})")
        await connection.execute("VACUUM ANALYZE")

    async def drop(self) -> None:
        """Drop the schema."""
        async with self.connected() as connection:
            await connection.execute(f'DROP SCHEMA IF EXISTS "{self.schema}" CASCADE')


Backend = Sqlite | Postgres


def policy(delay: float = 0.0) -> Policy:
    """Return a policy. Without a delay, a settled domain can be claimed again at once."""
    return Policy(delay=delay, budget=BUDGET)


def _rows_by_arrival(plan: Plan) -> Iterator[tuple[int, int, str, int]]:
    ids = [NO_IDS.domain_id(domain_name(number)) for number in range(plan.domains)]
    for page in range(plan.per_domain):
        for number, id in enumerate(ids):
            text = url_text(number, page)
            yield id, NO_IDS.domain_id(text), text, page * plan.domains + number


def _lines_by_arrival(plan: Plan) -> Iterator[str]:
    for id, key, text, position in _rows_by_arrival(plan):
        yield f"{id}\t{key}\t{text}\t1\t{position}\t1\n"


async def _lines(lines: Iterator[str]) -> AsyncIterator[bytes]:
    part: list[str] = []
    for line in lines:
        part.append(line)
        if len(part) == 5_000:
            yield "".join(part).encode()
            part.clear()
    yield "".join(part).encode()


def _counters(plan: Plan) -> dict[str, int]:
    return {
        "urls.pending": plan.urls,
        "domains.total": plan.domains,
        "domains.active": plan.domains,
    }
