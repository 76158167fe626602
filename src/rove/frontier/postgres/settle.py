"""Settles visits on PostgreSQL. Everything here runs inside a transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rove.frontier.counters import count_active, count_closed, count_leases, count_requests, count_settled
from rove.frontier.postgres.clock import ClockGuard
from rove.frontier.postgres.contents import insert_contents
from rove.frontier.postgres.counters import add_counters
from rove.frontier.postgres.origins import save_robots_texts
from rove.frontier.postgres.schedule import reschedule
from rove.frontier.postgres.session import Session
from rove.frontier.priority import ALONE, CLASSES, HELD, RETRIED, SUSPECT
from rove.frontier.records import LostVisit, Policy, Suspicion
from rove.frontier.rows.origins import lost_robots_texts
from rove.frontier.rows.requests import REQUEST_COLUMNS, ledger_rows, request_values
from rove.frontier.rows.skipped import SKIPPED_COLUMNS, reasons_in, skipped_rows
from rove.frontier.rows.visits import (
    Closing,
    SuspectedUrl,
    closing_rows,
    convicted_rows,
    deferred_rows,
    late_rows,
    settled_rows,
    suspect_rows,
)
from rove.model.reasons import SUSPECTED
from rove.model.skipped import SAMPLED
from rove.model.visits import VisitResult


class PostgresSettling:
    """Settles the visits of one node."""

    def __init__(self, policy: Policy, clock: ClockGuard, machine: int) -> None:
        self._policy = policy
        self._clock = clock
        self._machine = machine

    async def settle(self, visits: Sequence[VisitResult], process: int, session: Session) -> int:
        """End the leases whose token is still valid; return their number."""
        tokens = [(visit.lease.domain, visit.lease.token) for visit in visits]
        is_current = dict(await session.batch("lock_leases", ("domains", "tokens"), tokens))
        valid = [visit for visit in visits if is_current.get(visit.lease.token)]
        late = [visit for visit in visits if is_current.get(visit.lease.token) is False]
        changes: Counter[str] = Counter()
        settled = await settle_urls(session, settled_rows(valid), changes)
        columns = ("domains", "fingerprints", "priorities", "waits", "attempts", "reasons")
        limits = {"retried": RETRIED, "classes": CLASSES, **self._clock.limits()}
        await session.batch("defer_urls", columns, deferred_rows(valid), **limits)
        crawl_delays = await self.close_leases(session, closing_rows(valid, settled), changes)
        await self._end_late(session, late)
        await self._end_forgotten(session, [v for v in visits if v.requested and v.lease.token not in is_current])
        in_force = {visit.lease.token: crawl_delays[visit.lease.domain] for visit in valid}
        rows = ledger_rows(visits, in_force, policy=self._policy, process=process)
        await self._insert_requests(session, rows, changes)
        await insert_contents(session, valid, self._machine)
        await _insert_skipped(session, valid)
        count_leases(valid, changes)
        await add_counters(session, changes)
        return len(valid)

    async def close_leases(self, session: Session, closing: list[Closing], changes: Counter[str]) -> dict[int, int]:
        """End leases whose rows are locked; return the Crawl-delay of each domain in milliseconds."""
        closed = await session.batch(
            "close_leases",
            Closing._fields,
            closing,
            delay=self._policy.delay_ms,
            epoch=self._policy.limits_epoch,
            cap=self._policy.max_pages_per_domain,
            retried=RETRIED,
            held=HELD,
            suspect=SUSPECT,
            **ALONE,
            **self._clock.limits(),
        )
        return count_closed(closed, closing, changes)

    async def record_lost(self, visits: Sequence[LostVisit], session: Session) -> list[Suspicion]:
        """Enter the requests of lost visits into the ledger. The URLs that they were reading become suspects."""
        changes: Counter[str] = Counter()
        # As in put_origins, texts come before domains are locked.
        await save_robots_texts(session, lost_robots_texts(visits))
        await session.fetch("lock_domains", domains=sorted({visit.domain for visit in visits}))
        suspicions = await self._suspect(session, visits, changes)
        rows = [request_values(row) for visit in visits for row in visit.rows]
        await self._insert_requests(session, rows, changes)
        await add_counters(session, changes)
        return suspicions

    async def _suspect(self, session: Session, visits: Sequence[LostVisit], changes: Counter[str]) -> list[Suspicion]:
        """Make URLs of locked domains suspects; fail those with enough evidence against them."""
        suspected = [
            SuspectedUrl(*row)
            for row in await session.batch(
                "suspect_urls",
                ("domains", "fingerprints", "deaths"),
                suspect_rows(visits),
                reason=SUSPECTED,
                suspect=SUSPECT,
                classes=CLASSES,
                **self._clock.limits(),
            )
        ]
        if not suspected:
            return []
        settled = await settle_urls(session, convicted_rows(suspected), changes)
        domains = sorted({suspect.domain for suspect in suspected})
        for domain in domains:
            change = -settled[domain]
            for pending, excluded in await session.fetch("add_to_pending", domain=domain, change=change):
                count_active(pending, change, excluded, changes)
        await reschedule(session, domains)
        return [suspect.suspicion for suspect in suspected]

    async def _end_late(self, session: Session, visits: list[VisitResult]) -> None:
        """End visits whose lease was taken away; lock_leases has checked their tokens."""
        if not visits:
            return
        columns = ("domains", "tokens", "requested", "since_finish", "pauses")
        await session.batch("end_late", columns, late_rows(visits), delay=self._policy.delay_ms, **self._clock.limits())
        await reschedule(session, [visit.lease.domain for visit in visits])

    async def _end_forgotten(self, session: Session, visits: list[VisitResult]) -> None:
        """Respect the pauses after visits whose leases the database has lost."""
        if visits:
            await session.fetch("lock_domains", domains=sorted({visit.lease.domain for visit in visits}))
            columns = ("domains", "tokens", "requested", "since_finish", "pauses")
            limits = {"delay": self._policy.delay_ms, **self._clock.limits()}
            await session.batch("end_forgotten", columns, late_rows(visits), **limits)

    async def _insert_requests(self, session: Session, rows: list[list[Any]], changes: Counter[str]) -> None:
        inserted = await session.batch("insert_requests", REQUEST_COLUMNS, rows, machine=self._machine)
        count_requests(inserted, changes)


async def _insert_skipped(session: Session, visits: Sequence[VisitResult]) -> None:
    """Keep examples of links that were not taken. Most visits have none."""
    rows = skipped_rows(visits)
    await session.batch("insert_skipped", SKIPPED_COLUMNS, rows)
    for reason in reasons_in(rows):
        await session.fetch("trim_skipped", reason=reason, most=SAMPLED)


async def settle_urls(session: Session, rows: list[tuple[Any, ...]], changes: Counter[str]) -> Counter[int]:
    """Move URLs out of pending; return their number by domain."""
    columns = ("domains", "fingerprints", "states", "reasons", "visits")
    return count_settled(await session.batch("settle_urls", columns, rows), changes)
