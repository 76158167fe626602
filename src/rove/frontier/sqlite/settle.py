"""Settles visits on the embedded frontier. Everything here runs inside a transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rove.frontier.counters import count_closed, count_leases, count_requests, count_settled
from rove.frontier.priority import CLASSES, RETRIED
from rove.frontier.records import LostVisit, Policy
from rove.frontier.rows.contents import content_rows
from rove.frontier.rows.origins import lost_robots_texts
from rove.frontier.rows.requests import ledger_rows, request_values
from rove.frontier.rows.skipped import reasons_in, skipped_rows
from rove.frontier.rows.visits import Closing, closing_rows, deferred_rows, late_rows, settled_rows
from rove.frontier.sqlite.counters import add_counters
from rove.frontier.sqlite.database import SqliteDatabase
from rove.frontier.sqlite.origins import save_robots_texts
from rove.frontier.sqlite.schedule import reschedule
from rove.model.skipped import SAMPLED
from rove.model.visits import VisitResult


def settle(database: SqliteDatabase, visits: Sequence[VisitResult], *, policy: Policy, process: int, now: int) -> int:
    """End the leases whose token is still valid; return their number."""
    tokens = [[visit.lease.domain, visit.lease.token] for visit in visits]
    current = {row[0] for row in database.batch("current_tokens", tokens)}
    valid = [visit for visit in visits if visit.lease.token in current]
    late = [visit for visit in visits if visit.lease.token not in current]
    changes: Counter[str] = Counter()
    settled = settle_urls(database, settled_rows(valid), changes)
    database.batch("defer_urls", deferred_rows(valid), now=now, retried=RETRIED, classes=CLASSES)
    closing = closing_rows(valid, settled)
    crawl_delays = close_leases(database, closing, changes, policy=policy, now=now)
    ended = database.batch("end_late", late_rows(late), now=now, delay=policy.delay_ms)
    reschedule(database, [row[0] for row in ended])
    in_force = {visit.lease.token: crawl_delays[visit.lease.domain] for visit in valid}
    _insert_requests(database, ledger_rows(visits, in_force, policy=policy, process=process), changes)
    database.insert("insert_contents", content_rows(valid))
    _insert_skipped(database, valid, now)
    count_leases(valid, changes)
    add_counters(database, changes)
    database.execute("seen_now", now=now, process=process)
    return len(valid)


def _insert_skipped(database: SqliteDatabase, visits: Sequence[VisitResult], now: int) -> None:
    """Keep examples of links that were not taken. Most visits have none."""
    rows = skipped_rows(visits)
    if rows:
        database.batch("insert_skipped", rows, now=now)
        for reason in reasons_in(rows):
            database.execute("trim_skipped", reason=reason, most=SAMPLED)


def settle_urls(database: SqliteDatabase, rows: list[tuple[Any, ...]], changes: Counter[str]) -> Counter[int]:
    """Move URLs out of pending; return their number by domain."""
    return count_settled(database.batch("settle_urls", rows), changes)


def close_leases(
    database: SqliteDatabase, closing: list[Closing], changes: Counter[str], *, policy: Policy, now: int
) -> dict[int, int]:
    """End leases; return the Crawl-delay of each domain in milliseconds."""
    closed = database.batch(
        "close_leases",
        closing,
        now=now,
        delay=policy.delay_ms,
        epoch=policy.limits_epoch,
        cap=policy.max_pages_per_domain,
    )
    reschedule(database, [row.domain for row in closing])
    return count_closed(closed, closing, changes)


def record_lost(database: SqliteDatabase, visits: Sequence[LostVisit], changes: Counter[str], *, now: int) -> None:
    """Enter the requests of lost visits into the ledger."""
    rows = [request_values(row) for visit in visits for row in visit.rows]
    _insert_requests(database, rows, changes)
    save_robots_texts(database, lost_robots_texts(visits), now=now)


def _insert_requests(database: SqliteDatabase, rows: list[list[Any]], changes: Counter[str]) -> None:
    count_requests(database.insert("insert_requests", rows), changes)
