"""The frontier on PostgreSQL: claim, settle and add for many processes on many machines.

The queries are in queries.sql, with their reasons and the order of their locks. The other modules of this package
combine them into transactions. Each transaction may be repeated. That happens if the server was lost and it is unknown
whether the transaction had committed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from rove.frontier.bulk_settle import SLICE, BulkSettling
from rove.frontier.capacity import FullDomains
from rove.frontier.clock import steady_seconds
from rove.frontier.counters import reach_from
from rove.frontier.eras import resting_text
from rove.frontier.postgres.add import PostgresAdding
from rove.frontier.postgres.bulk_settle import PostgresUrlSlices, exclude, include
from rove.frontier.postgres.claim import PostgresClaiming
from rove.frontier.postgres.claim_floor import LOWEST
from rove.frontier.postgres.clock import ClockGuard
from rove.frontier.postgres.contents import fetch_contents
from rove.frontier.postgres.counters import add_counters
from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.origins import put_origins
from rove.frontier.postgres.reader import PostgresTables
from rove.frontier.postgres.retry import mark_seeds, retry_urls
from rove.frontier.postgres.samples import add_samples, roll_up
from rove.frontier.postgres.schedule import lift_caps
from rove.frontier.postgres.session import Session
from rove.frontier.postgres.settle import PostgresSettling
from rove.frontier.priority import ALONE, CLASSES, RETRIED, SOME_DAY, SUSPECT, SUSPECT_POLL, URLS_PER_ADD
from rove.frontier.query_times import TimesReader
from rove.frontier.reader import CrawlReader
from rove.frontier.records import RESPONDING_LOOKAHEAD, Added, LostVisit, Node, Policy, Reach, Suspicion
from rove.frontier.retries import KnownUrl
from rove.frontier.rows.contents import content_record
from rove.frontier.rows.visits import intact_urls, postponed_rows
from rove.frontier.runs import Vitals
from rove.model.ledger import Content
from rove.model.reasons import BlockReason, PauseCause
from rove.model.samples import Distribution, Sample
from rove.model.urls import NewUrl, NotAccepted, PendingUrl, UrlState
from rove.model.visits import Lease, OriginRecord, VisitResult

EXCLUSIONS_PER_TRANSACTION = 1_000


class PostgresFrontier:
    """The frontier of one process of a crawl."""

    def __init__(
        self,
        database: PostgresDatabase,
        policy: Policy,
        machine: int,
        steady: Callable[[], float] = steady_seconds,
        *,
        node: Node | None = None,
        urls_per_slice: int = SLICE,
    ) -> None:
        """`node` is the data directory, whose row is restored if the database loses it."""
        self._database = database
        self._policy = policy
        self._machine = machine
        self._node = node
        self._run: int | None = None
        self._eras_noted = 0
        self._clock = ClockGuard(database, steady)
        self._settling = PostgresSettling(policy, self._clock, machine)
        self.claiming = PostgresClaiming(database, policy, self._clock, self._settling)
        full = FullDomains(policy.domain_budget, steady)
        self._adding = PostgresAdding(database, self._clock, full)
        self._bulk = BulkSettling(PostgresUrlSlices(database), limit=urls_per_slice)
        self.withdraw = self._bulk.withdraw
        self.reopen = self._bulk.reopen
        self.rejudge = self._bulk.rejudge
        self.reopen_rejected = self._bulk.reopen_rejected
        reader = CrawlReader(PostgresTables(database))
        self.origins = reader.origins
        self.known_urls = reader.known_urls
        self.roots = reader.roots
        self.counts = reader.counts
        self.process = 0
        if database.guard is not None:
            database.guard.limits = self._clock.limits

    async def begin(self, run: int | None) -> None:
        """Join a run; without one, only maintain the frontier."""
        self._run = run

        async def work(session: Session) -> int:
            await lift_caps(session, self._policy.limits_epoch)
            if run is None:
                return 0
            process: int = await session.value("begin_process", run=run, machine=self._machine, pid=os.getpid())
            return process

        await self._clock.watch()
        self.process = await self._database.transaction("begin", work)

    async def claim(self, limit: int) -> list[Lease]:
        return self._noted(await self.claiming.claim(limit, self.process))

    async def claim_responding(self, limit: int) -> list[Lease]:
        return self._noted(await self.claiming.claim_responding(limit, self.process))

    async def claim_among(self, domains: Sequence[int], limit: int) -> list[Lease]:
        return self._noted(await self.claiming.claim_among(domains, limit, self.process))

    def _noted(self, leases: list[Lease]) -> list[Lease]:
        """Remember the visit numbers of leases, which a later database must know."""
        if leases and self._database.guard is not None:
            self._database.guard.file.note_visits(max(lease.token for lease in leases))
        return leases

    async def claim_suspect(self) -> list[Lease]:
        return self._noted(await self.claiming.claim_suspect(self.process))

    async def reserve_suspects(self) -> float | None:
        async def work(session: Session) -> None:
            reserved = [row[0] for row in await session.fetch("lock_suspected", **ALONE)]
            await session.fetch("reserve_domains", domains=reserved)

        due = await self._next_suspect(within=SOME_DAY)
        if due is not None:
            await self._database.transaction("reserve suspects", work)
        return due

    async def more(self, lease: Lease, after: PendingUrl, limit: int) -> list[PendingUrl]:
        rows = await self._database.fetch(
            "more_urls",
            domain=lease.domain,
            priority=after.priority,
            position=after.position,
            limit=limit,
            retried=RETRIED,
            suspect=SUSPECT,
        )
        return intact_urls(rows)

    async def settle(self, visits: Sequence[VisitResult]) -> int:
        if not visits:
            return 0
        return await self._database.transaction("settle", partial(self._settling.settle, visits, self.process))

    async def add(
        self,
        urls: Sequence[NewUrl],
        *,
        refuse_new_domains: NotAccepted | None = None,
        exempt: Collection[tuple[int, int]] = (),
        as_seeds: bool = False,
    ) -> Added:
        assert len(urls) <= URLS_PER_ADD, "a batch, not a file"
        if not urls:
            return Added()
        return await self._adding.add(urls, refuse_new_domains=refuse_new_domains, exempt=exempt, as_seeds=as_seeds)

    async def excess(self) -> int:
        return await self._adding.excess()

    async def drop_excess(self) -> int:
        return await self._adding.drop_excess()

    async def want_robots(self, urls: Sequence[NewUrl]) -> None:
        if urls:
            await self._adding.want_robots(urls)

    async def known_contents(self, hashes: Iterable[int]) -> dict[int, Content]:
        rows = await fetch_contents(self._database, hashes)
        return {row[0]: content_record(row) for row in rows}

    async def states(self, keys: Sequence[tuple[int, int]]) -> dict[tuple[int, int], UrlState]:
        rows = await self._database.batch("url_states", ("domains", "fingerprints"), keys)
        return {(domain, fingerprint): UrlState(state) for domain, fingerprint, state in rows}

    async def put_origins(self, records: Sequence[OriginRecord]) -> set[str]:
        if not records:
            return set()
        work = partial(put_origins, records, self._policy.delay_ms)
        return await self._database.transaction("save robots.txt records", work)

    async def exclude(self, domains: Mapping[int, str]) -> int:
        items, blocked = sorted(domains.items()), 0
        for start in range(0, len(items), EXCLUSIONS_PER_TRANSACTION):
            part = items[start : start + EXCLUSIONS_PER_TRANSACTION]
            pending = await self._database.transaction("exclude", partial(exclude, part))
            blocked += await self._bulk.withdraw_all(pending, UrlState.BLOCKED, BlockReason.EXCLUDED)
        return blocked

    async def include(self, domains: Sequence[int]) -> None:
        await self._database.transaction("include", partial(include, sorted(domains)))

    async def mark_seeds(self, keys: Sequence[tuple[int, int]]) -> int:
        if not keys:
            return 0
        return await self._database.transaction("mark seeds", partial(mark_seeds, keys))

    async def retry(self, urls: Sequence[KnownUrl], retry: int) -> int:
        if not urls:
            return 0
        limits = {"delay": self._policy.delay_ms, **self._clock.limits()}
        return await self._database.transaction("retry", partial(retry_urls, urls, retry, limits))

    async def domain_names(self, after: int, limit: int) -> list[tuple[int, str]]:
        rows = await self._database.fetch("domain_names_after", after=after, limit=limit)
        return [(id, name) for id, name in rows]

    async def record_lost(self, visits: Sequence[LostVisit]) -> list[Suspicion]:
        if not visits:
            return []
        return await self._database.transaction("record lost visits", partial(self._settling.record_lost, visits))

    async def count(self, deltas: Mapping[str, int]) -> None:
        await self._database.run("count", lambda session: add_counters(session, deltas))

    async def next_due(self, *, failing_within: float = 0.0) -> float | None:
        due = await self._next_due_ms(round(failing_within * 1000))
        if due is not None:
            return max(0, due, self.claiming.resting_ms()) / 1000
        suspect_due = await self._next_suspect(within=failing_within)
        return None if suspect_due is None else max(suspect_due, SUSPECT_POLL, self.claiming.resting_ms() / 1000)

    async def _next_suspect(self, *, within: float) -> float | None:
        within_ms = round(within * 1000)
        due: int | None = await self._database.value("next_suspect", within=within_ms, classes=CLASSES, **ALONE)
        return None if due is None else max(0, due) / 1000

    async def due_in(self) -> float | None:
        due = await self._next_due_ms(within=0)
        return None if due is None else due / 1000

    async def _next_due_ms(self, within: int) -> int | None:
        """Return the milliseconds until the next domain is due; failing ones count if they are due within a time."""
        for bound in (self.claiming.floor.value, LOWEST):
            due: int | None = await self._database.value("next_due", bound=bound, within=within)
            if due is not None:
                return due
        return None

    async def last_backoff(self, *, within: float) -> float | None:
        due: int | None = await self._database.value("last_backoff", within=round(within * 1000))
        return None if due is None else max(0, due) / 1000

    async def reach(self) -> Reach:
        async def work(session: Session) -> Reach:
            rows: list[Any] = []
            for bound in (self.claiming.floor.value, LOWEST):
                rows = rows or await session.fetch("responding", bound=bound, limit=RESPONDING_LOOKAHEAD)
            return reach_from(dict(await session.fetch("counters")), responding=[row[0] for row in rows])

        return await self._database.run("reach", work)

    async def responding_due(self, *, within: float, limit: int) -> int:
        bound = max(self.claiming.floor.value, self.claiming.responding_floor.value)
        due: int = await self._database.value("responding_due", bound=bound, within=round(within * 1000), limit=limit)
        return due

    async def pages(self) -> int:
        pages: int = await self._database.value("pages")
        return pages

    async def recover(self, processes: Sequence[int] | None = None, lost: Sequence[LostVisit] = ()) -> int:
        async def work(session: Session) -> int:
            owners = processes
            if owners is None:
                rows = await session.fetch("own_processes", machine=self._machine, process=self.process)
                owners = [row[0] for row in rows]
            await session.fetch("mark_gone", processes=list(owners))
            cut = await session.fetch(
                "cut_leases",
                processes=list(owners),
                domains=[visit.domain for visit in lost],
                delay=self._policy.delay_ms,
                **self._clock.limits(),
            )
            # In the same transaction: another process may claim a domain as soon as the plain delay is over.
            await session.batch("postpone", ("domains", "visits", "earliest"), postponed_rows(lost))
            return len(cut)

        return await self._database.transaction("cut leases", work)

    async def note_alive(self, vitals: Vitals) -> None:
        await self._database.fetch(
            "note_alive",
            process=self.process,
            pages=vitals.pages,
            pages_per_s=vitals.pages_per_second,
            in_flight=vitals.in_flight,
            at_once=vitals.at_once,
            held_by=vitals.held_by,
            paused=vitals.is_paused,
            has_left=vitals.is_leaving,
        )
        await self._clock.watch()
        guard = self._database.guard
        if guard is not None:
            # A connection pooler may have put another server behind our connections.
            await self._database.run("look at the server", guard.check)
            guard.file.save(at_once=vitals.is_leaving)
            if self._eras_noted != guard.changes:
                self._eras_noted = guard.changes
                await self._restore()

    async def _restore(self) -> None:
        """Insert the rows of this process again, which the database may have lost."""
        self.claiming.forget_floors()
        if self._node is not None:
            node = self._node
            await self._database.fetch(
                "restore_machine", id=self._machine, key=node.key, host=node.host, path=node.path
            )
        await self._database.fetch("restore_run", id=self._run, wall=time.time())
        await self._database.fetch(
            "restore_process", id=self.process, run=self._run, machine=self._machine, pid=os.getpid()
        )

    def connections(self) -> Mapping[str, int]:
        return self._database.connections()

    def query_times(self, reader: TimesReader) -> Mapping[str, Distribution]:
        return self._database.timings.take_recent(reader)

    @property
    def node(self) -> str:
        return "" if self._node is None else self._node.name

    async def add_samples(self, samples: Sequence[Sample]) -> None:
        await add_samples(self._database, self._machine, samples)

    async def roll_up_samples(self, now: int) -> bool:
        return await roll_up(self._database, now)

    @property
    def outages(self) -> int:
        return self._database.outages

    @property
    def eras(self) -> int:
        return 0 if self._database.guard is None else self._database.guard.changes

    def troubles(self) -> dict[str, str]:
        rest = resting_text(self.claiming.resting_ms())
        return {PauseCause.DATABASE: self._database.trouble or self._database.waiting, PauseCause.REST: rest}

    def stop_waiting(self, seconds: float) -> None:
        self._database.stop_waiting(seconds)
