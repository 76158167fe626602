"""The counters of the embedded frontier."""

from __future__ import annotations

from collections.abc import Mapping

from rove.frontier.counters import counts_from
from rove.frontier.sqlite.database import SqliteDatabase
from rove.model.ledger import Counts


def add_counters(database: SqliteDatabase, deltas: Mapping[str, int]) -> None:
    """Add to counters."""
    database.batch("add_counters", [item for item in deltas.items() if item[1]])


def read_counts(database: SqliteDatabase, now: int) -> Counts:
    """Read the counters, and count the ready, leased and capped domains in their own small indexes."""
    with database.snapshot():
        return counts_from(
            dict(database.execute("counters")),
            ready=database.execute("count_ready", now=now)[0][0],
            leased=database.execute("count_leased", now=now)[0][0],
            capped=database.execute("count_capped")[0][0],
        )
