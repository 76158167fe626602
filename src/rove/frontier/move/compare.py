"""Compares the copy with its source, and prepares it for use."""

from __future__ import annotations

from typing import Any

import asyncpg

from rove.errors import FrontierError
from rove.frontier.dsn import redacted
from rove.frontier.move.source import Source
from rove.frontier.move.tables import TABLES
from rove.frontier.move.target import fetch
from rove.frontier.postgres.connector import CONNECT_SECONDS, application_name
from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.errors import DRIVER_ERRORS
from rove.resources import activity


async def complete(source: Source, database: PostgresDatabase) -> dict[str, int]:
    """Check that the copy is the same as its source, then set its sequences; return the number of rows by table."""
    connection = None
    try:
        # Not one of the pool: these statements may scan whole tables, without a timeout.
        connection = await asyncpg.connect(
            database.url,
            timeout=CONNECT_SECONDS,
            server_settings={
                "application_name": application_name(activity.current(), ""),
                "search_path": f'"{database.schema}"',
            },
        )
        rows = await _compare(source, connection)
        await fetch(
            connection,
            "advance_sequences",
            visits=source.counters.get("visits", 0),
            adds=source.counters.get("adds", 0),
        )
        await fetch(connection, "analyze")
        return rows
    except DRIVER_ERRORS as error:
        raise FrontierError(
            f"the database at {redacted(database.url)} failed: {error}; run the same command again to resume the move"
        ) from error
    finally:
        if connection is not None:
            connection.terminate()


async def _compare(source: Source, connection: Any) -> dict[str, int]:
    rows, differences = {}, []
    for table in TABLES:
        here = await source.count(table)
        there = (await fetch(connection, f"count_{table.name}"))[0]
        rows[table.name] = here[table.title]
        differences += [
            f"{label}: {count:,} here, {int(there[label]):,} there"
            for label, count in here.items()
            if count != there[label]
        ]
    if differences:
        raise FrontierError(
            f"the copy differs from the crawl ({'; '.join(differences)}); the crawl here is unchanged: "
            "drop the schema of the copy and move again"
        )
    return rows
