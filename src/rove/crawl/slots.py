"""Fetch slots: tasks that each make one visit after the other."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from rove.crawl.claimer import Claimer
from rove.crawl.context import CrawlContext
from rove.crawl.outage import OutageWatch
from rove.crawl.shutdown import cancel, wait_for_event
from rove.crawl.visit import Visit
from rove.crawl.visit_record import VisitRecord
from rove.errors import RoveError
from rove.model.reasons import FailReason
from rove.model.urls import UrlState
from rove.policy.exclusions import Exclusions
from rove.resources.memory import Share

log = logging.getLogger(__name__)


class _RunningVisit:
    """Cancels a visit but not the task that makes it. It works like asyncio.timeout, at a fraction of the cost."""

    __slots__ = ("_is_cancelled", "_task")

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self._task = task
        self._is_cancelled = False

    def cancel(self) -> None:
        """End the visit."""
        if not self._is_cancelled:
            self._is_cancelled = True
            self._task.cancel()

    def end(self) -> bool:
        """Note that the visit has ended; return whether its task was cancelled as well."""
        was_cancelled, self._is_cancelled = self._is_cancelled, False
        return not was_cancelled or self._task.uncancel() > 0


class Slots:
    """Makes visits, as many at a time as the throttle allows."""

    def __init__(self, context: CrawlContext, claimer: Claimer, outage: OutageWatch) -> None:
        self._context = context
        self._claimer = claimer
        self._outage = outage
        self._running: dict[VisitRecord, _RunningVisit] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    def start(self) -> list[asyncio.Task[None]]:
        """Start one task for each slot."""
        slots = range(self._context.pressure.concurrency)
        return [asyncio.create_task(self._run_slot(number)) for number in slots]

    async def finish(self, tasks: list[asyncio.Task[None]]) -> None:
        """Let the visits in flight finish within the grace period, then cancel the tasks."""
        await wait_for_event(self._idle, self._context.shutdown.grace_seconds)
        await cancel(tasks)

    def cancel_overdue(self, now: float) -> None:
        """Cancel visits whose lease has run out: after a suspend, the event loop's own timers are late."""
        for record, running in self._running.items():
            if now > record.held.deadline:
                running.cancel()

    def cancel_excluded(self, exclusions: Exclusions) -> None:
        """Cancel visits that are requesting something from an excluded host."""
        for record, running in self._running.items():
            if record.requesting_host and exclusions.covers(record.requesting_host):
                running.cancel()

    async def _run_slot(self, number: int) -> None:
        pressure = self._context.pressure
        task = asyncio.current_task()
        assert task is not None, "a slot is a task"
        while True:
            if number >= pressure.throttle.allowed:
                await pressure.throttle.wait_for_turn(number)
            held = await self._claimer.take()
            if self._context.clock() < held.deadline:
                await self._visit(task, VisitRecord(held, Share(pressure.memory)))
                pressure.throttle.note_visit()
            else:
                self._claimer.give_back([held])

    async def _visit(self, task: asyncio.Task[Any], record: VisitRecord) -> None:
        progress = self._context.progress
        progress.in_flight += 1
        self._idle.clear()
        running = self._running[record] = _RunningVisit(task)
        try:
            await Visit(self._context, record).run()
        except RoveError:
            raise
        except asyncio.CancelledError:
            if running.end():
                raise
            log.warning("cancelled a visit to %s", record.lease.name)
        except Exception:
            # One page must neither end the crawl nor come back for ever.
            log.exception("internal error in a visit to %s", record.lease.name)
            progress.internal_errors += 1
            record.settle(record.lease.urls[0].fingerprint, UrlState.FAILED, FailReason.INTERNAL_ERROR)
        finally:
            running.end()
            progress.in_flight -= 1
            del self._running[record]
            if not self._running:
                self._idle.set()
            record.update_memory()
            self._outage.take(record)
            self._claimer.wake_if_low()
