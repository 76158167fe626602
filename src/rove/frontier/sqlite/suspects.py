"""URLs that a process was reading when it died, on the embedded frontier. Everything here runs inside a transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rove.frontier.counters import count_active
from rove.frontier.priority import ALONE, CLASSES, SUSPECT
from rove.frontier.records import LostVisit, Suspicion
from rove.frontier.rows.visits import LeasedDomain, SuspectedUrl, convicted_rows, suspect_rows, urls_by_domain
from rove.frontier.sqlite.claim import HeadUrls
from rove.frontier.sqlite.database import Row, SqliteDatabase
from rove.frontier.sqlite.schedule import reschedule
from rove.frontier.sqlite.settle import settle_urls
from rove.model.reasons import SUSPECTED


def suspect(
    database: SqliteDatabase, visits: Sequence[LostVisit], changes: Counter[str], *, now: int
) -> list[Suspicion]:
    """Make the URLs suspects that lost visits were reading; fail those with enough evidence against them."""
    rows = suspect_rows(visits)
    suspected = [
        SuspectedUrl._make(row)
        for row in database.batch("suspect_urls", rows, now=now, reason=SUSPECTED, suspect=SUSPECT, classes=CLASSES)
    ]
    settled = settle_urls(database, convicted_rows(suspected), changes)
    for domain in {suspect.domain for suspect in suspected}:
        change = -settled[domain]
        for pending, excluded, is_leased in database.execute("add_to_pending", domain=domain, change=change):
            count_active(pending, change, excluded, changes)
            if not is_leased:
                reschedule(database, [domain])
    return [suspect.suspicion for suspect in suspected]


def due_suspect(database: SqliteDatabase, now: int) -> list[Row]:
    """Return the row of a domain with a suspect that is due."""
    return database.execute("due_suspect", now=now)


def suspect_urls(database: SqliteDatabase, domains: list[LeasedDomain], now: int) -> HeadUrls:
    """Return one suspect of each of these domains."""
    rows = [row for domain in domains for row in database.execute("suspect_of", domain=domain.id, now=now)]
    return urls_by_domain(rows, domains)


def next_suspect(database: SqliteDatabase, *, until: int, now: int) -> int | None:
    """Return when a suspect may be tried; None if there is none to wait for."""
    due: int | None = database.execute("next_suspect", until=until, now=now, classes=CLASSES, **ALONE)[0][0]
    return due


def reserve_suspects(database: SqliteDatabase, now: int) -> None:
    """Keep ordinary claims away from domains with a suspect that is due."""
    database.execute("reserve_suspects", now=now, **ALONE)
