"""Claims domains ahead of the fetch slots, so that no slot waits for the database."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice

from rove.crawl.claims import Claims
from rove.crawl.context import CrawlContext
from rove.crawl.limits import RemainingLimits
from rove.crawl.outage import OutageWatch
from rove.crawl.shutdown import Ending, wait_for_event
from rove.crawl.visit_record import HeldLease, VisitRecord
from rove.crawl.writer import BatchWriter
from rove.errors import RoveError
from rove.model.visits import Lease
from rove.notation.log_line import log_line
from rove.policy.constants import VISIT_BUDGET
from rove.policy.scope import SeedScope
from rove.policy.silence import SOON
from rove.urls.origin import origin_of

MAX_CLAIM = 256
MAX_UNSETTLED_BATCHES = 2
"""Claiming pauses while this many batches of visits wait to be settled."""
CLAIM_WHILE_SEEDING = 25
PAUSE_WHILE_SEEDING = 0.25
"""While seeds load, each process makes at most 100 visits/s, so that the loader keeps most of the CPU."""
LONGEST_NAP = 0.5
SHORTEST_NAP = 0.01
COUNT_RESPONDING_SECONDS = 1.0
LAST_PAGES = 1_000
"""With fewer pages left, the slow visits of several processes may have reserved all of them."""
FREE_PAGE_SECONDS = 1.0
"""A slow visit that reserves one of the last pages is cancelled at most this often: a cancelled one must settle."""
WAIT_FOR_SILENT = 0.1
"""How often to look for domains that respond while only those may be claimed."""

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
        are_rules_applied: Callable[[], Awaitable[bool]],
        claims: Claims,
        on_queued: Callable[[], None],
        cancel_slowest: Callable[[], None],
    ) -> None:
        """Prepare to claim.

        `all_seeds_loaded` tells whether the frontier has all seeds that it will ever get, `are_rules_applied` whether
        no URL becomes pending again because a rule was lifted. `on_queued` is called when
        leases have been queued, `cancel_slowest` when a slow visit reserves a page that another domain could bring.
        """
        self._context = context
        self._frontier = context.frontier
        self._writer = writer
        self._outage = outage
        self._is_probing = False
        self._claims = claims
        self._remaining_limits = remaining_limits
        self._check_seeds_loaded = all_seeds_loaded
        self._are_rules_applied = are_rules_applied
        self._seeds_loaded = False
        self._on_queued = on_queued
        self._cancel_slowest = cancel_slowest
        self._next_cancel = 0.0
        self._queue: deque[HeldLease] = deque()
        self._holds_back = False
        self._pages_left: int | None = None
        self._are_pages_reserved = False
        """Whether nothing can be claimed because visits of this process have reserved all pages up to the limit."""
        self._outages = context.frontier.outages
        self._responding = 0
        self._next_count = 0.0
        self._woken = asyncio.Event()
        self._is_paused = False

    @property
    def queued(self) -> int:
        """How many leases wait for a slot."""
        return len(self._queue)

    @property
    def are_waiting(self) -> bool:
        """Whether domains that are ready wait for a slot."""
        return bool(self._queue) or self._holds_back

    def take(self) -> HeldLease | None:
        """Take the next lease from the queue; None if it is empty."""
        return self._queue.popleft() if self._queue else None

    def wake(self) -> None:
        """Look for work again soon: something has changed."""
        self._woken.set()

    def wake_if_low(self) -> None:
        """Look for work again soon if the queue is nearly empty."""
        if len(self._queue) <= self._low:
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

    def postpone(self, held: HeldLease, seconds: float) -> None:
        """End a lease without a visit; its domain comes back after this time."""
        record = VisitRecord(held)
        record.postpone(seconds)
        self._writer.put(record)

    def give_back_queue(self) -> None:
        """End all leases that still wait for a slot."""
        unused = list(self._queue)
        self._queue.clear()
        for held in unused:
            self._context.silence.unqueue(held.lease)
        self.give_back(unused)

    async def run(self) -> None:
        """Claim until the crawl ends, and end it when nothing is left to claim."""
        shutdown = self._context.shutdown
        while not shutdown.has_begun:
            self._woken.clear()
            self._are_pages_reserved = False
            room = 0 if await self._must_pause() else self._room()
            if self._outage.is_offline and self._claims.is_alone:
                shutdown.begin(Ending.EXHAUSTED)  # suspects are tried again when sites respond
                return
            if self._outage.is_offline:
                await self._probe(room)
                await self._nap(LONGEST_NAP)
                continue
            self._is_probing = False
            if room <= 0:
                self._holds_back = False
                if self._are_pages_reserved and await self._claims.next_due() == 0:
                    self._free_page()
                await self._nap(LONGEST_NAP)
                continue
            is_seeding = not await self._all_seeds_loaded()
            if is_seeding:
                room = min(room, CLAIM_WHILE_SEEDING)
            strangers = room
            if not self._claims.is_alone:
                strangers = min(room, self._context.silence.room(await self._responding_due()))
            claimed = await self._claim(strangers, self._claims.claim(strangers)) if strangers else 0
            if strangers < room:
                rest = room - claimed
                claimed += await self._claim(rest, self._frontier.claim_responding(rest))
            if claimed < room:
                await self._wait_until_due(has_claimed=claimed > 0, takes_all=strangers == room)
                continue
            self._holds_back = False
            if is_seeding:
                await shutdown.sleep(PAUSE_WHILE_SEEDING)

    async def _probe(self, room: int) -> None:
        """Visit a few domains if it is time to find out whether sites respond again."""
        if not self._is_probing:
            self._is_probing = True
            self.give_back_queue()
        count = min(room, self._outage.probes_due())
        if count <= 0:
            return
        among = count - 1
        claimed = await self._claim(among, self._frontier.claim_among(self._outage.probed, among), is_probe=True)
        # Not only sites that failed, because they may be gone for good. The longest due comes first.
        rest = count - claimed
        claimed += await self._claim(rest, self._frontier.claim_responding(rest), is_probe=True)
        if claimed or await self._claim(count, self._frontier.claim(count), is_probe=True):
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
        # With a --scope, links into domains of seeds that are not loaded yet would count as out of scope.
        return settings.scope is not SeedScope.ANYWHERE and not await self._all_seeds_loaded()

    async def _responding_due(self) -> int:
        """Return how many domains that respond will soon need a slot; counted once a second."""
        now = self._context.clock()
        if now >= self._next_count:
            self._next_count = now + COUNT_RESPONDING_SECONDS
            limit = self._context.pressure.throttle.limit
            self._responding = await self._frontier.responding_due(within=SOON, limit=limit)
        return self._responding

    async def _all_seeds_loaded(self) -> bool:
        self._seeds_loaded = self._seeds_loaded or await self._check_seeds_loaded()
        return self._seeds_loaded

    @property
    def _low(self) -> int:
        """The length of the queue up to which more is claimed."""
        return min(self._context.pressure.throttle.limit // 8, MAX_CLAIM // 2)

    def _room(self) -> int:
        """Return how many domains to claim: enough for the slots and a short queue, within the page limit."""
        allowed, queued = self._context.pressure.throttle.allowed, len(self._queue)
        max_unsettled = MAX_UNSETTLED_BATCHES * self._context.batch_size
        is_full = self._writer.unsettled >= max_unsettled or self._outage.is_full
        if not allowed or queued > self._low or is_full:
            return 0
        claimed = queued + self._context.progress.in_flight
        if self._claims.is_alone and claimed + self._writer.unsettled + self._outage.held:
            return 0
        room = allowed + min(max(allowed // 4, 1), MAX_CLAIM) - claimed
        if self._pages_left is not None:
            if self._pages_left <= 0:
                self._context.shutdown.begin(Ending.MAX_PAGES)
            unreserved = self._pages_left - claimed - self._writer.unsettled
            self._are_pages_reserved = unreserved <= 0 < room
            room = min(room, unreserved)
        return min(room, MAX_CLAIM)

    def _free_page(self) -> None:
        """Let a slow visit give its page to a domain that is due, so that one site cannot hold up the last pages.

        The lease ends before its page is claimed again, so the limit stays exact.
        """
        now = self._context.clock()
        if now >= self._next_cancel and not self._context.shutdown.has_begun:
            self._next_cancel = now + FREE_PAGE_SECONDS
            self._cancel_slowest()

    async def _claim(self, wanted: int, claiming: Awaitable[list[Lease]], *, is_probe: bool = False) -> int:
        """Claim up to this many domains, with the robots.txt records of their URLs; return how many.

        A probe requests robots.txt again, so it needs no records.
        """
        meter = self._context.meter
        claimed_at = self._context.clock()
        with meter.histogram("claim").measured():
            leases = await claiming
        meter.counts["claims"] += 1
        meter.counts["claims.empty"] += not leases
        # After a failover, pages that are visited again name the links again that the database has lost.
        self._context.seen.enter_era(self._frontier.eras)
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
            records = [] if is_probe else await self._frontier.origins(keys)
        except RoveError:
            self.give_back(list(claimed.values()))
            raise
        for record in records:
            claimed[record.domain].origins[record.origin] = record
        for held in claimed.values():
            self._context.silence.queue(held.lease)
            self._queue.append(held)
        if self._is_paused:  # since the claim began
            self.give_back_queue()
        self._on_queued()
        self._look_ahead(len(leases))
        return len(leases)

    def _look_ahead(self, count: int) -> None:
        """Let the names of the last leases in the queue be looked up while they wait for a slot."""
        for held in islice(reversed(self._queue), count):
            self._context.fetcher.look_ahead(next(iter(held.origins)))

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

    async def _wait_until_due(self, *, has_claimed: bool, takes_all: bool) -> None:
        """Wait until a domain is due, or end the crawl if none ever will be.

        Without `takes_all`, domains that do not respond wait for slots, however long they have been due.
        """
        due = await self._claims.next_due()
        self._holds_back = due == 0 and not takes_all
        if self._holds_back:
            due = WAIT_FOR_SILENT
        if due == 0 and self._pages_left is not None and not has_claimed:
            # A domain is due, but the leases of other processes may bring all pages that are left. They need time.
            due = LONGEST_NAP
            if self._pages_left < LAST_PAGES:
                self._free_page()
        unfinished = len(self._queue) + self._context.progress.in_flight + self._writer.unsettled + self._outage.held
        # Not only the seeds of the start: 'rove seeds add' may be loading more.
        if due is None and not unfinished and await self._check_seeds_loaded() and await self._are_rules_applied():
            # The last seeds may have been added after the first look, so look again.
            due = await self._claims.next_due()
            if due is None and not self._woken.is_set() and not self._is_paused:
                self._context.shutdown.begin(Ending.EXHAUSTED)
                return
        await self._nap(LONGEST_NAP if due is None else min(max(due, SHORTEST_NAP), LONGEST_NAP))

    async def _nap(self, seconds: float) -> None:
        await wait_for_event(self._woken, seconds)
