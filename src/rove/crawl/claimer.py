"""Claims domains ahead of the fetch slots, so that no slot waits for the database."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from rove.crawl.backoff_wait import BackoffWait
from rove.crawl.context import CrawlContext
from rove.crawl.limits import RemainingLimits
from rove.crawl.outage import OutageWatch
from rove.crawl.shutdown import Ending, wait_for_event
from rove.crawl.visit_record import HeldLease, VisitRecord
from rove.crawl.writer import BatchWriter
from rove.errors import RoveError
from rove.log_line import log_line
from rove.model.visits import Lease
from rove.policy.constants import VISIT_BUDGET
from rove.urls.origin import origin_of

MAX_CLAIM = 256
MAX_UNSETTLED_BATCHES = 2
"""Claiming pauses while this many batches of visits wait to be settled."""
CLAIM_WHILE_SEEDING = 25
PAUSE_WHILE_SEEDING = 0.25
"""While seeds load, each process makes at most 100 visits/s, so that the loader keeps most of the CPU."""
LONGEST_NAP = 0.5
SHORTEST_NAP = 0.01

log = logging.getLogger(__name__)


class Claimer:
    """Keeps a short queue of leased domains."""

    def __init__(
        self,
        context: CrawlContext,
        writer: BatchWriter,
        outage: OutageWatch,
        *,
        remaining_limits: RemainingLimits,
        all_seeds_loaded: Callable[[], Awaitable[bool]],
        backoffs: BackoffWait,
    ) -> None:
        """`all_seeds_loaded` tells whether the frontier has all seeds that it will ever get."""
        self._context = context
        self._frontier = context.frontier
        self._writer = writer
        self._outage = outage
        self._is_probing = False
        self._backoffs = backoffs
        self._remaining_limits = remaining_limits
        self._check_seeds_loaded = all_seeds_loaded
        self._seeds_loaded = False
        self._queue: asyncio.Queue[HeldLease] = asyncio.Queue()
        self._pages_left: int | None = None
        self._outages = context.frontier.outages
        self._woken = asyncio.Event()
        self._is_paused = False

    @property
    def queued(self) -> int:
        """How many leases wait for a slot."""
        return self._queue.qsize()

    def take(self) -> Awaitable[HeldLease]:
        """Wait for the next lease and take it from the queue."""
        return self._queue.get()

    def wake(self) -> None:
        """Look for work again soon: something has changed."""
        self._woken.set()

    def wake_if_low(self) -> None:
        """Look for work again soon if the queue is nearly empty."""
        if self._queue.qsize() <= self._context.pressure.concurrency // 8:
            self._woken.set()

    @property
    def is_paused(self) -> bool:
        """Whether the owner has told the crawl to start no new visits."""
        return self._is_paused

    def set_paused(self, is_paused: bool) -> None:
        """Start no new visits from now on, or start them again."""
        self._is_paused = is_paused
        if is_paused:
            self.give_back_queue()
        self.wake()

    def give_back(self, leases: Sequence[HeldLease]) -> None:
        """End leases without a visit."""
        for held in leases:
            self._writer.put(VisitRecord(held))

    def give_back_queue(self) -> None:
        """End all leases that still wait for a slot."""
        self.give_back([self._queue.get_nowait() for _ in range(self._queue.qsize())])

    async def run(self) -> None:
        """Claim until the crawl ends, and end it when nothing is left to claim."""
        shutdown = self._context.shutdown
        while not shutdown.has_begun:
            self._woken.clear()
            room = 0 if await self._must_pause() else self._room()
            if self._outage.is_offline:
                await self._probe(room)
                await self._nap(LONGEST_NAP)
                continue
            self._is_probing = False
            if room <= 0:
                await self._nap(LONGEST_NAP)
                continue
            is_seeding = not await self._all_seeds_loaded()
            if is_seeding:
                room = min(room, CLAIM_WHILE_SEEDING)
            claimed = await self._claim(room, self._frontier.claim(room))
            if claimed < room:
                await self._wait_until_due(has_claimed=claimed > 0)
            elif is_seeding:
                await shutdown.sleep(PAUSE_WHILE_SEEDING)

    async def _probe(self, room: int) -> None:
        """Visit a few domains if it is time to find out whether sites respond again."""
        if not self._is_probing:
            self._is_probing = True
            self.give_back_queue()
        count = min(room, self._outage.probes_due())
        if count <= 0:
            return
        claimed = await self._claim(count, self._frontier.claim_among(self._outage.probed, count))
        if claimed or await self._claim(count, self._frontier.claim(count)):
            self._outage.note_probe()

    async def _must_pause(self) -> bool:
        """Whether to claim nothing now, however much room there is."""
        if self._is_paused or self._context.pressure.is_paused:
            return True
        if self._outages != self._frontier.outages:
            # After an outage of the database, finished visits are settled before new ones begin.
            if self._writer.unsettled:
                return True
            self._outages = self._frontier.outages
        settings = self._context.settings
        if settings.limits.max_pages is not None:
            self._pages_left = self._remaining_limits.pages_left(await self._frontier.pages())
        # With --seeds-only, links into domains of seeds that are not loaded yet would count as out of scope.
        return settings.seeds_only and not await self._all_seeds_loaded()

    async def _all_seeds_loaded(self) -> bool:
        self._seeds_loaded = self._seeds_loaded or await self._check_seeds_loaded()
        return self._seeds_loaded

    def _room(self) -> int:
        """Return how many domains to claim: enough for the slots and a short queue, within the page limit."""
        allowed, queued = self._context.pressure.throttle.allowed, self._queue.qsize()
        max_unsettled = MAX_UNSETTLED_BATCHES * self._context.batch_size
        is_full = self._writer.unsettled >= max_unsettled or self._outage.is_full
        if not allowed or queued > allowed // 8 or is_full:
            return 0
        claimed = queued + self._context.progress.in_flight
        room = allowed + max(allowed // 4, 1) - claimed
        if self._pages_left is not None:
            if self._pages_left <= 0:
                self._context.shutdown.begin(Ending.MAX_PAGES)
            room = min(room, self._pages_left - claimed - self._writer.unsettled)
        return min(room, MAX_CLAIM)

    async def _claim(self, wanted: int, claiming: Awaitable[list[Lease]]) -> int:
        """Claim up to this many domains, with the robots.txt records of their URLs; return how many."""
        claimed_at = self._context.clock()
        leases = await claiming
        returned_at = self._context.clock()
        if log.isEnabledFor(logging.DEBUG):
            self._log_claim(wanted, leases, returned_at - claimed_at)
        claimed = {
            lease.domain: HeldLease(
                lease=lease,
                deadline=claimed_at + VISIT_BUDGET,
                # Measured at the return, so that the ledger never shows a request later than it was.
                clock_offset=lease.claimed_ms / 1000 - returned_at,
                origins=dict.fromkeys(origin_of(pending.url) for pending in lease.urls),
            )
            for lease in leases
        }
        keys = [(domain, origin) for domain, held in claimed.items() for origin in held.origins]
        try:
            records = await self._frontier.origins(keys)
        except RoveError:
            self.give_back(list(claimed.values()))
            raise
        for record in records:
            claimed[record.domain].origins[record.origin] = record
        for held in claimed.values():
            self._queue.put_nowait(held)
        if self._is_paused:  # since the claim began
            self.give_back_queue()
        return len(leases)

    def _log_claim(self, wanted: int, leases: Sequence[Lease], seconds: float) -> None:
        process = self._frontier.process
        log.debug("%s", log_line("claim", process=process, wanted=wanted, got=len(leases), seconds=seconds))
        for lease in leases:
            log.debug(
                "%s",
                log_line(
                    "lease",
                    process=process,
                    domain=lease.name,
                    visit=lease.token,
                    urls=len(lease.urls),
                    crawl_delay=lease.crawl_delay,
                    backoff=lease.pace.backoff,
                    failures=lease.pace.failures,
                ),
            )

    async def _wait_until_due(self, *, has_claimed: bool) -> None:
        """Wait until a domain is due, or end the crawl if none ever will be."""
        due = await self._backoffs.next_due()
        if due == 0 and self._pages_left is not None and not has_claimed:
            # A domain is due, but the leases of other processes may bring all pages that are left. They need time.
            due = LONGEST_NAP
        unfinished = self._queue.qsize() + self._context.progress.in_flight + self._writer.unsettled + self._outage.held
        # Not only the seeds of the start: 'rove seeds add' may be loading more.
        if due is None and not unfinished and await self._check_seeds_loaded():
            # The last seeds may have been added after the first look, so look again.
            due = await self._backoffs.next_due()
            if due is None and not self._woken.is_set() and not self._is_paused:
                self._context.shutdown.begin(Ending.EXHAUSTED)
                return
        await self._nap(LONGEST_NAP if due is None else min(max(due, SHORTEST_NAP), LONGEST_NAP))

    async def _nap(self, seconds: float) -> None:
        await wait_for_event(self._woken, seconds)
