"""Leases domains on PostgreSQL."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from functools import partial

from rove.frontier.counters import count_empty_leases
from rove.frontier.fresh_first import FreshFirst
from rove.frontier.postgres.claim_floor import ClaimFloor
from rove.frontier.postgres.clock import ClockGuard
from rove.frontier.postgres.counters import add_counters
from rove.frontier.postgres.database import PostgresDatabase, WasLost
from rove.frontier.postgres.session import Session
from rove.frontier.postgres.settle import PostgresSettling, settle_urls
from rove.frontier.priority import HELD, RETRIED, URLS_PER_LEASE
from rove.frontier.records import Policy
from rove.frontier.rows.visits import LeasedDomain, given_up_rows, urls_by_domain
from rove.model.urls import PendingUrl
from rove.model.visits import Lease

Urls = dict[int, list[PendingUrl]]


class PostgresClaiming:
    """Leases domains for one process."""

    def __init__(
        self, database: PostgresDatabase, policy: Policy, clock: ClockGuard, settling: PostgresSettling
    ) -> None:
        self._database = database
        self._policy = policy
        self._clock = clock
        self._settling = settling
        self.floor = ClaimFloor()
        self.fresh_floor = ClaimFloor()
        self._turns = FreshFirst()

    async def claim(self, limit: int, process: int) -> list[Lease]:
        """Lease up to `limit` due domains, each with its first URLs."""
        bound = self.floor.for_claim()
        fresh_bound = self.fresh_floor.for_claim() if self._turns.takes_turn() else None
        started = time.perf_counter()
        try:
            limit, fresh, others, urls = await self._database.transaction(
                "claim", partial(self._claim, limit, process, bound, fresh_bound), again=False
            )
        except WasLost:
            return []  # the caller may have visits to settle first
        if limit <= 0:
            return []
        seconds = time.perf_counter() - started
        if fresh_bound is not None:
            self.fresh_floor.claimed(fresh_bound, seconds, *_due_times(fresh), limit)
            self._turns.found(len(fresh))
        if len(fresh) < limit:
            self.floor.claimed(bound, seconds, *_due_times(others), limit - len(fresh))
        return [
            domain.lease(urls[domain.id])
            for part in (fresh, others)
            for domain in sorted(part, key=lambda domain: domain.was_due)
            if domain.id in urls
        ]

    async def claim_among(self, domains: Sequence[int], limit: int, process: int) -> list[Lease]:
        """Lease up to `limit` of these domains that are due, each with its first URLs."""
        try:
            leased, urls = await self._database.transaction(
                "claim", partial(self._claim_among, domains, limit, process), again=False
            )
        except WasLost:
            return []
        return [domain.lease(urls[domain.id]) for domain in leased if domain.id in urls]

    # Everything below runs inside a transaction.

    async def _claim_among(
        self, domains: Sequence[int], limit: int, process: int, session: Session
    ) -> tuple[list[LeasedDomain], Urls]:
        if self._policy.page_limit is not None:
            limit = min(limit, await self._pages_left(session, self._policy.page_limit))
        if limit <= 0:
            return [], {}
        leased = await self._lease("lease_among", session, limit, process, domains=list(domains))
        return leased, await self._urls_of(session, leased)

    async def _claim(
        self, limit: int, process: int, bound: int, fresh_bound: int | None, session: Session
    ) -> tuple[int, list[LeasedDomain], list[LeasedDomain], Urls]:
        """Lease domains.

        Return how many were wanted within the page limit, those that were never leased before, the others, and the
        first URLs of all.
        """
        fresh, others = [], []
        if self._policy.page_limit is not None:
            limit = min(limit, await self._pages_left(session, self._policy.page_limit))
            if limit <= 0:
                return limit, [], [], {}
        if fresh_bound is not None:
            fresh = await self._lease("lease_fresh", session, limit, process, bound=fresh_bound)
        if len(fresh) < limit:
            others = await self._lease("lease", session, limit - len(fresh), process, bound=bound)
        return limit, fresh, others, await self._urls_of(session, [*fresh, *others])

    async def _pages_left(self, session: Session, page_limit: int) -> int:
        """Return how many leases may be given out: each may bring a page."""
        # One claim after the other, so that each sees the leases of those before.
        await session.fetch("advisory_lock", name=f"rove pages {self._database.schema}")
        taken: int = await session.value("pages_and_leases")
        return page_limit - taken

    async def _lease(
        self, query: str, session: Session, limit: int, process: int, **which: int | list[int]
    ) -> list[LeasedDomain]:
        """Run one of the queries that lease domains; `which` are the parameters that only this one has."""
        rows = await session.fetch(
            query,
            **which,
            latest=self._clock.latest(),
            limit=limit,
            budget=round(self._policy.budget * 1000),
            delay=self._policy.delay_ms,
            process=process,
            **self._clock.limits(),
        )
        return [LeasedDomain(*row) for row in rows]

    async def _urls_of(self, session: Session, domains: list[LeasedDomain]) -> Urls:
        """Return the first URLs of leased domains; leases of domains without URLs are taken back."""
        if not domains:
            return {}
        now = domains[0].now
        changes: Counter[str] = Counter()
        suspects = [domain.id for domain in domains if domain.is_suspect]
        if suspects:
            await self._give_up_heads(session, suspects, now, changes)
        urls = await _head_urls(session, [domain.id for domain in domains], now, URLS_PER_LEASE)
        empty = [domain.closing() for domain in domains if domain.id not in urls]
        if empty:
            await self._settling.close_leases(session, empty, changes)
            count_empty_leases(len(empty), changes)
        await add_counters(session, changes)
        return urls

    async def _give_up_heads(self, session: Session, domains: list[int], now: int, changes: Counter[str]) -> None:
        """Fail the head URL of domains whose claims were never settled."""
        heads = await _head_urls(session, domains, now, 1)
        settled = await settle_urls(session, given_up_rows(heads), changes)
        changes["lost"] += settled.total()
        counts = [settled[domain] for domain in domains]
        rows = await session.fetch("give_up", domains=domains, settled=counts)
        changes["domains.active"] -= sum(not pending and settled[id] > 0 for id, pending in rows)


async def _head_urls(session: Session, domains: list[int], now: int, limit: int) -> Urls:
    return urls_by_domain(
        await session.fetch("head_urls", domains=domains, now=now, limit=limit, retried=RETRIED, held=HELD)
    )


def _due_times(domains: list[LeasedDomain]) -> tuple[list[int], int | None]:
    """Return when leased domains had been due, and the time of the claim."""
    return [domain.was_due for domain in domains], domains[0].now if domains else None
