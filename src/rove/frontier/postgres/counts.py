"""The counters of a frontier on PostgreSQL."""

from __future__ import annotations

from rove.frontier.counts import counts_from
from rove.frontier.postgres.database import Database, Session
from rove.model.ledger import Counts


async def read_counts(database: Database) -> Counts:
    """Sums of the counters' rows, and three counts over small indexes."""

    async def work(session: Session) -> Counts:
        kept = dict(await session.fetch("counters"))
        return counts_from(
            kept,
            ready=await session.value("count_ready"),
            leased=await session.value("count_leased"),
            capped=await session.value("count_capped"),
        )

    return await database.run("count", work)
