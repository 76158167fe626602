"""When the domains of the embedded frontier are due."""

from __future__ import annotations

from rove.frontier.bulk_settle import ALONE_MS
from rove.frontier.priority import HELD, RETRIED
from rove.frontier.sqlite.database import SqliteDatabase
from rove.policy.pacing import FAILURES_BEFORE_LEAVING

ALONE = {"leaving": FAILURES_BEFORE_LEAVING, "alone": ALONE_MS}
"""Parameters: the limits beyond which a crawl does not stay up for a domain."""


def reschedule(database: SqliteDatabase, domains: list[int]) -> None:
    """Compute anew when domains are due, from their first pending URL."""
    database.batch("reschedule", domains, retried=RETRIED, held=HELD, **ALONE)


def lift_caps(database: SqliteDatabase, epoch: int) -> None:
    """Let domains continue that had reached the limit of an earlier epoch."""
    capped = [row[0] for row in database.execute("capped_domains", epoch=epoch)]
    database.execute("lift_caps", epoch=epoch)
    reschedule(database, capped)
