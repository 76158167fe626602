"""Notices a frontier that is older than its data directory, and lets its domains rest. Runs inside a transaction."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from rove.frontier.era_file import EraFile
from rove.frontier.eras import JUMP, Era, Past, Rest, Server, compare, rest_of
from rove.frontier.records import Policy
from rove.frontier.rows.visits import LeasedDomain
from rove.frontier.sqlite.database import SqliteDatabase
from rove.frontier.sqlite.schedule import reschedule

_REST_FROM, _ID = "rest_from", "era"
"""Keys in `meta`: the times from which all domains rest, and what tells this crawl from others."""


def begin_era_if_older(database: SqliteDatabase, file: EraFile, now: int) -> bool:
    """Let all domains rest if the data directory knows later visits than the file; return whether it does."""
    id = database.get_meta(_ID)
    if id is None:
        id = secrets.token_hex(8)
        database.execute("set_meta", key=_ID, value=id)
    era = Era(id, Server())
    rows = database.execute("visits_given")
    visits = rows[0][0] if rows else 0
    past = compare(era.server, [era], visits, file.known)
    file.note_era(era, crawl=id)
    if past is not Past.OLDER:
        return False
    database.execute("next_number", name="visits", count=file.known.visits - visits + JUMP)
    database.execute("next_number", name="adds", count=JUMP)
    before = database.get_meta(_REST_FROM) or ""
    database.execute("set_meta", key=_REST_FROM, value=f"{before} {now}".strip())
    return True


def read_eras(database: SqliteDatabase) -> tuple[str | None, list[int]]:
    """Return what tells this crawl from others, if it was ever opened, and the times from which all domains rested."""
    return database.get_meta(_ID), [int(time) for time in (database.get_meta(_REST_FROM) or "").split()]


def read_rest(database: SqliteDatabase, policy: Policy) -> Rest | None:
    """Return the rest that domains take or took."""
    _, times = read_eras(database)
    return rest_of(times[-1] if times else None, budget=policy.budget, delay_ms=policy.delay_ms)


def without_resting(
    database: SqliteDatabase, domains: Sequence[LeasedDomain], rest: Rest | None, now: int
) -> list[LeasedDomain]:
    """Postpone due domains that still rest, and return the others."""
    if rest is None:
        return list(domains)
    until = {domain.id: rest.end(domain.crawl_delay, domain.backoff) for domain in domains}
    resting = [(domain.id, until[domain.id]) for domain in domains if until[domain.id] > now]
    if resting:
        database.batch("rest", resting)
        reschedule(database, [id for id, _ in resting])
    return [domain for domain in domains if until[domain.id] <= now]
