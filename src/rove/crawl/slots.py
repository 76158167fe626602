"""Fetch slots: the visits in flight, each of which is a task."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from rove.crawl.claimer import Claimer
from rove.crawl.context import CrawlContext
from rove.crawl.outage import OutageWatch
from rove.crawl.shutdown import cancel, grace_for, wait_for_event
from rove.crawl.visit import Visit
from rove.crawl.visit_record import HeldLease, VisitRecord
from rove.errors import RoveError
from rove.fetch.address_room import AddressRoom, Room
from rove.model.reasons import FailReason
from rove.model.urls import UrlState
from rove.policy.exclusions import Exclusions
from rove.resources.memory import Share
from rove.urls.address_group import address_group

MOST_PER_GROUP = 8
"""Visits at a time to address literals of one network (urls/address_group.py)."""
SLOTS_PER_GROUP_VISIT = 8
"""With fewer slots, a network gets one visit at a time for this many slots."""
SLOW_SECONDS = 5.0
"""A request that takes longer may be cancelled for the sake of another domain."""

log = logging.getLogger(__name__)


class Slots:
    """Makes visits, as many at a time as the throttle allows. Each one is a task."""

    def __init__(self, context: CrawlContext, claimer: Claimer, outage: OutageWatch) -> None:
        self._context = context
        self._claimer = claimer
        self._outage = outage
        self._running: dict[VisitRecord, asyncio.Task[None]] = {}
        start = context.pressure.steering.bounds.start
        self._group_room = AddressRoom(
            at_once=max(1, min(MOST_PER_GROUP, start // SLOTS_PER_GROUP_VISIT)), clock=context.clock
        )
        """Addresses of one network share a few slots, because a network costs no more than an address."""
        self._cancelled_slow: set[int] = set()
        """Domains whose slow visit was cancelled, at most one a second."""
        self._idle = asyncio.Event()
        self._idle.set()
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        context.pressure.throttle.on_room = self.fill

    async def run(self) -> None:
        """Raise the exception of the first visit that fails because of the frontier or the store."""
        await self._failure

    def fill(self) -> None:
        """Start visits to the domains that are queued, as many as the throttle allows."""
        throttle = self._context.pressure.throttle
        while len(self._running) < throttle.allowed and not self._context.shutdown.has_begun:
            held = self._claimer.take()
            if held is None:
                return
            self._start(held)

    async def finish(self) -> None:
        """Let the visits in flight finish within the grace period, then cancel them."""
        grace = grace_for(len(self._running), self._context.shutdown.grace_seconds)
        await wait_for_event(self._idle, grace)
        await cancel(list(self._running.values()))

    def cancel_overdue(self, now: float) -> None:
        """Cancel visits whose lease has run out: after a suspend, the event loop's own timers are late."""
        for record, task in self._running.items():
            if now > record.held.deadline:
                self._cancel(record, task)

    def cancel_excluded(self, exclusions: Exclusions) -> None:
        """Cancel visits that are requesting something from an excluded host."""
        for record, task in self._running.items():
            if record.requesting_host and exclusions.covers(record.requesting_host):
                self._cancel(record, task)

    def cancel_slowest(self, now: float) -> None:
        """Cancel the visit whose request has taken longest, if it is slow. A domain is not cancelled a second time.

        So a page that takes long is fetched at the second visit, even if all sites that are left are slow.
        """
        slow = [
            record
            for record in self._running
            if record.requesting_host
            and now - record.request_began > SLOW_SECONDS
            and record.lease.domain not in self._cancelled_slow
        ]
        if slow:
            record = min(slow, key=lambda record: record.request_began)
            self._cancelled_slow.add(record.lease.domain)
            self._cancel(record, self._running[record])

    def _cancel(self, record: VisitRecord, task: asyncio.Task[None]) -> None:
        if not task.cancelling():
            log.warning("cancelled a visit to %s", record.lease.name)
            task.cancel()

    def _start(self, held: HeldLease) -> None:
        context = self._context
        context.silence.unqueue(held.lease)
        if context.clock() >= held.deadline:
            self._claimer.give_back([held])
            return
        group = address_group(held.lease.name)
        room = self._group_room.take([group]) if group else None
        if group and room is None:
            self._claimer.postpone(held, self._group_room.wait_for([group]))
            return
        record = VisitRecord(held, Share(context.pressure.memory))
        context.progress.in_flight += 1
        context.silence.begin(record)
        self._idle.clear()
        task = self._running[record] = asyncio.create_task(self._visit(record))
        # Not in the task itself: a task that is cancelled before its first step runs no code.
        task.add_done_callback(partial(self._end, record, room))

    async def _visit(self, record: VisitRecord) -> None:
        visit = Visit(self._context, record)
        try:
            await visit.run()
        except (RoveError, asyncio.CancelledError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # a panic of a parser in Rust is no Exception
            # One page must neither end the crawl nor come back for ever.
            log.exception("internal error in a visit to %s", record.lease.name)
            self._context.progress.internal_errors += 1
            record.settle(visit.busy_with, UrlState.FAILED, FailReason.INTERNAL_ERROR)

    def _end(self, record: VisitRecord, room: Room | None, task: asyncio.Task[None]) -> None:
        if room is not None:
            self._group_room.give_back(room)
        failure = None if task.cancelled() else task.exception()
        if task.cancelled() or failure is not None:
            record.lose_unfinished()
        if record.answers.has_answered and not record.lease.pace.answered:
            record.answers.spread = self._context.spread.after_first_visit(self._context.clock())
        try:
            self._hand_over(record)
        except Exception as error:
            failure = failure or error
        if failure is None:
            self._claimer.wake_if_low()
            self.fill()
        elif not self._failure.done():
            self._failure.set_exception(failure)

    def _hand_over(self, record: VisitRecord) -> None:
        """Pass on a visit that has ended."""
        context = self._context
        context.progress.in_flight -= 1
        context.silence.end(record)
        context.pressure.steering.note_visit(
            was_expected=record.lease.pace.is_responding,
            is_lost=record.answers.ends_in_silence and not record.answers.has_answered,
        )
        del self._running[record]
        if not self._running:
            self._idle.set()
        record.update_memory()
        self._outage.take(record)
