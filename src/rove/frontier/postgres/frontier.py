"""The frontier on PostgreSQL: claim, settle and add for many processes on many machines.

The queries are in postgres.sql, with their reasons and the order of their locks. Here they are put together into
transactions; each may be repeated, as it is when the server was lost and nobody knows whether it had committed.
"""

from __future__ import annotations

import os
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from rove.frontier.bulk_settle import ALONE_MS
from rove.frontier.capacity import FullDomains
from rove.frontier.clock import steady_seconds
from rove.frontier.contract import MAX_UNSETTLED, LostVisit, Policy, Vitals
from rove.frontier.counts import lease_counters
from rove.frontier.fresh_first import FreshFirst
from rove.frontier.postgres.add import PostgresAdding
from rove.frontier.postgres.claim_floor import LOWEST, ClaimFloor
from rove.frontier.postgres.clock import ClockGuard
from rove.frontier.postgres.contents import PostgresContents
from rove.frontier.postgres.counts import read_counts
from rove.frontier.postgres.database import Database, Session, WasLost
from rove.frontier.postgres.steps import add_counters, columns_of, settle_urls
from rove.frontier.priority import HELD, RETRIED, URLS_PER_LEASE
from rove.frontier.rows import (
    REQUEST_COLUMNS,
    ledger_rows,
    origin_record,
    origin_values,
    pending_url,
    request_row_values,
    robots_texts,
)
from rove.frontier.sanitize import storable
from rove.model.ledger import Counts
from rove.model.reasons import lost_with_process
from rove.model.urls import PendingUrl, UrlState
from rove.model.visits import (
    Lease,
    OriginRecord,
    Pace,
    VisitResult,
)
from rove.policy.pacing import FAILURES_BEFORE_LEAVING
from rove.urls.fingerprint import fingerprint_bytes


