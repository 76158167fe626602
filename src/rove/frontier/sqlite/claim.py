"""Leases domains on the embedded frontier. Everything here runs inside a transaction."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence

from rove.frontier.counters import count_active, count_empty_leases
from rove.frontier.eras import Rest
from rove.frontier.fresh_first import FreshFirst
from rove.frontier.priority import FOREIGN, HELD, RETRIED, URLS_PER_LEASE
from rove.frontier.records import Policy
from rove.frontier.rows.visits import LeasedDomain, urls_by_domain, without_damaged
from rove.frontier.sqlite.counters import add_counters
from rove.frontier.sqlite.database import Row, SqliteDatabase
from rove.frontier.sqlite.eras import without_resting
from rove.frontier.sqlite.settle import close_leases, settle_urls
from rove.model.urls import PendingUrl
from rove.model.visits import Lease

HeadUrls = dict[int, list[PendingUrl]]
FindUrls = Callable[[SqliteDatabase, list[LeasedDomain], int], HeadUrls]

log = logging.getLogger(__name__)


def claim(
    database: SqliteDatabase,
    limit: int,
    find_due: Callable[[int, int], list[Row]],
    find_urls: Callable[[list[LeasedDomain], int], HeadUrls],
    *,
    policy: Policy,
    process: int,
    now: int,
    rest: Rest | None = None,
) -> list[Lease]:
    """Lease up to `limit` of the due domains that `find_due` returns, given their number and the time.

    `find_urls` returns the URLs of the leases, given their domains and the time.
    """
    if policy.page_limit is not None:
        limit = min(limit, _pages_left(database, policy.page_limit, now))
    due = find_due(limit, now) if limit > 0 else []
    if not due:
        return []
    last = database.execute("next_number", name="visits", count=len(due))[0][0]
    domains = [LeasedDomain._make((*row, last - i, now)) for i, row in enumerate(due)]
    domains = without_resting(database, domains, rest, now)
    changes: Counter[str] = Counter()
    database.batch(
        "lease",
        [(domain.id, domain.token) for domain in domains],
        now=now,
        budget=round(policy.budget * 1000),
        delay=policy.delay_ms,
        process=process,
    )
    urls = find_urls(domains, now)
    _fail_damaged(database, urls, changes)
    empty = [domain.closing() for domain in domains if domain.id not in urls]
    if empty:
        close_leases(database, empty, changes, policy=policy, now=now)
        count_empty_leases(len(empty), changes)
    add_counters(database, changes)
    return [domain.lease(urls[domain.id]) for domain in domains if domain.id in urls]


def _fail_damaged(database: SqliteDatabase, urls: HeadUrls, changes: Counter[str]) -> None:
    """Fail the URLs of leases whose rows are damaged, so that they do not hold up their domain."""
    rows = without_damaged(urls)
    for domain, count in settle_urls(database, rows, changes).items():
        for pending, excluded, _ in database.execute("add_to_pending", domain=domain, change=-count):
            count_active(pending, -count, excluded, changes)
    if rows:
        log.warning("failed %d URLs whose rows in the frontier are damaged", len(rows))


def _pages_left(database: SqliteDatabase, page_limit: int, now: int) -> int:
    """Return how many leases may be given out: each may bring a page. A lease that has expired brings none."""
    pages = database.execute("pages")
    leased: int = database.execute("count_leased", now=now)[0][0]
    return page_limit - leased - (pages[0][0] if pages else 0)


def longest_due(database: SqliteDatabase, turns: FreshFirst, limit: int, now: int) -> list[Row]:
    """Return the rows of the domains to lease, longest due first; fresh ones come first if it is their turn."""
    fresh: list[Row] = []
    if turns.takes_turn():
        fresh = database.execute("due_fresh", now=now, limit=limit)
        turns.found(len(fresh))
        if len(fresh) == limit:
            return fresh
    taken = {row[0] for row in fresh}
    due = database.execute("due", now=now, limit=limit)
    return [*fresh, *(row for row in due if row[0] not in taken)][:limit]


def longest_due_responding(database: SqliteDatabase, limit: int, now: int) -> list[Row]:
    """Return the rows of the domains to lease that responded to their last visit, longest due first."""
    return database.execute("due_responding", now=now, limit=limit)


def due_among(database: SqliteDatabase, domains: Sequence[int], limit: int, now: int) -> list[Row]:
    """Return the rows of those of these domains that are due, up to `limit` of them."""
    return database.batch("due_among", list(domains), now=now, limit=limit)[:limit]


def head_urls(database: SqliteDatabase, domains: list[LeasedDomain], now: int) -> HeadUrls:
    """Return the first due URLs of these domains."""
    rows: list[Row] = []
    for query, foreign_first in (("head_urls", False), ("head_urls_foreign_first", True)):
        ids = [domain.id for domain in domains if domain.foreign_first is foreign_first]
        rows += database.batch(query, ids, now=now, limit=URLS_PER_LEASE, foreign=FOREIGN, retried=RETRIED, held=HELD)
    return urls_by_domain(rows, domains)
