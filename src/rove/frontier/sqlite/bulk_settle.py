"""Exclusions on the embedded frontier, and URLs that are settled without a visit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rove.frontier.counters import count_active, count_reopened, count_withdrawn
from rove.frontier.sqlite.counters import add_counters
from rove.frontier.sqlite.database import SqliteDatabase
from rove.frontier.sqlite.schedule import reschedule
from rove.frontier.sqlite.settle import settle_urls
from rove.model.urls import UrlState


class SqliteUrlSlices:
    """The URLs of a domain, read and changed in slices."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self.fetch = database.fetch

    async def settle(
        self, domain: int, fingerprints: list[int], state: UrlState, reason: str, after: int | None
    ) -> int:
        def work() -> int:
            if after is not None:
                last_visits = [row[2] for row in self._database.execute("domain_state", id=domain)]
                if last_visits != [after]:
                    return 0
            changes: Counter[str] = Counter()
            rows = [(domain, fingerprint, state, reason, None) for fingerprint in fingerprints]
            settled = settle_urls(self._database, rows, changes).total()
            count_withdrawn(settled, state, reason, changes)
            self._change_pending(domain, -settled, changes)
            return settled

        return await self._database.write(work)

    async def reopen(self, domain: int, fingerprints: list[int], reason: str) -> int:
        def work() -> int:
            rows = [(domain, fingerprint) for fingerprint in fingerprints]
            reopened = len(self._database.batch("reopen_urls", rows, reason=reason))
            changes: Counter[str] = Counter()
            count_reopened(reopened, reason, changes)
            self._change_pending(domain, reopened, changes)
            return reopened

        return await self._database.write(work)

    def _change_pending(self, domain: int, change: int, changes: Counter[str]) -> None:
        """Add to the number of pending URLs of a domain, and recompute when it is due."""
        rows = self._database.execute("add_to_pending", domain=domain, change=change)
        for pending, excluded, is_leased in rows:
            count_active(pending, change, excluded, changes)
            if not is_leased:
                reschedule(self._database, [domain])
        add_counters(self._database, changes)


def exclude(database: SqliteDatabase, domains: Mapping[int, str]) -> list[int]:
    """Stop leasing domains; return those that have pending URLs. Inside a transaction."""
    changes: Counter[str] = Counter()
    with_pending = []
    for domain, name in domains.items():
        before = database.execute("domain_state", id=domain)
        pending, excluded, *_ = before[0] if before else (0, 0)
        if pending:
            with_pending.append(domain)
        if excluded:
            continue
        database.execute("exclude_domain", id=domain, name=name)
        changes["domains.excluded"] += 1
        changes["domains.total"] += not before
        changes["domains.active"] -= pending > 0
    add_counters(database, changes)
    return with_pending


def include(database: SqliteDatabase, domains: Sequence[int]) -> None:
    """Allow excluded domains to be leased again. Inside a transaction."""
    changes: Counter[str] = Counter()
    for domain in domains:
        for pending, excluded, *_ in database.execute("domain_state", id=domain):
            if excluded:
                database.execute("include_domain", id=domain)
                changes["domains.excluded"] -= 1
                changes["domains.active"] += pending > 0
                reschedule(database, [domain])
    add_counters(database, changes)