class PostgresFrontier(PostgresAdding, PostgresContents):
    """The frontier of one process of a crawl."""

    def __init__(
        self,
        database: Database,
        policy: Policy,
        machine: int,
        steady: Callable[[], float] = steady_seconds,
    ) -> None:
        clock = ClockGuard(database, steady)
        super().__init__(database, clock, FullDomains(policy.domain_budget, steady))
        self._policy = policy
        self._machine = machine
        self._bound = ClaimFloor()
        self._fresh_bound = ClaimFloor()
        self._head_start = FreshFirst()
        self.process = 0

    async def begin(self, run: int | None) -> None:
        """Take part in a run, or only look after the frontier."""

        async def work(session: Session) -> int:
            epoch = self._policy.limits_epoch
            capped = [row[0] for row in await session.fetch("lock_capped", epoch=epoch)]
            await session.fetch("lift_caps", domains=capped)
            await self._reschedule(session, capped)
            if run is None:
                return 0
            process: int = await session.value(
                "begin_process", run=run, machine=self._machine, pid=os.getpid()
            )
            return process

        await self._clock.watch()
        self.process = await self._database.transaction("begin", work)

    async def claim(self, limit: int) -> list[Lease]:
        bound = self._bound.for_claim()
        fresh_bound = self._fresh_bound.for_claim() if self._head_start.takes_turn() else None
        started = time.perf_counter()
        try:
            claimed = await self._database.transaction(
                "claim", partial(self._claim, limit, bound, fresh_bound), again=False
            )
        except WasLost:
            return []  # whoever claims may have something to settle first
        seconds = time.perf_counter() - started
        fresh, rows, urls = claimed
        if fresh_bound is not None:
            self._fresh_bound.claimed(fresh_bound, seconds, *_due_times(fresh), limit)
            self._head_start.found(len(fresh))
        if len(fresh) < limit:
            self._bound.claimed(bound, seconds, *_due_times(rows), limit - len(fresh))
        return [
            Lease(
                domain=row["id"],
                name=row["name"],
                token=row["token"],
                crawl_delay=row["crawl_delay"] / 1000,
                urls=tuple(urls[row["id"]]),
                pace=Pace(
                    backoff=row["backoff"] / 1000,
                    failures=row["failures"],
                    repeats=row["repeats"] / 1000,
                ),
                claimed_ms=row["now"],
            )
            for part in (fresh, rows)
            for row in sorted(part, key=lambda row: row["was_due"])
            if row["id"] in urls
        ]

    async def more(self, lease: Lease, after: PendingUrl, limit: int) -> list[PendingUrl]:
        rows = await self._database.run(
            "read more URLs",
            lambda session: session.fetch(
                "more_urls",
                domain=lease.domain,
                priority=after.priority,
                position=after.position,
                limit=limit,
                retried=RETRIED,
            ),
        )
        return [pending_url(row) for row in rows]

    async def settle(self, visits: Sequence[VisitResult]) -> int:
        if not visits:
            return 0
        return await self._database.transaction("settle", partial(self._settle, visits))

    async def states(self, keys: Sequence[tuple[int, int]]) -> dict[tuple[int, int], UrlState]:
        domains, fingerprints = columns_of(keys, 2)
        rows = await self._database.run(
            "read states",
            lambda session: session.fetch("url_states", domains=domains, fingerprints=fingerprints),
        )
        return {(domain, fingerprint): UrlState(state) for domain, fingerprint, state in rows}

    async def origins(self, keys: Iterable[tuple[int, str]]) -> list[OriginRecord]:
        domains, origins = columns_of(list(keys), 2)
        rows = await self._database.run(
            "read origins",
            lambda session: session.fetch("origins", domains=domains, origins=origins),
        )
        return [origin_record(row) for row in rows]

    async def put_origins(self, records: Sequence[OriginRecord]) -> None:
        if records:
            await self._database.transaction("keep origins", partial(self._put_origins, records))

    async def record_lost(self, visits: Sequence[LostVisit]) -> None:
        if visits:
            await self._database.transaction("record what was lost", partial(self._lost, visits))

    async def count(self, deltas: Mapping[str, int]) -> None:
        await self._database.run("count", lambda session: add_counters(session, deltas))

    async def next_due(self) -> float | None:
        async def work(session: Session) -> int | None:
            for bound in (self._bound.value, LOWEST):
                milliseconds: int | None = await session.value("next_due", bound=bound)
                if milliseconds is not None:
                    return milliseconds
            return None

        due = await self._database.run("see what is due", work)
        return None if due is None else max(0, due) / 1000

    async def pages(self) -> int:
        pages: int = await self._database.run("count pages", lambda session: session.value("pages"))
        return pages

    async def recover(self, processes: Sequence[int] | None = None) -> int:
        async def work(session: Session) -> int:
            owners = processes
            if owners is None:
                rows = await session.fetch(
                    "own_processes", machine=self._machine, process=self.process
                )
                owners = [row[0] for row in rows]
            await session.fetch("mark_gone", processes=list(owners))
            cut = await session.fetch(
                "cut_leases",
                processes=list(owners),
                earliest=self._clock.earliest(),
                ceiling=self._clock.ceiling(),
                delay=self._delay(),
            )
            return len(cut)

        return await self._database.transaction("cut leases", work)

    async def note_alive(self, vitals: Vitals) -> None:
        await self._database.run(
            "note that it is alive",
            lambda session: session.fetch(
                "note_alive",
                process=self.process,
                pages=vitals.pages,
                pages_per_s=vitals.pages_per_second,
                in_flight=vitals.in_flight,
                has_left=vitals.is_leaving,
            ),
        )
        await self._clock.watch()

    async def counts(self) -> Counts:
        return await read_counts(self._database)

    @property
    def outages(self) -> int:
        return self._database.outages

    def stop_waiting(self, seconds: float) -> None:
        self._database.stop_waiting(seconds)

    # What follows runs inside a transaction.

    async def _claim(
        self, limit: int, bound: int, fresh_bound: int | None, session: Session
    ) -> tuple[list[Any], list[Any], dict[int, list[PendingUrl]]]:
        """Lease domains; those that were never leased before, the others, and the first URLs of all."""
        fresh, rows = [], []
        if fresh_bound is not None:
            fresh = await self._lease("lease_fresh", session, fresh_bound, limit)
        if len(fresh) < limit:
            rows = await self._lease("lease", session, bound, limit - len(fresh))
        return fresh, rows, await self._urls_of(session, [*fresh, *rows])

    async def _lease(self, query: str, session: Session, bound: int, limit: int) -> list[Any]:
        return await session.fetch(
            query,
            bound=bound,
            latest=self._clock.latest(),
            earliest=self._clock.earliest(),
            ceiling=self._clock.ceiling(),
            limit=limit,
            budget=round(self._policy.budget * 1000),
            delay=self._delay(),
            process=self.process,
        )

    async def _urls_of(self, session: Session, rows: list[Any]) -> dict[int, list[PendingUrl]]:
        """The first URLs of domains just leased; a lease for which there are none is taken back."""
        if not rows:
            return {}
        now = rows[0]["now"]
        suspects = [row["id"] for row in rows if row["unsettled"] > MAX_UNSETTLED]
        if suspects:
            await self._give_up_heads(session, suspects, now)
        leased = [row["id"] for row in rows]
        urls = await self._head_urls(session, leased, now, URLS_PER_LEASE)
        empty = [domain for domain in leased if domain not in urls]
        if empty:
            changes = Counter({"leases": len(empty), "unasked.empty": len(empty)})
            kept = {row["id"]: (row["backoff"], row["failures"], row["repeats"]) for row in rows}
            unasked = [(domain, 0, False, 0, 0, 0, *kept[domain]) for domain in empty]
            await self._close(session, unasked, changes)
            await add_counters(session, changes)
        return urls

    async def _head_urls(
        self, session: Session, domains: list[int], now: int, limit: int
    ) -> dict[int, list[PendingUrl]]:
        rows = await session.fetch(
            "head_urls", domains=domains, now=now, limit=limit, retried=RETRIED, held=HELD
        )
        found: dict[int, list[PendingUrl]] = {}
        for row in rows:
            found.setdefault(row[0], []).append(pending_url(row))
        for urls in found.values():
            urls.sort(key=lambda url: (url.priority, url.position))
        return found

    async def _give_up_heads(self, session: Session, domains: list[int], now: int) -> None:
        """Settle the head URL of domains that were leased again and again and never came back."""
        heads = await self._head_urls(session, domains, now, 1)
        reason = lost_with_process(MAX_UNSETTLED)
        rows = [
            (domain, urls[0].fingerprint, UrlState.FAILED, reason, None)
            for domain, urls in heads.items()
        ]
        changes: Counter[str] = Counter()
        left = await settle_urls(session, rows, changes)
        changes["lost"] += left.total()
        settled = [left[domain] for domain in domains]
        given_up = await session.fetch("give_up", domains=domains, settled=settled)
        changes["domains.active"] -= sum(not pending and left[id] > 0 for id, pending in given_up)
        await add_counters(session, changes)

    async def _settle(self, visits: Sequence[VisitResult], session: Session) -> int:
        domains, tokens = columns_of([(v.lease.domain, v.lease.token) for v in visits], 2)
        locked = await session.fetch("lock_leases", domains=domains, tokens=tokens)
        current = {token for token, counts in locked if counts}
        taken = {token for token, counts in locked if not counts}
        valid = [visit for visit in visits if visit.lease.token in current]
        changes: Counter[str] = Counter()
        rows = [
            (visit.lease.domain, s.fingerprint, s.state, storable(s.reason), visit.lease.token)
            for visit in valid
            for s in visit.settled
        ]
        left = await settle_urls(session, rows, changes)
        await self._defer_urls(session, valid)
        closing = [
            (
                visit.lease.domain,
                left[visit.lease.domain],
                visit.asked,
                round(max(0.0, visit.since_finish) * 1000),
                sum(s.state is UrlState.DONE for s in visit.settled),
                round(visit.pause * 1000),
                round(visit.pace.backoff * 1000),
                visit.pace.failures,
                round(visit.pace.repeats * 1000),
            )
            for visit in valid
        ]
        crawl_delays = await self._close(session, closing, changes)
        await self._end_late(session, [v for v in visits if v.lease.token in taken])
        counted = {visit.lease.token: crawl_delays[visit.lease.domain] for visit in valid}
        entries = ledger_rows(visits, counted, policy=self._policy, process=self.process)
        await self._insert_requests(session, entries, changes)
        await self._keep_contents(session, valid)
        changes.update(lease_counters(valid))
        await add_counters(session, changes)
        return len(valid)

    async def _end_late(self, session: Session, visits: list[VisitResult]) -> None:
        if not visits:
            return
        rows = [
            (
                visit.lease.domain,
                visit.asked,
                round(max(0.0, visit.since_finish) * 1000),
                round(visit.pause * 1000),
            )
            for visit in visits
        ]
        domains, asked, since_finish, pauses = columns_of(rows, 4)
        await session.fetch(
            "end_late",
            domains=domains,
            asked=asked,
            since_finish=since_finish,
            pauses=pauses,
            delay=self._delay(),
            earliest=self._clock.earliest(),
            ceiling=self._clock.ceiling(),
        )
        await self._reschedule(session, domains)

    async def _defer_urls(self, session: Session, visits: list[VisitResult]) -> None:
        rows = [
            (
                visit.lease.domain,
                d.fingerprint,
                HELD if d.failing else RETRIED,
                round(d.seconds * 1000),
                d.attempts,
            )
            for visit in visits
            for d in visit.deferred
        ]
        if not rows:
            return
        domains, fingerprints, priorities, waits, attempts = columns_of(rows, 5)
        await session.fetch(
            "defer_urls",
            domains=domains,
            fingerprints=fingerprints,
            priorities=priorities,
            waits=waits,
            attempts=attempts,
            earliest=self._clock.earliest(),
            ceiling=self._clock.ceiling(),
        )

    async def _close(
        self,
        session: Session,
        rows: list[tuple[int, int, bool, int, int, int, int, int, int]],
        changes: Counter[str],
    ) -> dict[int, int]:
        """End leases; the Crawl-delay of each domain."""
        if not rows:
            return {}
        columns = columns_of(rows, 9)
        domains, settled, asked, since_finish, pages, pauses, backoffs, failures, repeats = columns
        closed = await session.fetch(
            "close_leases",
            domains=domains,
            settled=settled,
            asked=asked,
            since_finish=since_finish,
            pages=pages,
            pauses=pauses,
            backoffs=backoffs,
            failures=failures,
            repeats=repeats,
            leaving=FAILURES_BEFORE_LEAVING,
            alone=ALONE_MS,
            earliest=self._clock.earliest(),
            ceiling=self._clock.ceiling(),
            delay=self._delay(),
            epoch=self._policy.limits_epoch,
            cap=self._policy.max_pages_per_domain,
            retried=RETRIED,
            held=HELD,
        )
        left = {row[0]: row[1] for row in rows}
        changes["domains.active"] -= sum(not pending and left[id] > 0 for id, pending, _ in closed)
        return {id: crawl_delay for id, _, crawl_delay in closed}

    async def _insert_requests(
        self, session: Session, rows: list[list[Any]], changes: Counter[str]
    ) -> None:
        if not rows:
            return
        columns = dict(zip(REQUEST_COLUMNS, columns_of(rows, len(REQUEST_COLUMNS)), strict=True))
        inserted = await session.fetch("insert_requests", machine=self._machine, **columns)
        for size, error in inserted:
            changes["requests"] += 1
            changes["bytes"] += size
            if error:
                changes[f"errors.{error}"] += 1

    async def _put_origins(self, records: Sequence[OriginRecord], session: Session) -> None:
        rows = {(record.domain, record.origin): origin_values(record) for record in records}
        columns = columns_of(list(rows.values()), 10)
        domains, origins, statuses, bodies, crawl_delays, failures, valid_for = columns[:7]
        sources, etags, last_modified = columns[7:]
        await session.fetch(
            "put_origins",
            domains=domains,
            origins=origins,
            statuses=statuses,
            bodies=bodies,
            crawl_delays=crawl_delays,
            failures=failures,
            valid_for=valid_for,
            sources=sources,
            etags=etags,
            last_modified=last_modified,
        )
        await _keep_robots_texts(session, robots_texts(records))
        locked = await session.fetch("lock_domains", domains=list(set(domains)))
        ids = [row[0] for row in locked]
        await session.fetch("lengthen_delays", domains=ids, delay=self._delay())

    async def _lost(self, visits: Sequence[LostVisit], session: Session) -> None:
        changes: Counter[str] = Counter()
        postponed = [(v.domain, v.visit, v.earliest) for v in visits if v.earliest]
        domains, numbers, earliest = columns_of(postponed, 3)
        await session.fetch("lock_domains", domains=sorted(set(domains)))
        await session.fetch("postpone", domains=domains, visits=numbers, earliest=earliest)
        rows = [request_row_values(row) for visit in visits for row in visit.rows]
        await self._insert_requests(session, rows, changes)
        texts = [text for visit in visits for text in visit.robots]
        compressed = {fingerprint_bytes(text): zlib.compress(text, 6) for text in texts}
        await _keep_robots_texts(session, compressed)
        await add_counters(session, changes)

    def _delay(self) -> int:
        return round(self._policy.delay * 1000)


def _due_times(rows: list[Any]) -> tuple[list[int], int | None]:
    """When domains that were leased had been due, and what time it was."""
    return [row["was_due"] for row in rows], rows[0]["now"] if rows else None


async def _keep_robots_texts(session: Session, texts: Mapping[int, bytes]) -> None:
    if texts:
        hashes, bodies = columns_of(list(texts.items()), 2)
        await session.fetch("keep_robots_texts", hashes=hashes, bodies=bodies)
