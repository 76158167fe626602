"""Exclusions on PostgreSQL, and URLs that are settled without a visit."""

from __future__ import annotations

from collections import Counter

from rove.frontier.counters import count_active, count_reopened, count_withdrawn
from rove.frontier.postgres.counters import add_counters
from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.schedule import reschedule
from rove.frontier.postgres.session import Session
from rove.frontier.postgres.settle import settle_urls
from rove.model.urls import UrlState


class PostgresUrlSlices:
    """The URLs of a domain, read and changed in slices."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self.fetch = database.fetch

    async def settle(
        self, domain: int, fingerprints: list[int], state: UrlState, reason: str, after: int | None
    ) -> int:
        async def work(session: Session) -> int:
            locked = await session.fetch("lock_domains", domains=[domain])
            if after is not None and [row[1] for row in locked] != [after]:
                return 0
            changes: Counter[str] = Counter()
            rows = [(domain, fingerprint, state, reason, None) for fingerprint in fingerprints]
            settled = (await settle_urls(session, rows, changes)).total()
            count_withdrawn(settled, state, reason, changes)
            await _change_pending(session, domain, -settled, changes)
            return settled

        return await self._database.transaction("withdraw", work)

    async def reopen(self, domain: int, fingerprints: list[int], reason: str) -> int:
        async def work(session: Session) -> int:
            await session.fetch("lock_domains", domains=[domain])
            domains = [domain] * len(fingerprints)
            rows = await session.fetch("reopen_urls", domains=domains, fingerprints=fingerprints, reason=reason)
            changes: Counter[str] = Counter()
            count_reopened(len(rows), reason, changes)
            await _change_pending(session, domain, len(rows), changes)
            return len(rows)

        return await self._database.transaction("reopen", work)


async def exclude(domains: list[tuple[int, str]], session: Session) -> list[int]:
    """Stop leasing domains, given by id and name in order; return those that have pending URLs."""
    locked = await session.batch("lock_to_exclude", ("domains", "names"), domains)
    pending = {id: count for id, count, is_new in locked if not is_new}
    await session.fetch("exclude_domains", domains=list(pending))
    changes = {
        "domains.total": len(locked) - len(pending),
        "domains.excluded": len(locked),
        "domains.active": -sum(count > 0 for count in pending.values()),
    }
    await add_counters(session, changes)
    return [row[0] for row in await session.fetch("excluded_with_pending", domains=[id for id, _ in domains])]


async def include(domains: list[int], session: Session) -> None:
    """Allow excluded domains to be leased again."""
    await session.fetch("lock_domains", domains=domains)
    included = await session.fetch("include_domains", domains=domains)
    await reschedule(session, [id for id, _ in included])
    changes = {"domains.excluded": -len(included), "domains.active": sum(pending > 0 for _, pending in included)}
    await add_counters(session, changes)


async def _change_pending(session: Session, domain: int, change: int, changes: Counter[str]) -> None:
    """Add to the number of pending URLs of a locked domain, and recompute when it is due."""
    rows = await session.fetch("add_to_pending", domain=domain, change=change)
    for pending, excluded in rows:
        count_active(pending, change, excluded, changes)
    await reschedule(session, [domain])
    await add_counters(session, changes)
