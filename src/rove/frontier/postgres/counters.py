"""The counters of the frontier on PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping

from rove.frontier.counters import counts_from
from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.session import Session
from rove.model.ledger import Counts


async def add_counters(session: Session, deltas: Mapping[str, int]) -> None:
    """Add to counters. This is the last step of a transaction, because counters are locked last."""
    changed = [(name, amount) for name, amount in deltas.items() if amount]
    await session.batch("add_counters", ("names", "amounts"), changed)


async def read_counts(database: PostgresDatabase) -> Counts:
    """Read the counters, and count the ready, leased and capped domains in their own small indexes."""

    async def work(session: Session) -> Counts:
        return counts_from(
            dict(await session.fetch("counters")),
            ready=await session.value("count_ready"),
            leased=await session.value("count_leased"),
            capped=await session.value("count_capped"),
        )

    return await database.run("count", work)
