"""The counters of the frontier on PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping

from rove.frontier.postgres.session import Session


async def add_counters(session: Session, deltas: Mapping[str, int]) -> None:
    """Add to counters. This is the last step of a transaction, because counters are locked last."""
    changed = [(name, amount) for name, amount in deltas.items() if amount]
    await session.batch("add_counters", ("names", "amounts"), changed)
