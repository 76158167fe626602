"""Schedules the domains of the frontier on PostgreSQL."""

from __future__ import annotations

from rove.frontier.postgres.session import Session
from rove.frontier.priority import ALONE, HELD, RETRIED, SUSPECT


async def reschedule(session: Session, domains: list[int]) -> None:
    """Recompute when locked domains are due, from their first pending URL."""
    await session.fetch("reschedule", domains=domains, retried=RETRIED, held=HELD, suspect=SUSPECT, **ALONE)


async def lift_caps(session: Session, epoch: int) -> None:
    """Let domains continue that had reached the limit of an earlier epoch."""
    capped = [row[0] for row in await session.fetch("lock_capped", epoch=epoch)]
    await session.fetch("lift_caps", domains=capped)
    await reschedule(session, capped)
