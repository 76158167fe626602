"""THE loop: claim -> gate -> fetch -> parse -> store -> add -> settle. Read this first.

One event loop does it all. A claimer keeps a short queue of leased domains, so that no fetch slot waits for the
database; each slot takes a lease and makes a visit (visit.py); a writer takes finished visits in groups and writes
them down in the order that makes a kill harmless: pages stored and flushed, then links added, then visits settled.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from rove.config import Settings
from rove.crawl.inflight_log import InflightLog
from rove.crawl.limits import RemainingLimits
from rove.crawl.pressure import Pressure
from rove.crawl.progress import Progress
from rove.crawl.requests import CrawlContext
from rove.crawl.seen import SeenSet
from rove.crawl.visit import Visit
from rove.crawl.visit_record import VisitRecord
from rove.crawl.writer import GROUP, GroupWriter
from rove.errors import RoveError
from rove.fetch.contract import Fetcher
from rove.frontier.contract import Frontier, Vitals
from rove.model.reasons import FailReason
from rove.model.urls import UrlState
from rove.model.visits import Lease, OriginRecord
from rove.parse.reader import PageReader
from rove.policy.constants import VISIT_BUDGET
from rove.policy.exclusions import Exclusions
from rove.policy.gate import Gate
from rove.resources.memory import Share
from rove.store.contract import Keep, Store
from rove.urls.origin import origin_of

MAX_UNSETTLED_VISITS = 2 * GROUP
"""Visits that may wait to be settled, what is being written included, before claiming pauses."""
MAX_CLAIM = 256
CLAIM_WHILE_FEEDING = 25
REST_WHILE_FEEDING = 0.25
"""While seeds are being loaded a process claims so many at a time, seconds apart: a hundred visits a second. Who loads
them needs the machine more: a crawl at full speed beside it takes half of it away."""
GRACE_SECONDS = 5.0
"""What fetches in flight get when the crawl is stopped."""
LONGEST_NAP = 0.5
ALIVE_SECONDS = 2.0
"""How often a crawl notes that it is still running, whatever else it does."""

log = logging.getLogger(__name__)

Leased = tuple[Lease, dict[str, OriginRecord | None]]
FollowExclusions = Callable[[Callable[[Exclusions], None]], Coroutine[Any, Any, None]]


class Ending(enum.StrEnum):
    """Why a crawl came to its end."""

    EXHAUSTED = "exhausted"
    MAX_PAGES = "page limit reached"
    MAX_DURATION = "time limit reached"
    STOPPED = "stopped"
    CHANGED = "settings changed"


class _UnderWay:
    """A visit that can be cut, as asyncio.timeout would do it, at a fraction of the cost."""

    __slots__ = ("_is_cut", "_task")

    def __init__(self, task: asyncio.Task[Any]) -> None:
        """`task` makes the visit."""
        self._task = task
        self._is_cut = False

    def cut(self) -> None:
        """End the visit, and not the task."""
        if not self._is_cut:
            self._is_cut = True
            self._task.cancel()

    def over(self) -> bool:
        """The visit has ended, however that was; whether its task is to end too, if it was cancelled."""
        was_cut, self._is_cut = self._is_cut, False
        return not was_cut or self._task.uncancel() > 0


class Crawl:
    """A crawl in this process."""

    def __init__(
        self,
        *,
        frontier: Frontier,
        fetcher: Fetcher,
        store: Store,
        gate: Gate,
        reader: PageReader,
        inflight_log: InflightLog,
        settings: Settings,
        concurrency: int,
        progress: Progress,
        clock: Callable[[], float],
        remaining_limits: RemainingLimits,
        all_fed: Callable[[], Awaitable[bool]],
        follow_exclusions: FollowExclusions,
        machine: Pressure,
    ) -> None:
        """`concurrency`: this process's share of the fetches; `all_fed`: whether all seeds are in the frontier.

        `follow_exclusions` runs for as long as the crawl does, and tells when other exclusions hold.
        """
        self._frontier = frontier
        self._follow_exclusions = follow_exclusions
        self._machine = machine
        self._settings = settings
        self._concurrency = concurrency
        self._clock = clock
        self.progress = progress
        self.remaining_limits = remaining_limits
        self._all_fed = all_fed
        seen = SeenSet()
        self._context = CrawlContext(
            frontier=frontier,
            fetcher=fetcher,
            gate=gate,
            reader=reader,
            inflight_log=inflight_log,
            seen=seen,
            delay=settings.delay,
            max_body=settings.max_body,
            redirect_hops=settings.redirect_hops,
            sitemaps=settings.sitemaps,
            keep_raw=settings.store != Keep.TEXT,
            clock=clock,
            is_stopping=lambda: self._ending is not None,
            on_busy=machine.note_failure,
        )
        self._writer = GroupWriter(
            store=store,
            frontier=frontier,
            clock=clock,
            inflight_log=inflight_log,
            seen=seen,
            delay=settings.delay,
            only_known_domains=settings.seeds_only,
            on_settled=self._count,
        )
        self._leased: asyncio.Queue[Leased] = asyncio.Queue()
        self._visiting: dict[VisitRecord, _UnderWay] = {}
        self._no_visits = asyncio.Event()
        self._no_visits.set()
        self._work = asyncio.Event()
        """Something changed that may let the claimer go on."""
        self._ending: Ending | None = None
        self._ended = asyncio.Event()
        self._fed = False
        self._pages_left: int | None = None
        self._outages = frontier.outages

    def stop(self, ending: Ending = Ending.STOPPED) -> None:
        """End the crawl in good order."""
        if self._ending is None:
            self._ending = ending
            self._frontier.stop_waiting(2 * GRACE_SECONDS)
            self._ended.set()
            self._work.set()

    def kill(self) -> None:
        """Nothing of it outlives this process."""

    async def run(self, feed: Callable[[], Awaitable[None]] | None = None) -> Ending:
        """Crawl until there is nothing left, a limit is reached or `stop` is called.

        `feed` loads the seeds; without it somebody else does.
        """
        self._machine.look()
        writer = asyncio.create_task(self._writer.run())
        claimer = asyncio.create_task(self._claim_loop())
        feeder = asyncio.create_task(self._feed(feed) if feed is not None else asyncio.sleep(0))
        clock = asyncio.create_task(self._watch_clock())
        follower = asyncio.create_task(self._follow_exclusions(self._exclude))
        slots = [asyncio.create_task(self._slot(number)) for number in range(self._concurrency)]
        ended = asyncio.create_task(self._ended.wait())
        workers = [writer, claimer, feeder, clock, follower, *slots]
        try:
            await _first_failure_or([ended], workers)
        finally:
            self.stop()
            await _finish(feeder, clock, follower)
            await self._end_visits(claimer, slots)
            failure = await self._end_writing(writer)
        for task in (*workers, ended):
            if task.done() and not task.cancelled() and task.exception() is not None:
                failure = failure or task.exception()
        if failure is not None:
            raise failure
        assert self._ending is not None, "the crawl has ended"
        return self._ending

    async def _feed(self, feed: Callable[[], Awaitable[None]]) -> None:
        await feed()
        self._work.set()

    def fed_some(self) -> None:
        """Seeds were added: there may be something to claim."""
        self._work.set()

    # Claiming

    async def _claim_loop(self) -> None:
        while self._ending is None:
            self._work.clear()
            room = 0 if await self._must_wait() else self._room()
            if room <= 0:
                await self._nap(LONGEST_NAP)
                continue
            is_fed = await self._is_fed()
            if not is_fed:
                room = min(room, CLAIM_WHILE_FEEDING)
            claimed = await self._claim(room)
            if claimed < room:
                await self._wait_for_due()
            elif not is_fed:
                await _wait(self._ended, REST_WHILE_FEEDING)

    async def _must_wait(self) -> bool:
        """Whether it is not the time to claim, however much room there is."""
        if self._machine.is_paused:
            return True
        if self._outages != self._frontier.outages:
            # The database was away: what is held goes in before anything new is taken.
            if self._writer.unsettled:
                return True
            self._outages = self._frontier.outages
        if self._settings.limits.max_pages is not None:
            self._pages_left = self.remaining_limits.pages_left(await self._frontier.pages())
        # With --seeds-only, links into seeds not loaded yet would be taken for links out of scope.
        return self._settings.seeds_only and not await self._is_fed()

    async def _is_fed(self) -> bool:
        self._fed = self._fed or await self._all_fed()
        return self._fed

    async def _claim(self, room: int) -> int:
        claimed_at = self._clock()
        leases = await self._frontier.claim(room)
        returned_at = self._clock()
        origins_of = {lease.token: _origins_of(lease) for lease in leases}
        held: dict[tuple[int, str], OriginRecord | None] = {
            (lease.domain, origin): None for lease in leases for origin in origins_of[lease.token]
        }
        try:
            for record in await self._frontier.origins(held):
                held[record.domain, record.origin] = record
        except RoveError:
            self._give_back(leases)
            raise
        for lease in leases:
            # By the moment of the return, not of the claim: what the ledger says is then never later than it was.
            lease = lease.replace(
                deadline=claimed_at + VISIT_BUDGET,
                clock_offset=lease.claimed_ms / 1000 - returned_at,
            )
            origins = {origin: held[lease.domain, origin] for origin in origins_of[lease.token]}
            self._leased.put_nowait((lease, origins))
        return len(leases)

    def _give_back(self, leases: Sequence[Lease]) -> None:
        """End leases that were not used."""
        for lease in leases:
            self._writer.put(VisitRecord(lease))

    def _room(self) -> int:
        """How many domains to lease now: enough for the slots and a short queue, no more than the limits allow."""
        concurrency = self._machine.throttle.allowed
        under_way = self._leased.qsize() + self.progress.in_flight
        ahead = concurrency + max(concurrency // 4, 1) - under_way
        if (
            not concurrency
            or self._leased.qsize() > concurrency // 8
            or self._writer.unsettled >= MAX_UNSETTLED_VISITS
        ):
            return 0
        if self._pages_left is not None:
            if self._pages_left <= 0:
                self.stop(Ending.MAX_PAGES)
            ahead = min(ahead, self._pages_left - under_way - self._writer.unsettled)
        return min(ahead, MAX_CLAIM)

    async def _wait_for_due(self) -> None:
        """Nothing more is due: wait until something is, or find that nothing ever will be."""
        due = await self._frontier.next_due()
        is_quiet = not (self._leased.qsize() or self._visiting or self._writer.unsettled)
        if due is None and is_quiet and await self._is_fed():
            # Asked again, now that all seeds are in: whoever loads them may have added the last in between.
            due = await self._frontier.next_due()
            if due is None and not self._work.is_set():
                self.stop(Ending.EXHAUSTED)
                return
        await self._nap(LONGEST_NAP if due is None else min(max(due, 0.01), LONGEST_NAP))

    async def _nap(self, seconds: float) -> None:
        await _wait(self._work, seconds)

    # Visiting

    async def _slot(self, number: int) -> None:
        machine = self._machine
        task = asyncio.current_task()
        assert task is not None, "a slot is a task"
        while True:
            if number >= machine.throttle.allowed:
                await machine.throttle.turn(number)
            lease, origins = await self._leased.get()
            if self._clock() < lease.deadline:
                await self._visit(task, VisitRecord(lease, Share(machine.memory)), origins)
                machine.throttle.visited()
            else:
                self._give_back([lease])

    async def _visit(
        self,
        task: asyncio.Task[Any],
        journal: VisitRecord,
        origins: dict[str, OriginRecord | None],
    ) -> None:
        self.progress.in_flight += 1
        self._no_visits.clear()
        under_way = self._visiting[journal] = _UnderWay(task)
        try:
            await Visit(self._context, journal, origins).run()
        except RoveError:
            raise
        except asyncio.CancelledError:
            if under_way.over():
                raise
            log.warning("a visit to %s was cut", journal.lease.name)
        except Exception:
            # A page must not end the crawl, nor come back for ever.
            log.exception("internal error in a visit to %s", journal.lease.name)
            self.progress.errors["internal"] += 1
            journal.settle(
                journal.lease.urls[0].fingerprint, UrlState.FAILED, FailReason.INTERNAL_ERROR
            )
        finally:
            under_way.over()
            self.progress.in_flight -= 1
            del self._visiting[journal]
            if not self._visiting:
                self._no_visits.set()
            journal.account()
            self._writer.put(journal)
            if self._leased.qsize() <= self._concurrency // 8:
                self._work.set()

    def _count(self, group: Sequence[VisitRecord]) -> None:
        """A group is settled: count it, and let the claimer look again."""
        self._work.set()
        progress = self.progress
        for journal in group:
            progress.visits += journal.asked
            progress.pages += len(journal.pages)
            progress.requests += len(journal.requests)
            for row in journal.requests:
                progress.bytes += row.size
                if row.error:
                    progress.errors[row.error] += 1

    def _exclude(self, exclusions: Exclusions) -> None:
        """From now on these are never touched; what is under way there is cut."""
        self._context.gate.exclusions = exclusions
        for journal, under_way in self._visiting.items():
            if journal.host and exclusions.covers(journal.host):
                under_way.cut()

    # Ending

    async def _watch_clock(self) -> None:
        limit = self._settings.limits.max_duration
        noted = self._clock()
        while True:
            now = self._clock()
            if now - noted > ALIVE_SECONDS:
                noted = now
                await self._frontier.note_alive(self._vitals())
            self.progress.mark(now)
            self.progress.queued = self._leased.qsize()
            self._machine.look()
            self.progress.trouble = self._machine.trouble
            self._cut_overdue(now)
            left = self.remaining_limits.seconds_left()
            if left is not None and left <= 0:
                self.stop(Ending.MAX_DURATION)
            await asyncio.sleep(1.0 if limit is None or left is None else max(0.05, min(1.0, left)))

    def _vitals(self, *, is_leaving: bool = False) -> Vitals:
        return Vitals(
            pages=self.progress.pages,
            pages_per_second=0.0 if is_leaving else self.progress.pages_per_second(),
            in_flight=self.progress.in_flight,
            is_leaving=is_leaving,
        )

    def _cut_overdue(self, now: float) -> None:
        """Abort visits past their lease: after a suspend, the event loop's own timers are late."""
        for journal, under_way in self._visiting.items():
            if now > journal.lease.deadline:
                under_way.cut()

    async def _end_visits(
        self, claimer: asyncio.Task[None], slots: Sequence[asyncio.Task[None]]
    ) -> None:
        """Let fetches in flight come to their end, for a while; then cut them. Leases not used are given back."""
        await asyncio.wait([claimer])
        self._give_back([self._leased.get_nowait()[0] for _ in range(self._leased.qsize())])
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await self._no_visits.wait()
        await _finish(*slots)

    async def _end_writing(self, writer: asyncio.Task[None]) -> BaseException | None:
        """Write what is left; what went wrong, if anything did."""
        self._writer.finish()
        await asyncio.wait([writer])
        failure = writer.exception()
        if failure is not None:
            await self._writer.salvage()
        else:
            await self._frontier.note_alive(self._vitals(is_leaving=True))
        return failure


async def _wait(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, but no longer than this."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def _origins_of(lease: Lease) -> set[str]:
    return {origin_of(url.url) for url in lease.urls}


async def _first_failure_or(
    ends: Sequence[asyncio.Task[bool]], workers: Sequence[asyncio.Task[None]]
) -> None:
    """Wait until one of `ends` is done or a worker has failed."""
    waiting: set[asyncio.Task[bool] | asyncio.Task[None]] = {*ends, *workers}
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if any(task in done for task in ends) or any(task.exception() for task in done):
            return


async def _finish(*tasks: asyncio.Task[None]) -> None:
    """Cancel tasks and wait until they are gone."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
