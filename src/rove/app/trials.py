"""Tries suspects beside a crawl: URLs that a process was reading when it died.

A worker process tries them one at a time and does nothing else, so that its death points to one URL. This process is
its parent. A death counts as evidence only if the parent has outlived it, so killing all processes is no evidence.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from rove.app.runner import Runner
from rove.app.supervisor import Timing
from rove.app.worker import TRY_LATER
from rove.app.worker_process import WorkerFailed, WorkerProcess
from rove.crawl.loop import Loader
from rove.crawl.progress import Counters, Progress
from rove.crawl.shutdown import Ending, wait_for_event
from rove.errors import RoveError
from rove.notation.log_line import log_line

POLL_SECONDS = 2.0
"""How often to look for suspects. Other machines may have some too."""
START_EARLY = 1.0
"""A worker is started this many seconds before a suspect may be tried, because a start takes time."""

log = logging.getLogger(__name__)


class Trials:
    """Starts a worker process whenever a suspect may be tried."""

    def __init__(
        self,
        *,
        start: Callable[[], WorkerProcess],
        reserve: Callable[[], Awaitable[float | None]],
        on_death: Callable[[int, bool], Awaitable[None]],
        count: Callable[[Counters], None],
        clock: Callable[[], float],
        timing: Timing | None = None,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        """Prepare.

        `start` makes a worker. `reserve` returns the seconds until a suspect may be tried, None if there is none.
        `on_death` is given the process number of a worker that died, and whether its death is evidence. `count` is
        given what each worker has done.
        """
        self._start = start
        self._reserve = reserve
        self._on_death = on_death
        self._count = count
        self._clock = clock
        self._timing = timing or Timing()
        self._poll_seconds = poll_seconds
        self._worker: WorkerProcess | None = None
        self._stopping = asyncio.Event()
        self._woken = asyncio.Event()
        self._is_paused = False

    def wake(self) -> None:
        """Look for suspects at once."""
        self._woken.set()

    def stop(self) -> None:
        """Let the trial that is under way finish, and start no other."""
        self._stopping.set()
        self.wake()

    def set_paused(self, is_paused: bool) -> None:
        """Start no new visits, or start them again."""
        self._is_paused = is_paused
        if self._worker is not None:
            self._worker.set_paused(is_paused)
        self.wake()

    def kill(self) -> None:
        """Kill the worker, if there is one."""
        if self._worker is not None:
            self._worker.kill()

    async def run(self) -> None:
        """Try suspects until `stop` is called; raise WorkerFailed if a worker met an error that ends the crawl."""
        pause = 0.0
        while not self._stopping.is_set():
            if not await self._is_due():
                await wait_for_event(self._woken, self._poll_seconds)
                self._woken.clear()
                continue
            began = self._clock()
            if await self._hold():
                pause = 0.0
                await wait_for_event(self._stopping, self._poll_seconds)
            else:
                pause = self._timing.pause_after(pause, lived=self._clock() - began, has_suspect=False)
                await wait_for_event(self._stopping, pause)

    async def _is_due(self) -> bool:
        if self._is_paused:
            return False
        try:
            due = await self._reserve()
        except RoveError as error:
            log.warning("could not look for suspects: %s", error)
            return False
        return due is not None and due <= START_EARLY and not self._stopping.is_set()

    async def _hold(self) -> bool:
        """Run a worker that tries suspects until none is due; return whether it has survived."""
        worker = self._worker = self._start()
        try:
            report = await worker.run(self._stopping, self._timing.stop, is_paused=lambda: self._is_paused)
        finally:
            self._worker = None
        self._count(report.counters.ended())
        if report.failure:
            raise WorkerFailed(report.failure, report.exit_code)
        if report.ending:
            return True
        if worker.exit_code != TRY_LATER:
            log.warning("%s", log_line("death", worker="trial", process=report.process, why=worker.death()))
        is_evidence = not (worker.was_killed_by_us or self._stopping.is_set())
        await self._on_death(report.process, is_evidence)
        return False


class CrawlWithTrials:
    """The Runner of a crawl, with the trials of its suspects."""

    def __init__(self, crawl: Runner, trials: Trials) -> None:
        self._crawl = crawl
        self._trials = trials

    @property
    def progress(self) -> Progress:
        """The counters of all its processes."""
        return self._crawl.progress

    def count(self, counters: Counters) -> None:
        """Add what another process has done to the progress."""
        self._crawl.count(counters)

    def stop(self, ending: Ending = Ending.STOPPED) -> None:
        """Shut down."""
        self._trials.stop()
        self._crawl.stop(ending)

    def set_paused(self, is_paused: bool) -> None:
        """Start no new visits, or start them again."""
        self._trials.set_paused(is_paused)
        self._crawl.set_paused(is_paused)

    def accounts(self) -> Mapping[str, str]:
        """Return what this process holds, for a report."""
        return self._crawl.accounts()

    def kill(self) -> None:
        """Kill the worker processes."""
        self._trials.kill()
        self._crawl.kill()

    async def run(self, seed_loader: Loader) -> Ending:
        """Crawl until the end. The crawl also ends if a trial meets an error that ends it."""
        trials = asyncio.create_task(self._trials.run())
        trials.add_done_callback(lambda _: self._crawl.stop() if _has_failed(trials) else None)
        try:
            ending = await self._crawl.run(seed_loader)
        finally:
            self._trials.stop()
            await asyncio.wait([trials])
        await trials
        return ending


def _has_failed(task: asyncio.Task[None]) -> bool:
    return not task.cancelled() and task.exception() is not None
