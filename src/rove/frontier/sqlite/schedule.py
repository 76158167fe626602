"""Schedules the domains of the embedded frontier."""

from __future__ import annotations

from rove.frontier.priority import ALONE, HELD, RETRIED, SUSPECT
from rove.frontier.sqlite.database import SqliteDatabase


def reschedule(database: SqliteDatabase, domains: list[int]) -> None:
    """Recompute when domains are due, from their first pending URL."""
    database.batch("reschedule", domains, retried=RETRIED, held=HELD, suspect=SUSPECT, **ALONE)


def lift_caps(database: SqliteDatabase, epoch: int) -> None:
    """Let domains continue that had reached the limit of an earlier epoch."""
    capped = [row[0] for row in database.execute("capped_domains", epoch=epoch)]
    database.execute("lift_caps", epoch=epoch)
    reschedule(database, capped)
