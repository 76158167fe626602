"""The crawl loop of one process: claim -> visit -> write -> settle. Read this first.

Everything runs in one event loop.

- The claimer (claimer.py) leases domains that are due and keeps a short queue of them.
- For each lease, a slot (slots.py) makes a visit (visit.py): it checks robots.txt, fetches one page and collects its
  links. How many visits may be in flight is decided once a second (steering.py).
- The outage watch (outage.py) holds back visits without a response until it is known whether the sites or this
  machine's connection failed.
- The writer (writer.py) takes finished visits in batches. It stores their pages, adds their links to the frontier and
  settles the visits, in this order, so that a kill at any moment loses nothing.
- The shutdown (shutdown.py) ends the crawl: visits in flight may finish, unused leases are given back, and
  everything that is finished is written.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol

from rove.crawl.accounts import accounts_of
from rove.crawl.backoff_wait import BackoffWait
from rove.crawl.claimer import Claimer
from rove.crawl.claims import DueDomains, DueSuspects
from rove.crawl.context import CrawlContext
from rove.crawl.limits import RemainingLimits
from rove.crawl.meter import database_figures, files_figures
from rove.crawl.outage import OutageWatch
from rove.crawl.progress import Counters
from rove.crawl.shutdown import Ending, cancel, raise_failure
from rove.crawl.slots import Slots
from rove.crawl.visit_record import VisitRecord
from rove.crawl.writer import BatchWriter
from rove.frontier.query_times import TimesReader
from rove.frontier.runs import Vitals
from rove.model.reasons import PauseCause
from rove.model.samples import Sample
from rove.policy.exclusions import Exclusions
from rove.policy.outage import OutageRules
from rove.resources.open_files import FileKind

HEARTBEAT_SECONDS = 2.0
"""How often a process tells the frontier that it is alive."""
CHECK_SECONDS = 1.0
"""How often a process checks limits, deadlines and resources."""
PAUSED = "paused by 'rove pause'"

COUNT_FILES_SECONDS = 10.0
"""How often a process counts its open files, which takes a millisecond where there are thousands."""

FollowExclusions = Callable[[Callable[[Exclusions], None]], Coroutine[Any, Any, None]]


class Loader(Protocol):
    """Loads the seeds of a crawl into the frontier."""

    async def run(self, on_added: Callable[[], None]) -> None:
        """Load all seeds that are left; call `on_added` after each batch."""


class Crawl:
    """A crawl in this process."""

    def __init__(
        self,
        context: CrawlContext,
        *,
        remaining_limits: RemainingLimits,
        all_seeds_loaded: Callable[[], Awaitable[bool]],
        are_rules_applied: Callable[[], Awaitable[bool]],
        follow_exclusions: FollowExclusions,
        on_news: Callable[[str], None],
        outage_rules: OutageRules,
        backoffs_end: float,
        is_trial: bool = False,
    ) -> None:
        """Prepare the parts of the loop.

        `all_seeds_loaded` tells whether the frontier has all seeds that it will ever get, `are_rules_applied` whether
        the queue is in line with the rules. `follow_exclusions` runs as
        long as the crawl and passes on each new list of exclusions. `on_news` shows a sentence to the user. Until
        `backoffs_end`, by the steady clock, the crawl waits for sites that kept failing in an earlier run. With
        `is_trial`, it tries suspects, one at a time, and ends when none is due.
        """
        self._context = context
        self.progress = context.progress
        self._shutdown = context.shutdown
        self._remaining_limits = remaining_limits
        self._follow_exclusions = follow_exclusions
        self._counted_files_at = float("-inf")
        self._files: Counter[FileKind] = Counter()
        self._writer = BatchWriter(context, on_settled=self._count_settled)
        self._outage = OutageWatch(context, self._writer, on_news=on_news, rules=outage_rules)
        backoffs = BackoffWait(context.frontier, until=backoffs_end, clock=context.clock, on_news=on_news)
        self._claimer = Claimer(
            context,
            self._writer,
            self._outage,
            remaining_limits=remaining_limits,
            all_seeds_loaded=all_seeds_loaded,
            are_rules_applied=are_rules_applied,
            claims=DueSuspects(context.frontier) if is_trial else DueDomains(context.frontier, backoffs),
            on_queued=lambda: self._slots.fill(),
            cancel_slowest=lambda: self._slots.cancel_slowest(context.clock()),
        )
        self._slots = Slots(context, self._claimer, self._outage)

    def stop(self, ending: Ending = Ending.STOPPED) -> None:
        """Shut the crawl down."""
        self._shutdown.begin(ending)
        self._claimer.wake()

    def set_paused(self, is_paused: bool) -> None:
        """Start no new visits, or start them again. Visits in flight finish, and limits and stops keep working."""
        self._claimer.set_paused(is_paused)

    def count(self, counters: Counters) -> None:
        """Add what another process has done to the progress."""
        self.progress.update(self.progress.snapshot() + counters)

    def accounts(self) -> dict[str, str]:
        """Return what this process holds, for a report. Another thread may call this."""
        return accounts_of(self._context, self._claimer, self._writer, self._outage)

    def kill(self) -> None:
        """Do nothing: no part of this crawl outlives the process."""

    def take_sample(self) -> Sample:
        """Return what this process has done since the last call, and its state now."""
        progress, frontier, process = self.progress, self._context.frontier, self._context.meter.process
        gauges = {
            "processes": 1,
            "in_flight": progress.in_flight,
            "at_once": progress.at_once,
            "queued": self._claimer.queued,
            "unsettled": self._writer.unsettled,
            **dict.fromkeys((f"held_by.{reason}" for reason in progress.held_by), 1),
            **dict.fromkeys((f"paused.{cause}" for cause in progress.troubles), 1),
            f"rss.{process}": progress.resident,
            "lag.longest": self._context.take_longest_lag(),
            **database_figures(frontier),
            **files_figures(self._files),
        }
        return self._context.meter.take(gauges, frontier.query_times(TimesReader.SAMPLES))

    async def run(self, seed_loader: Loader | None = None) -> Ending:
        """Crawl until nothing is left, a limit is reached or `stop` is called.

        Without a seed loader, another process loads the seeds.
        """
        self._context.pressure.check()
        self._note_resources(self._context.clock())  # the first report says how much memory the process has
        writer = asyncio.create_task(self._writer.run())
        claimer = asyncio.create_task(self._claimer.run())
        slots = asyncio.create_task(self._slots.run())
        helpers = [
            asyncio.create_task(self._watch()),
            asyncio.create_task(self._watch_frontier()),
            asyncio.create_task(self._keep_reporting_alive()),
            asyncio.create_task(self._outage.run()),
            asyncio.create_task(self._follow_exclusions(self._exclude)),
        ]
        if seed_loader is not None:
            helpers.append(asyncio.create_task(self._load_seeds(seed_loader)))
        tasks = [writer, claimer, slots, *helpers]
        try:
            await self._shutdown.wait(tasks)
        finally:
            self.stop()
            self.progress.is_stopping = True
            await cancel(helpers)
            await asyncio.wait([claimer])
            self._claimer.give_back_queue()
            await self._slots.finish()
            await cancel([slots])
            self._outage.close()
            await self._finish_writing(writer)
        raise_failure(tasks)
        assert self._shutdown.ending is not None, "the shutdown has begun"
        return self._shutdown.ending

    async def _load_seeds(self, seed_loader: Loader) -> None:
        await seed_loader.run(self._claimer.wake)
        self._claimer.wake()

    def _exclude(self, exclusions: Exclusions) -> None:
        self._context.gate.exclusions = exclusions
        self._slots.cancel_excluded(exclusions)

    def _count_settled(self, batch: Sequence[VisitRecord]) -> None:
        progress = self.progress
        for record in batch:
            progress.visits += record.requested
            progress.pages += len(record.pages)
            progress.count_requests(record.requests)
        self._claimer.wake()

    async def _watch(self) -> None:
        """Check limits, deadlines and resources about once a second. Nothing here waits for the frontier."""
        context = self._context
        while True:
            now, is_paused = context.clock(), self._claimer.is_paused
            self.progress.mark(now)
            self.progress.queued = self._claimer.queued
            context.pressure.check(are_waiting=self._claimer.are_waiting)
            self._note_resources(now)
            self.progress.set_trouble(PauseCause.OPERATOR, PAUSED if is_paused else "")
            self.progress.set_trouble(PauseCause.OUTAGE, self._outage.trouble)
            self._slots.cancel_overdue(now)
            seconds_left = self._remaining_limits.seconds_left()
            if seconds_left is not None and seconds_left <= 0:
                self.stop(Ending.MAX_DURATION)
            until_limit = CHECK_SECONDS if seconds_left is None else max(0.05, seconds_left)
            await asyncio.sleep(min(CHECK_SECONDS, until_limit))

    async def _keep_reporting_alive(self) -> None:
        """Tell the frontier every few seconds that this process is alive, and at once when it pauses or continues."""
        context = self._context
        last_heartbeat, was_paused = context.clock(), False
        while True:
            now, is_paused = context.clock(), self._claimer.is_paused
            # `rove pause` waits for the heartbeat that says that this process has paused.
            if now - last_heartbeat > HEARTBEAT_SECONDS or is_paused is not was_paused:
                last_heartbeat, was_paused = now, is_paused
                await context.frontier.note_alive(self._vitals())
            await asyncio.sleep(CHECK_SECONDS)

    async def _watch_frontier(self) -> None:
        """Note why nothing can be claimed or written."""
        while True:
            for cause, sentence in self._context.frontier.troubles().items():
                self.progress.set_trouble(cause, sentence)
            await asyncio.sleep(CHECK_SECONDS)

    def _note_resources(self, now: float) -> None:
        progress, pressure = self.progress, self._context.pressure
        progress.resident = pressure.resident
        progress.longest_lag = pressure.longest_lag()
        progress.at_once = pressure.throttle.limit
        progress.held_by = Counter({pressure.steering.state.held_by.value: 1})
        for cause, sentence in pressure.troubles().items():
            progress.set_trouble(cause, sentence)
        if now - self._counted_files_at > COUNT_FILES_SECONDS:
            self._counted_files_at = now
            self._files = self._context.count_files()
            progress.open_files = self._files.total()

    def _vitals(self, *, is_leaving: bool = False) -> Vitals:
        return Vitals(
            pages=self.progress.pages,
            pages_per_second=0.0 if is_leaving else self.progress.pages_per_second(),
            in_flight=self.progress.in_flight,
            at_once=0 if is_leaving else self.progress.at_once,
            held_by=self._context.pressure.steering.state.held_by,
            is_paused=self._claimer.is_paused,
            is_leaving=is_leaving,
        )

    async def _finish_writing(self, writer: asyncio.Task[None]) -> None:
        self._writer.finish()
        await asyncio.wait([writer])
        if writer.exception() is not None:
            await self._writer.salvage()
        else:
            await self._context.frontier.note_alive(self._vitals(is_leaving=True))
