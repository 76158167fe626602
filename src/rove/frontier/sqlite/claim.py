"""Leases domains on the embedded frontier. Everything here runs inside a transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from rove.frontier.counters import count_empty_leases
from rove.frontier.fresh_first import FreshFirst
from rove.frontier.priority import HELD, RETRIED, URLS_PER_LEASE
from rove.frontier.records import Policy
from rove.frontier.rows.visits import LeasedDomain, given_up_rows, urls_by_domain
from rove.frontier.sqlite.counters import add_counters
from rove.frontier.sqlite.database import Row, SqliteDatabase
from rove.frontier.sqlite.settle import close_leases, settle_urls
from rove.model.urls import PendingUrl
from rove.model.visits import Lease


def claim(
    database: SqliteDatabase,
    limit: int,
    find_due: Callable[[int, int], list[Row]],
    *,
    policy: Policy,
    process: int,
    now: int,
) -> list[Lease]:
    """Lease up to `limit` of the due domains that `find_due` returns, given their number and the time."""
    if policy.page_limit is not None:
        limit = min(limit, _pages_left(database, policy.page_limit, now))
    due = find_due(limit, now) if limit > 0 else []
    if not due:
        return []
    last = database.execute("next_number", name="visits", count=len(due))[0][0]
    domains = [LeasedDomain._make((*row, last - i, now)) for i, row in enumerate(due)]
    changes: Counter[str] = Counter()
    suspects = [domain for domain in domains if domain.is_suspect]
    if suspects:
        _give_up_heads(database, suspects, changes, policy=policy, now=now)
    database.batch(
        "lease",
        [(domain.id, domain.token) for domain in domains],
        now=now,
        budget=round(policy.budget * 1000),
        delay=policy.delay_ms,
        process=process,
    )
    urls = _head_urls(database, [domain.id for domain in domains], now, URLS_PER_LEASE)
    empty = [domain.closing() for domain in domains if domain.id not in urls]
    if empty:
        close_leases(database, empty, changes, policy=policy, now=now)
        count_empty_leases(len(empty), changes)
    add_counters(database, changes)
    return [domain.lease(urls[domain.id]) for domain in domains if domain.id in urls]


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


def due_among(database: SqliteDatabase, domains: Sequence[int], limit: int, now: int) -> list[Row]:
    """Return the rows of those of these domains that are due, up to `limit` of them."""
    return database.batch("due_among", list(domains), now=now, limit=limit)[:limit]


def _head_urls(database: SqliteDatabase, domains: list[int], now: int, limit: int) -> dict[int, list[PendingUrl]]:
    return urls_by_domain(database.batch("head_urls", domains, now=now, limit=limit, retried=RETRIED, held=HELD))


def _give_up_heads(
    database: SqliteDatabase, suspects: list[LeasedDomain], changes: Counter[str], *, policy: Policy, now: int
) -> None:
    """Fail the head URL of domains whose claims were never settled."""
    heads = _head_urls(database, [domain.id for domain in suspects], now, 1)
    settled = settle_urls(database, given_up_rows(heads), changes)
    changes["lost"] += settled.total()
    closing = [domain.closing(settled[domain.id]) for domain in suspects]
    close_leases(database, closing, changes, policy=policy, now=now)
