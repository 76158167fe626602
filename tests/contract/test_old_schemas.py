"""A crawl that an older version made goes on with what it had; nobody changes its schema but who resumes it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest

from rove.errors import UsageError
from rove.frontier.contract import Node, Policy
from rove.frontier.postgres.backend import PostgresBackend
from rove.frontier.queries import load_migrations
from rove.frontier.sqlite.backend import SqliteBackend
from rove.model.ledger import Settlement
from rove.model.urls import UrlState
from tests.contract.harness import url, visited

A = url("http://a.test/1")
POLICY = Policy(delay=70.0, budget=180.0)
REQUEST = (
    "INSERT INTO request (visit, seq, domain, kind, url, fingerprint, started, finished, status, error, media_type, "
    "size, truncated, content_hash, target, title{more}) VALUES "
    "(7, 0, {domain}, 'page', 'http://a.test/0', 5, 1700000000.5, 1700000001.25, 200, '', 'text/html', 10, {no}, 3, "
    "'', 'A'{values})"
)

URL = (
    "INSERT INTO url (domain, fingerprint, url, priority, position, depth) VALUES "
    "({A.domain}, {A.fingerprint}, '{A.url}', 0, 1, 0)"
)


def fill(first_add: str, no: str, more: str = "", values: str = "") -> list[str]:
    """A domain with one URL to come and one done, an exclusion, and settings."""
    number = ", 1" if first_add else ""
    return [
        f"INSERT INTO domain (id, name, ready_at, pending{first_add}) VALUES ({A.domain}, 'a.test', 0, 1{number})",
        URL.format(A=A),
        REQUEST.format(domain=A.domain, no=no, more=more, values=values),
        "INSERT INTO exclusion (pattern) VALUES ('bad.test')",
        "INSERT INTO meta (key, value) VALUES ('settings', '{}')",
    ]


@pytest.mark.parametrize("version", [1, 2])
async def test_sqlite(tmp_path: Path, version: int) -> None:
    path = tmp_path / "frontier.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for number, script in load_migrations("sqlite"):
            if number <= version:
                connection.executescript(f"{script}; PRAGMA user_version = {number};")
        for statement in fill(", first_add", "0"):
            connection.execute(statement)
    for reader in (SqliteBackend(path, read_only=True), SqliteBackend(path)):
        with pytest.raises(UsageError, match="resume the crawl once"):
            await reader.open()
        await reader.close()
    news: list[str] = []
    for _ in range(2):
        backend = SqliteBackend(path, on_news=news.append)
        await backend.open(create=True)
        await backend.close()
    assert [f"bringing {path}" in sentence for sentence in news] == [True]
    backend = SqliteBackend(path)
    await check(backend)
    await backend.close()


OLD_ROWS = {
    "domain": (
        *(
            "id",
            "name",
            "ready_at",
            "not_before",
            "crawl_delay",
            "pending",
            "token",
            "owner",
            "unsettled",
        ),
        *(
            "failing",
            "pages",
            "pages_epoch",
            "capped",
            "excluded",
            "backoff",
            "failures",
            "repeats",
        ),
    ),
    "url": (
        *(
            "domain",
            "fingerprint",
            "url",
            "state",
            "priority",
            "position",
            "depth",
            "hops",
            "attempts",
        ),
        *("bare", "reason", "visit", "sitemap_of"),
    ),
}
"""The columns of the tables that version 5 makes anew."""


async def test_every_column_is_carried_over(tmp_path: Path) -> None:
    path, rows = tmp_path / "frontier.sqlite", {}
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for number, script in load_migrations("sqlite")[:4]:
            connection.executescript(f"{script}; PRAGMA user_version = {number};")
        for table, columns in OLD_ROWS.items():
            # A thousand rows, each column with values of its own; keys as scattered as hashes are.
            rows[table] = sorted(
                tuple(
                    (7919 * row * (-1) ** row if place == 0 else row * 100 + place)
                    if name not in ("name", "url", "reason", "sitemap_of")
                    else f"{name} {row}"
                    for place, name in enumerate(columns)
                )
                for row in range(1_000)
            )
            more, value = (", first_add", ", 1") if table == "domain" else ("", "")
            marks = ", ".join("?" * len(columns)) + value
            insert = f"INSERT INTO {table} ({', '.join(columns)}{more}) VALUES ({marks})"
            connection.executemany(insert, rows[table])
    backend = SqliteBackend(path)
    await backend.open(create=True)
    await backend.close()
    with closing(sqlite3.connect(path)) as connection:
        for table, columns in OLD_ROWS.items():
            query = f"SELECT {', '.join(columns)} FROM {table} ORDER BY {', '.join(columns)}"
            assert connection.execute(query).fetchall() == rows[table]
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def test_postgres(postgres_url: str) -> None:
    schema = "old_schema"
    connection = await asyncpg.connect(postgres_url)
    try:
        await connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}")
        await connection.execute(f"SET search_path = {schema}")
        await connection.execute("CREATE TABLE migration (number integer PRIMARY KEY)")
        await connection.execute(load_migrations("postgres")[0][1])
        await connection.execute("INSERT INTO migration VALUES (1)")
        for statement in fill("", "false", ", machine", ", 1"):
            await connection.execute(statement)
        machine = Node(key="k", host="h", path="/p")
        joiner = PostgresBackend(postgres_url, schema, machine)
        with pytest.raises(UsageError, match="resume it once"):
            await joiner.open()
        await joiner.close()
        backend = PostgresBackend(postgres_url, schema, machine)
        await check(backend)
        await backend.close()
    finally:
        await connection.execute(f"DROP SCHEMA {schema} CASCADE")
        await connection.close()


async def check(backend: SqliteBackend | PostgresBackend) -> None:
    """It can be resumed, and what was there is there."""
    assert await backend.exists()
    await backend.open(create=True)
    assert await backend.catalog.settings() == "{}"
    assert await backend.catalog.exclusions() == ["bad.test"]
    (excluded,) = await backend.catalog.exclusion_history()
    assert excluded.at == 0 and excluded.who == "" and excluded.lifted_at is None
    (row,) = [row async for row in backend.reader.visits(A.domain)]
    assert (row.began, row.ended) == (1_700_000_000_500, 1_700_000_001_250)
    assert (row.process, row.delay, row.fate) == (0, 0.0, Settlement.SETTLED)
    assert row.finished == pytest.approx(1_700_000_001.25)
    frontier = await backend.begin(POLICY, await backend.begin_run())
    (lease,) = await frontier.claim(5)
    assert [pending.url for pending in lease.urls] == [A.url]
    assert await frontier.settle([visited(lease, UrlState.DONE)]) == 1


async def test_a_file_whose_maker_was_killed_at_once_holds_no_crawl(tmp_path: Path) -> None:
    path = tmp_path / "frontier.sqlite"
    path.touch()
    backend = SqliteBackend(path)
    assert not await backend.exists()
    await backend.open(create=True)
    assert await backend.catalog.settings() is None
    await backend.close()
