"""Marks seeds and tries failed URLs again on PostgreSQL. Everything here runs inside a transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rove.frontier.counters import count_active, count_retried
from rove.frontier.postgres.counters import add_counters
from rove.frontier.postgres.schedule import reschedule
from rove.frontier.postgres.session import Session
from rove.frontier.priority import RETRIED, SUSPECT, URLS_PER_ADD
from rove.frontier.retries import KnownUrl
from rove.model.urls import UrlState


async def mark_seeds(keys: Sequence[tuple[int, int]], session: Session) -> int:
    """Mark known URLs as seeds; return how many were not seeds yet."""
    first = await _first_position(session)
    rows = [(domain, fingerprint, first + number) for number, (domain, fingerprint) in enumerate(keys)]
    await session.fetch("lock_domains", domains=sorted({domain for domain, _ in keys}))
    marked = await session.batch("mark_seeds", ("domains", "fingerprints", "numbers"), rows, retried=RETRIED)
    return len(marked)


async def retry_urls(urls: Sequence[KnownUrl], retry: int, limits: Mapping[str, int], session: Session) -> int:
    """Make URLs pending and due; return their number. `limits` are the delay and the limits of the clock."""
    first = await _first_position(session)
    rows: dict[UrlState, list[tuple[int, int, int]]] = {}
    for number, url in enumerate(urls):
        rows.setdefault(url.state, []).append((*url.key, first + number))
    domains = sorted({url.domain for url in urls})
    await session.fetch("retry_origins", domains=domains)
    await session.fetch("lock_domains", domains=domains)
    retried = {}
    for state, part in rows.items():
        columns = ("domains", "fingerprints", "positions")
        changed = await session.batch("retry_urls", columns, part, state=state, retried=RETRIED, suspect=SUSPECT)
        retried[state] = Counter(row[0] for row in changed)
    changes: Counter[str] = Counter()
    more = count_retried(retried, changes)
    for domain, pending, excluded in await session.batch("retry_domains", ("domains", "more"), more.items(), **limits):
        count_active(pending, more[domain], excluded, changes)
    await reschedule(session, list(more))
    count = sum(domains.total() for domains in retried.values())
    await session.fetch("count_retried", urls=count, id=retry)
    await add_counters(session, changes)
    return count


async def _first_position(session: Session) -> int:
    """Return a place behind all URLs that were added so far."""
    number: int = await session.value("next_add_number")
    return number * URLS_PER_ADD
