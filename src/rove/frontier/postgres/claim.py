"""Leases domains on PostgreSQL."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from rove.frontier.counters import count_active, count_empty_leases
from rove.frontier.eras import Rest, rest_of
from rove.frontier.fresh_first import FreshFirst
from rove.frontier.postgres.claim_floor import ClaimFloor
from rove.frontier.postgres.clock import ClockGuard
from rove.frontier.postgres.counters import add_counters
from rove.frontier.postgres.database import PostgresDatabase, WasLost
from rove.frontier.postgres.schedule import reschedule
from rove.frontier.postgres.session import Session
from rove.frontier.postgres.settle import PostgresSettling, settle_urls
from rove.frontier.priority import FOREIGN, HELD, RETRIED, URLS_PER_LEASE, foreign_bounds
from rove.frontier.records import Policy
from rove.frontier.rows.visits import LeasedDomain, urls_by_domain, without_damaged
from rove.model.urls import PendingUrl
from rove.model.visits import Lease

Urls = dict[int, list[PendingUrl]]
FindUrls = Callable[[Session, list[LeasedDomain]], Awaitable[Urls]]
"""Reads the URLs of leases, given their domains and the time."""

log = logging.getLogger(__name__)


class PostgresClaiming:
    """Leases domains for one process."""

    def __init__(
        self, database: PostgresDatabase, policy: Policy, clock: ClockGuard, settling: PostgresSettling
    ) -> None:
        self._database = database
        self._policy = policy
        self._clock = clock
        self._settling = settling
        self.forget_floors()
        self._turns = FreshFirst()

    def forget_floors(self) -> None:
        """Start claims without a lower bound again, because domains may be due earlier than was known."""
        self.floor = ClaimFloor()
        self.fresh_floor = ClaimFloor()
        self.responding_floor = ClaimFloor()

    def rest(self) -> Rest | None:
        """Return the rest that domains take because the database may have lost claims; None if there is none."""
        era = None if self._database.guard is None else self._database.guard.era
        if era is None:
            return None
        return rest_of(era.rest_from, budget=self._policy.budget, delay_ms=self._policy.delay_ms)

    def resting_ms(self) -> int:
        """Return for how long no domain at all may be claimed."""
        rest = self.rest()
        return 0 if rest is None else max(0, rest.end() - self._clock.latest())

    async def claim(self, limit: int, process: int) -> list[Lease]:
        """Lease up to `limit` due domains, each with its first URLs."""
        if self.resting_ms():
            return []
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

    async def claim_responding(self, limit: int, process: int) -> list[Lease]:
        """Lease up to `limit` due domains that responded to their last visit, each with its first URLs."""
        bound = self.responding_floor.for_claim()
        started = time.perf_counter()
        claimed = await self._claim_with("lease_responding", limit, process, bound=bound)
        if claimed is None:
            return []
        limit, leased, urls = claimed
        self.responding_floor.claimed(bound, time.perf_counter() - started, *_due_times(leased), limit)
        in_order = sorted(leased, key=lambda domain: domain.was_due)
        return [domain.lease(urls[domain.id]) for domain in in_order if domain.id in urls]

    async def claim_among(self, domains: Sequence[int], limit: int, process: int) -> list[Lease]:
        """Lease up to `limit` of these domains that are due, each with its first URLs."""
        claimed = await self._claim_with("lease_among", limit, process, domains=list(domains))
        if claimed is None:
            return []
        _, leased, urls = claimed
        return [domain.lease(urls[domain.id]) for domain in leased if domain.id in urls]

    async def claim_suspect(self, process: int) -> list[Lease]:
        """Lease one domain with a suspect that is due, with that URL alone."""
        claimed = await self._claim_with("lease_suspect", 1, process, _suspects)
        if claimed is None:
            return []
        _, leased, urls = claimed
        return [domain.lease(urls[domain.id]) for domain in leased if domain.id in urls]

    async def _claim_with(
        self, query: str, limit: int, process: int, find_urls: FindUrls | None = None, **which: int | list[int]
    ) -> tuple[int, list[LeasedDomain], Urls] | None:
        """Lease domains with one of the queries; None if none may be leased, or if the database was lost.

        Return how many were wanted within the page limit, the domains, and their first URLs.
        """
        if self.resting_ms():
            return None

        async def work(session: Session) -> tuple[int, list[LeasedDomain], Urls]:
            wanted = limit
            if self._policy.page_limit is not None:
                wanted = min(wanted, await self._pages_left(session, self._policy.page_limit))
            if wanted <= 0:
                return 0, [], {}
            leased = await self._lease(query, session, wanted, process, **which)
            awake = await self._without_resting(session, leased)
            return wanted, leased, await self._urls_of(session, awake, find_urls)

        try:
            claimed = await self._database.transaction("claim", work, again=False)
        except WasLost:
            return None
        return claimed if claimed[0] else None

    # Everything below runs inside a transaction.

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
        awake = await self._without_resting(session, [*fresh, *others])
        return limit, fresh, others, await self._urls_of(session, awake)

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

    async def _without_resting(self, session: Session, leased: list[LeasedDomain]) -> list[LeasedDomain]:
        """End the leases of domains that still rest, and return the others."""
        rest = self.rest()
        if rest is None:
            return leased
        until = {domain.id: rest.end(domain.crawl_delay, domain.backoff) for domain in leased}
        resting = [(domain.id, until[domain.id]) for domain in leased if until[domain.id] > domain.now]
        if resting:
            await session.batch("rest", ("domains", "until"), resting)
            await reschedule(session, [id for id, _ in resting])
        return [domain for domain in leased if until[domain.id] <= domain.now]

    async def _urls_of(self, session: Session, domains: list[LeasedDomain], find_urls: FindUrls | None = None) -> Urls:
        """Return the first URLs of leased domains; leases of domains without URLs are taken back."""
        if not domains:
            return {}
        changes: Counter[str] = Counter()
        urls = await (find_urls or _head_urls)(session, domains)
        await _fail_damaged(session, urls, changes)
        empty = [domain.closing() for domain in domains if domain.id not in urls]
        if empty:
            await self._settling.close_leases(session, empty, changes)
            count_empty_leases(len(empty), changes)
        await add_counters(session, changes)
        return urls


async def _head_urls(session: Session, domains: list[LeasedDomain]) -> Urls:
    bounds = [(domain.id, *foreign_bounds(foreign_first=domain.foreign_first)) for domain in domains]
    columns = ("domains", "foreign_before", "foreign_after")
    now = domains[0].now
    rows = await session.batch(
        "head_urls", columns, bounds, now=now, limit=URLS_PER_LEASE, foreign=FOREIGN, retried=RETRIED, held=HELD
    )
    return urls_by_domain(rows, domains)


async def _fail_damaged(session: Session, urls: Urls, changes: Counter[str]) -> None:
    """Fail the URLs of leases whose rows are damaged, so that they do not hold up their domain."""
    rows = without_damaged(urls)
    for domain, count in (await settle_urls(session, rows, changes)).items():
        for pending, excluded in await session.fetch("add_to_pending", domain=domain, change=-count):
            count_active(pending, -count, excluded, changes)
    if rows:
        log.warning("failed %d URLs whose rows in the frontier are damaged", len(rows))


async def _suspects(session: Session, domains: list[LeasedDomain]) -> Urls:
    """Return one suspect of each of these domains."""
    rows = [row for domain in domains for row in await session.fetch("suspect_of", domain=domain.id, now=domain.now)]
    return urls_by_domain(rows, domains)


def _due_times(domains: list[LeasedDomain]) -> tuple[list[int], int | None]:
    """Return when leased domains had been due, and the time of the claim."""
    return [domain.was_due for domain in domains], domains[0].now if domains else None
