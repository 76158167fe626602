"""The embedded frontier: claim, settle and add on one SQLite file.

The queries are in queries.sql, with their reasons. The other modules of this package combine them into transactions.
docs/states.md draws the states of domains and URLs.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from rove.frontier.bulk_settle import SLICE, BulkSettling
from rove.frontier.counters import reach_from
from rove.frontier.era_file import EraFile
from rove.frontier.eras import Rest, resting_text
from rove.frontier.fresh_first import FreshFirst
from rove.frontier.priority import RETRIED, SOME_DAY, SUSPECT, SUSPECT_POLL, URLS_PER_ADD
from rove.frontier.query_times import TimesReader
from rove.frontier.reader import CrawlReader
from rove.frontier.records import RESPONDING_LOOKAHEAD, Added, LostVisit, Policy, Reach, Suspicion
from rove.frontier.retries import KnownUrl
from rove.frontier.rows.visits import intact_urls, postponed_rows
from rove.frontier.runs import Vitals
from rove.frontier.sqlite.add import SqliteAdding
from rove.frontier.sqlite.bulk_settle import SqliteUrlSlices, exclude, include
from rove.frontier.sqlite.claim import FindUrls, claim, due_among, head_urls, longest_due, longest_due_responding
from rove.frontier.sqlite.counters import add_counters
from rove.frontier.sqlite.database import Row, SqliteDatabase
from rove.frontier.sqlite.eras import read_rest
from rove.frontier.sqlite.origins import put_origins
from rove.frontier.sqlite.reader import SqliteTables
from rove.frontier.sqlite.retry import mark_seeds, retry_urls
from rove.frontier.sqlite.samples import add_samples, machine_name, roll_up
from rove.frontier.sqlite.schedule import lift_caps
from rove.frontier.sqlite.settle import record_lost, settle
from rove.frontier.sqlite.suspects import due_suspect, next_suspect, reserve_suspects, suspect, suspect_urls
from rove.model.reasons import BlockReason, PauseCause
from rove.model.samples import Distribution, Sample
from rove.model.urls import NewUrl, NotAccepted, PendingUrl, UrlState
from rove.model.visits import Lease, OriginRecord, VisitResult


class SqliteFrontier:
    """The frontier of one process of a crawl that runs on one machine."""

    def __init__(
        self,
        database: SqliteDatabase,
        policy: Policy,
        clock: Callable[[], int] | None = None,
        *,
        era_file: EraFile | None = None,
        urls_per_slice: int = SLICE,
    ) -> None:
        """`clock` replaces the crawl's clock, which is otherwise read when the frontier begins.

        `era_file` remembers the visits that were given out.
        """
        self._era_file = era_file or EraFile()
        self._rest: Rest | None = None
        self._database = database
        self._policy = policy
        self._clock = clock
        self._turns = FreshFirst()
        self._adding = SqliteAdding(database, policy.domain_budget, self._now)
        self._bulk = BulkSettling(SqliteUrlSlices(database), limit=urls_per_slice)
        self.withdraw = self._bulk.withdraw
        self.reopen = self._bulk.reopen
        self.rejudge = self._bulk.rejudge
        self.reopen_rejected = self._bulk.reopen_rejected
        reader = CrawlReader(SqliteTables(database, self._now))
        self.known_contents = reader.contents
        self.origins = reader.origins
        self.known_urls = reader.known_urls
        self.roots = reader.roots
        self.counts = reader.counts
        self.process = 0
        self.outages = 0
        self.eras = 0
        """Always 0: an older file is noticed at the start."""

    async def begin(self, run: int | None) -> None:
        """Join a run; without one, only maintain the frontier."""

        def work() -> None:
            self._clock = self._clock or self._database.clock()
            self._rest = read_rest(self._database, self._policy)
            with self._database.transaction():
                lift_caps(self._database, self._policy.limits_epoch)
                if run is not None:
                    rows = self._database.execute("begin_process", run=run, pid=os.getpid(), now=self._now())
                    self.process = rows[0][0]

        await self._database.run(work)

    async def claim(self, limit: int) -> list[Lease]:
        return await self._claim(limit, partial(longest_due, self._database, self._turns), head_urls)

    async def claim_responding(self, limit: int) -> list[Lease]:
        return await self._claim(limit, partial(longest_due_responding, self._database), head_urls)

    async def claim_among(self, domains: Sequence[int], limit: int) -> list[Lease]:
        return await self._claim(limit, partial(due_among, self._database, domains), head_urls)

    async def claim_suspect(self) -> list[Lease]:
        return await self._claim(1, lambda _, now: due_suspect(self._database, now), suspect_urls)

    async def reserve_suspects(self) -> float | None:
        due = await self._next_suspect(within=SOME_DAY)
        if due is not None:
            await self._database.write(lambda: reserve_suspects(self._database, self._now()))
        return due

    async def _claim(self, limit: int, find_due: Callable[[int, int], list[Row]], find_urls: FindUrls) -> list[Lease]:
        if self._resting_ms():
            return []
        leases = await self._database.write(
            lambda: claim(
                self._database,
                limit,
                find_due,
                partial(find_urls, self._database),
                policy=self._policy,
                process=self.process,
                now=self._now(),
                rest=self._rest,
            )
        )
        if leases:
            self._era_file.note_visits(max(lease.token for lease in leases))
        return leases

    def _resting_ms(self) -> int:
        """Return for how long no domain at all may be claimed."""
        return 0 if self._rest is None else max(0, self._rest.end() - self._now())

    async def more(self, lease: Lease, after: PendingUrl, limit: int) -> list[PendingUrl]:
        rows = await self._database.fetch(
            "more_urls",
            domain=lease.domain,
            priority=after.priority,
            position=after.position,
            now=self._now(),
            limit=limit,
            retried=RETRIED,
            suspect=SUSPECT,
        )
        return intact_urls(rows)

    async def settle(self, visits: Sequence[VisitResult]) -> int:
        if not visits:
            return 0
        return await self._database.write(
            lambda: settle(self._database, visits, policy=self._policy, process=self.process, now=self._now())
        )

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
        return await self._database.run(
            lambda: self._adding.add(urls, refuse_new_domains=refuse_new_domains, exempt=exempt, as_seeds=as_seeds)
        )

    async def excess(self) -> int:
        return await self._database.run(self._adding.excess)

    async def drop_excess(self) -> int:
        return await self._database.run(self._adding.drop_excess)

    async def want_robots(self, urls: Sequence[NewUrl]) -> None:
        if urls:
            await self._database.run(lambda: self._adding.want_robots(urls))

    async def states(self, keys: Sequence[tuple[int, int]]) -> dict[tuple[int, int], UrlState]:
        rows = await self._database.run(lambda: self._database.batch("url_states", list(keys)))
        return {(domain, fingerprint): UrlState(state) for domain, fingerprint, state in rows}

    async def put_origins(self, records: Sequence[OriginRecord]) -> set[str]:
        return await self._database.write(
            lambda: put_origins(self._database, records, delay=self._policy.delay_ms, now=self._now())
        )

    async def exclude(self, domains: Mapping[int, str]) -> int:
        with_pending = await self._database.write(lambda: exclude(self._database, domains))
        return await self._bulk.withdraw_all(with_pending, UrlState.BLOCKED, BlockReason.EXCLUDED)

    async def include(self, domains: Sequence[int]) -> None:
        await self._database.write(lambda: include(self._database, domains))

    async def mark_seeds(self, keys: Sequence[tuple[int, int]]) -> int:
        return await self._database.write(lambda: mark_seeds(self._database, keys))

    async def retry(self, urls: Sequence[KnownUrl], retry: int) -> int:
        return await self._database.write(
            lambda: retry_urls(self._database, urls, retry, delay=self._policy.delay_ms, now=self._now())
        )

    async def domain_names(self, after: int, limit: int) -> list[tuple[int, str]]:
        rows = await self._database.fetch("domain_names_after", after=after, limit=limit)
        return [(id, name) for id, name in rows]

    async def record_lost(self, visits: Sequence[LostVisit]) -> list[Suspicion]:
        def work() -> list[Suspicion]:
            changes: Counter[str] = Counter()
            now = self._now()
            record_lost(self._database, visits, changes, now=now)
            suspicions = suspect(self._database, visits, changes, now=now)
            add_counters(self._database, changes)
            return suspicions

        return await self._database.write(work)

    async def count(self, deltas: Mapping[str, int]) -> None:
        await self._database.write(lambda: add_counters(self._database, deltas))

    async def next_due(self, *, failing_within: float = 0.0) -> float | None:
        due = await self._seconds_until("next_due", failing_within)
        if due is not None:
            return max(due, self._resting_ms() / 1000)
        suspect_due = await self._next_suspect(within=failing_within)
        return None if suspect_due is None else max(suspect_due, SUSPECT_POLL, self._resting_ms() / 1000)

    async def _next_suspect(self, *, within: float) -> float | None:
        now = self._now()
        until = now + round(within * 1000)
        due = await self._database.run(lambda: next_suspect(self._database, until=until, now=now))
        return None if due is None else max(0, due - now) / 1000

    async def due_in(self) -> float | None:
        now = self._now()
        rows = await self._database.fetch("next_due", until=now)
        return (rows[0][0] - now) / 1000 if rows else None

    async def last_backoff(self, *, within: float) -> float | None:
        return await self._seconds_until("last_backoff", within)

    async def _seconds_until(self, query: str, within: float) -> float | None:
        """Return the seconds until the time that a query returns, given a time `within` seconds from now."""
        now = self._now()
        rows = await self._database.fetch(query, until=now + round(within * 1000))
        return max(0, rows[0][0] - now) / 1000 if rows else None

    async def reach(self) -> Reach:
        def work() -> Reach:
            responding = [row[0] for row in self._database.execute("responding", limit=RESPONDING_LOOKAHEAD)]
            return reach_from(dict(self._database.execute("counters")), responding=responding)

        return await self._database.run(work)

    async def responding_due(self, *, within: float, limit: int) -> int:
        rows = await self._database.fetch("responding_due", until=self._now() + round(within * 1000), limit=limit)
        return int(rows[0][0])

    async def pages(self) -> int:
        rows = await self._database.fetch("pages")
        return int(rows[0][0]) if rows else 0

    async def recover(self, processes: Sequence[int] | None = None, lost: Sequence[LostVisit] = ()) -> int:
        def work() -> int:
            owners = processes
            if owners is None:
                rows = self._database.execute("other_processes", process=self.process)
                owners = [row[0] for row in rows]
            self._database.batch("mark_gone", list(owners))
            cut = self._database.batch("cut_leases", list(owners), now=self._now(), delay=self._policy.delay_ms)
            # In the same transaction: another process may claim a domain as soon as the plain delay is over.
            self._database.batch("postpone", postponed_rows(lost))
            return len(cut)

        return await self._database.write(work)

    async def note_alive(self, vitals: Vitals) -> None:
        await self._database.write(
            lambda: self._database.execute(
                "note_alive",
                now=self._now(),
                process=self.process,
                pages=vitals.pages,
                pages_per_s=vitals.pages_per_second,
                in_flight=vitals.in_flight,
                at_once=vitals.at_once,
                held_by=vitals.held_by,
                paused=vitals.is_paused,
                has_left=vitals.is_leaving,
            )
        )

        self._era_file.save(at_once=vitals.is_leaving)

    def connections(self) -> Mapping[str, int]:
        return {}

    def query_times(self, reader: TimesReader) -> Mapping[str, Distribution]:
        return self._database.timings.take_recent(reader)

    def troubles(self) -> dict[str, str]:
        return {PauseCause.REST: resting_text(self._resting_ms())}

    @property
    def node(self) -> str:
        return machine_name(self._database)

    async def add_samples(self, samples: Sequence[Sample]) -> None:
        await self._database.run(lambda: add_samples(self._database, samples))

    async def roll_up_samples(self, now: int) -> bool:
        return await self._database.run(lambda: roll_up(self._database, now))

    def stop_waiting(self, seconds: float) -> None:
        """Do nothing: a file is always reachable."""

    def _now(self) -> int:
        assert self._clock is not None, "the frontier has not begun"
        return self._clock()
