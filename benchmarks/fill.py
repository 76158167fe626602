"""Fill a frontier with millions of URLs before a crawl continues with it, by inserting straight into the tables.

The URLs belong to the hosts of the small web and queue behind everything that the crawl finds. So the crawl does the
same work as without them; only the tables and their indexes are larger.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Any

import asyncpg

from benchmarks.contestants import Trial, crawl_command
from benchmarks.measure import PATIENCE, STOPPED, Ground, ended, let_run, started
from rove.urls.canonical import NO_IDS

PRIORITY = 50
"""Deeper than any page of a short crawl."""


def begin(contestant: str, trial: Trial, here: Ground) -> None:
    """Create the crawl and its tables by running it for a moment."""
    command = crawl_command(contestant, trial, here.web, here.folder, here.database)
    with started(command, here.folder) as process:
        let_run(process, here.web, 0, 1.0)
        ended(process, here.folder, PATIENCE, 0, STOPPED)


def fill(trial: Trial, here: Ground, urls: int) -> None:
    """Insert this many pending URLs into the frontier of a crawl that is not running."""
    names = list(trial.plan.web.seeds())
    each = urls // len(names)
    if here.database:
        asyncio.run(_fill_postgres(here.database, trial.plan.scheme, names, each))
    else:
        _fill_sqlite(here, trial.plan.scheme, names, each)


def _rows(scheme: str, names: list[str], each: int) -> Iterator[tuple[int, int, str, int]]:
    """Yield domain, fingerprint, URL and position in the order of the key."""
    for domain, name in sorted((NO_IDS.domain_id(name), name) for name in names):
        texts = (f"{scheme}://{name}/articles/of-long-ago/page-{page}" for page in range(each))
        yield from sorted((domain, NO_IDS.domain_id(text), text, 0) for text in texts)


def _fill_sqlite(here: Ground, scheme: str, names: list[str], each: int) -> None:
    file = here.folder / "data" / "frontier.sqlite"
    with closing(sqlite3.connect(file, isolation_level=None)) as base:
        base.execute("PRAGMA synchronous = OFF")
        base.execute("PRAGMA cache_size = -400000")
        indexes = base.execute(
            "SELECT name, sql FROM sqlite_master WHERE name IN ('url_key', 'url_pending')"
        ).fetchall()
        base.execute("BEGIN")
        for name, _ in indexes:
            base.execute(f"DROP INDEX {name}")
        base.executemany(
            "INSERT INTO url (domain, fingerprint, url, priority, position, depth) "
            f"VALUES (?, ?, ?, {PRIORITY}, ?, {PRIORITY})",
            _rows(scheme, names, each),
        )
        for _, index in indexes:
            base.execute(index)
        base.executemany(
            "INSERT INTO domain (id, name, ready_at, pending) VALUES (?, ?, 0, ?) "
            "ON CONFLICT (id) DO UPDATE SET pending = pending + excluded.pending, "
            "ready_at = coalesce(ready_at, not_before)",
            [(NO_IDS.domain_id(name), name, each) for name in names],
        )
        base.execute(
            "UPDATE counter SET value = value + ? WHERE name = 'urls.pending'",
            (each * len(names),),
        )
        base.execute("COMMIT")
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)")


async def _fill_postgres(url: str, scheme: str, names: list[str], each: int) -> None:
    connection: Any = await asyncpg.connect(
        url, server_settings={"search_path": "rove", "maintenance_work_mem": "512MB"}
    )
    try:
        index = await connection.fetchval("SELECT pg_get_indexdef('url_pending'::regclass)")
        await connection.execute("ALTER TABLE url DROP CONSTRAINT url_pkey; DROP INDEX url_pending")
        await connection.copy_to_table(
            "url",
            source=_lines(_rows(scheme, names, each)),
            columns=["domain", "fingerprint", "url", "position", "priority", "depth"],
        )
        await connection.execute("ALTER TABLE url ADD PRIMARY KEY (domain, fingerprint)")
        await connection.execute(index)
        await connection.executemany(
            "INSERT INTO domain (id, name, ready_at, pending) VALUES ($1, $2, 0, $3) "
            "ON CONFLICT (id) DO UPDATE SET pending = domain.pending + excluded.pending, "
            "ready_at = coalesce(domain.ready_at, domain.not_before)",
            [(NO_IDS.domain_id(name), name, each) for name in names],
        )
        await connection.execute(
            "UPDATE counter SET value = value + $1 WHERE (name, slot) = "
            "(SELECT name, slot FROM counter WHERE name = 'urls.pending' LIMIT 1)",
            each * len(names),
        )
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()


async def _lines(rows: Iterator[tuple[int, int, str, int]]) -> AsyncIterator[bytes]:
    part: list[str] = []
    for domain, key, text, position in rows:
        part.append(f"{domain}\t{key}\t{text}\t{position}\t{PRIORITY}\t{PRIORITY}\n")
        if len(part) == 5_000:
            yield "".join(part).encode()
            part.clear()
    yield "".join(part).encode()
