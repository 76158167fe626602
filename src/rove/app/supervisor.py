"""Runs a crawl in several worker processes: starts them, restarts those that die, and stops them together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rove.app.worker import TRY_LATER, WorkerOrder
from rove.app.worker_process import WORKER_COMMAND, WorkerFailed, WorkerProcess
from rove.crawl.limits import RemainingLimits
from rove.crawl.loop import Loader
from rove.crawl.progress import Counters, Progress
from rove.crawl.shutdown import Ending, wait_for_event
from rove.model.samples import Sample
from rove.notation.humanize import counted, size_text
from rove.notation.log_line import log_line
from rove.resources.process_state import oom_kills

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long a supervisor waits, in seconds."""

    first_pause: float = 1.0
    """The first pause before a worker that died is restarted. It doubles with each further death without a suspect."""
    longest_pause: float = 60.0
    steady: float = 300.0
    """A worker that lived this long gets the first pause again."""
    stop: float = 60.0
    """Between telling a worker to stop and killing it."""
    mark: float = 1.0
    """Between two updates of the progress."""

    def pause_after(self, last: float, *, lived: float, has_suspect: bool) -> float:
        """Return the pause before restarting a worker that lived this long; `last` is the previous pause, or 0.

        A suspect explains the death, and the next worker will not read it.
        """
        if has_suspect or not last or lived > self.steady:
            return self.first_pause
        return min(2 * last, self.longest_pause)


