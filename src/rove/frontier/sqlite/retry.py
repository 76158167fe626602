"""Marks seeds and tries failed URLs again on the embedded frontier. Everything here runs inside a transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rove.frontier.counters import count_active, count_retried
from rove.frontier.priority import RETRIED, SUSPECT, URLS_PER_ADD
from rove.frontier.retries import KnownUrl
from rove.frontier.sqlite.counters import add_counters
from rove.frontier.sqlite.database import SqliteDatabase
from rove.frontier.sqlite.schedule import reschedule
from rove.model.urls import UrlState


def mark_seeds(database: SqliteDatabase, keys: Sequence[tuple[int, int]]) -> int:
    """Mark known URLs as seeds; return how many were not seeds yet."""
    first = _first_position(database)
    rows = [(domain, fingerprint, first + number) for number, (domain, fingerprint) in enumerate(keys)]
    return len(database.batch("mark_seeds", rows, retried=RETRIED))


def retry_urls(database: SqliteDatabase, urls: Sequence[KnownUrl], retry: int, *, delay: int, now: int) -> int:
    """Make URLs pending and due; return their number."""
    first = _first_position(database)
    rows: dict[UrlState, list[tuple[int, int, int]]] = {}
    for number, url in enumerate(urls):
        rows.setdefault(url.state, []).append((*url.key, first + number))
    retried = {
        state: Counter(
            row[0] for row in database.batch("retry_urls", part, state=state, retried=RETRIED, suspect=SUSPECT)
        )
        for state, part in rows.items()
    }
    changes: Counter[str] = Counter()
    more = count_retried(retried, changes)
    database.batch("retry_origins", list(more), now=now)
    changed = database.batch("retry_domains", list(more.items()), delay=delay, now=now)
    for domain, pending, excluded, _ in changed:
        count_active(pending, more[domain], excluded, changes)
    reschedule(database, [domain for domain, _, _, is_leased in changed if not is_leased])
    count = sum(domains.total() for domains in retried.values())
    database.execute("count_retried", urls=count, now=now, id=retry)
    add_counters(database, changes)
    return count


def _first_position(database: SqliteDatabase) -> int:
    """Return a place behind all URLs that were added so far."""
    number: int = database.execute("next_number", name="adds", count=1)[0][0]
    return number * URLS_PER_ADD
