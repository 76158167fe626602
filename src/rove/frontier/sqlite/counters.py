"""The counters of the embedded frontier."""

from __future__ import annotations

from collections.abc import Mapping

from rove.frontier.sqlite.database import SqliteDatabase


def add_counters(database: SqliteDatabase, deltas: Mapping[str, int]) -> None:
    """Add to counters."""
    database.batch("add_counters", [item for item in deltas.items() if item[1]])