class Supervisor:
    """The Runner of a crawl in several processes of this machine."""

    def __init__(
        self,
        orders: Sequence[WorkerOrder],
        *,
        progress: Progress,
        clock: Callable[[], float],
        remaining_limits: RemainingLimits,
        on_death: Callable[[int], Awaitable[bool]],
        on_stop: Callable[[], None],
        say: Callable[[str], None],
        on_news: Callable[[str], None],
        on_sample: Callable[[str, Sample], None],
        log_of: Callable[[str], Path],
        command: Sequence[str] = WORKER_COMMAND,
        timing: Timing | None = None,
        count_oom_kills: Callable[[], Sequence[int]] = oom_kills,
    ) -> None:
        """Prepare one worker for each order.

        `on_death` is given the process number in the frontier of a worker that died. It cleans up after the worker
        and returns whether a suspect explains the death.
        `on_stop` is called once, when the crawl starts to stop. `log_of` returns the log file of a worker, which takes
        its standard error. `on_sample` is given the samples of the workers, with their names.
        """
        self._orders = orders
        self._workers: dict[int, WorkerProcess] = {}
        """The current worker for each order, by the order's number."""
        self.progress = progress
        self._clock = clock
        self._remaining_limits = remaining_limits
        self._on_death = on_death
        self._on_stop = on_stop
        self._say = say
        self._on_news = on_news
        self._on_sample = on_sample
        self._command = command
        self._timing = timing or Timing()
        self._log_of = log_of
        self._count_oom_kills = count_oom_kills
        self._ended_workers = Counters()
        self._ending: Ending | None = None
        self._stopping = asyncio.Event()
        self._is_paused = False

    def stop(self, ending: Ending = Ending.STOPPED) -> None:
        """Tell all workers to shut down; only the first reason counts."""
        if self._ending is None:
            self._ending = ending
            self.progress.is_stopping = True
            self._on_stop()
            self._stopping.set()

    def set_paused(self, is_paused: bool) -> None:
        """Tell all workers, and those that are started later, to start no new visits, or to start them again."""
        self._is_paused = is_paused
        for worker in self._workers.values():
            worker.set_paused(is_paused)

    def accounts(self) -> dict[str, str]:
        """Return what the workers have reported, for a report. Another thread may call this."""
        return {
            f"worker {number}": (
                f"process {worker.report.process}, {size_text(worker.report.counters.resident)} resident, "
                f"{counted(worker.report.counters.in_flight, 'visit')} in flight"
            )
            for number, worker in list(self._workers.items())
        }

    def kill(self) -> None:
        """Kill all workers at once. The next start recovers what they leave behind."""
        for worker in self._workers.values():
            worker.kill()

    def count(self, counters: Counters) -> None:
        """Add what another process has done to the progress."""
        self._ended_workers += counters

    async def run(self, seed_loader: Loader) -> Ending:
        """Load the seeds and keep the workers running until the crawl ends."""
        lives = [asyncio.create_task(self._keep_alive(order)) for order in self._orders]
        # Workers look for new seeds by themselves, so they need not be woken.
        loading = asyncio.create_task(seed_loader.run(lambda: None))
        marking = asyncio.create_task(self._keep_marking())
        try:
            await _all_or_first_failure(lives, loading)
            endings = [life.result() for life in lives]
        finally:
            self.stop()
            loading.cancel()
            marking.cancel()
            await asyncio.gather(*lives, loading, marking, return_exceptions=True)
            self._update_progress()
        return self._overall(endings)

    def _overall(self, endings: list[Ending]) -> Ending:
        """Return how the crawl ended, given how its workers did."""
        if self._ending is not None and self._ending is not Ending.STOPPED:
            return self._ending
        for ending in (Ending.MAX_PAGES, Ending.MAX_DURATION, Ending.STOPPED, Ending.UNREACHABLE):
            if ending in endings:
                return ending
        return Ending.EXHAUSTED

    async def _keep_alive(self, order: WorkerOrder) -> Ending:
        """Run a worker, and restart it whenever it dies, until it ends by itself or the crawl stops."""
        pause = 0.0
        while True:
            began = self._clock()
            worker = WorkerProcess(
                order,
                command=self._command,
                log_file=self._log_of(order.name),
                on_news=self._on_news,
                on_sample=self._on_sample,
                count_oom_kills=self._count_oom_kills,
            )
            self._workers[order.number] = worker
            report = await worker.run(self._stopping, self._timing.stop, is_paused=lambda: self._is_paused)
            self._ended_workers += report.counters.ended()
            del self._workers[order.number]
            if report.failure:
                self.stop()
                raise WorkerFailed(report.failure, report.exit_code)
            # A worker that somebody else stopped with a signal is replaced like one that died.
            if report.ending and not (report.ending == Ending.STOPPED and self._ending is None):
                return Ending(report.ending)
            death = worker.death()
            has_suspect = await self._on_death(report.process)
            if self._ending is not None:
                return self._ending
            pause = self._timing.pause_after(pause, lived=self._clock() - began, has_suspect=has_suspect)
            log.warning(
                "%s", log_line("death", worker=order.number, process=report.process, why=death, restart_in_s=pause)
            )
            if worker.exit_code != TRY_LATER:
                self._say(f"process {order.number} died ({death}); restarting it in {pause:.0f} s")
            await wait_for_event(self._stopping, pause)
            if self._stopping.is_set():
                return Ending.STOPPED

    async def _keep_marking(self) -> None:
        while True:
            self._update_progress()
            self.progress.mark(self._clock())
            await asyncio.sleep(self._check_time())

    def _check_time(self) -> float:
        """Stop the crawl at its time limit, even while workers wait to be restarted; return when to check again."""
        seconds_left = self._remaining_limits.seconds_left()
        if seconds_left is None:
            return self._timing.mark
        if seconds_left <= 0:
            self.stop(Ending.MAX_DURATION)
        return min(self._timing.mark, max(0.05, seconds_left))

    def _update_progress(self) -> None:
        counters = (worker.report.counters for worker in self._workers.values())
        self.progress.update(sum(counters, self._ended_workers))


async def _all_or_first_failure(lives: list[asyncio.Task[Ending]], loading: asyncio.Task[None]) -> None:
    """Wait until all workers have ended; raise the first failure of a worker or of the seed loader."""
    pending: set[asyncio.Future[Any]] = {*lives, loading}
    while not all(life.done() for life in lives):
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
