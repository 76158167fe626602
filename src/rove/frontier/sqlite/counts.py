"""The counters of the embedded frontier."""

from __future__ import annotations

from rove.frontier.counts import counts_from
from rove.frontier.sqlite.database import Database
from rove.model.ledger import Counts


def read_counts(database: Database, now: int) -> Counts:
    """Counters, and what depends on the time: ready and leased domains, from their own small indexes."""
    with database.snapshot():
        return counts_from(
            dict(database.execute("counters")),
            ready=database.execute("count_ready", now=now)[0][0],
            leased=database.execute("count_leased", now=now)[0][0],
            capped=database.execute("count_capped")[0][0],
        )
