"""Runs a crawl in several worker processes: starts them, restarts those that die, and stops them together."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from rove.app.death import Death
from rove.app.worker import PAUSE, TRY_LATER, UNPAUSE, WorkerOrder, WorkerReport, decode_report
from rove.crawl.loop import Loader
from rove.crawl.progress import Counters, Progress
from rove.crawl.shutdown import Ending, wait_for_event
from rove.errors import RoveError
from rove.log_line import log_line
from rove.resources.process_state import oom_kills

WORKER_COMMAND = (sys.executable, "-P", "-m", "rove.app.worker")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long a supervisor waits, in seconds."""

    first_pause: float = 1.0
    """Before a worker that died is restarted; the pause doubles with every further death."""
    longest_pause: float = 60.0
    steady: float = 300.0
    """A worker that lived this long gets the first pause again."""
    stop: float = 60.0
    """Between telling a worker to stop and killing it."""
    mark: float = 1.0
    """Between two updates of the progress."""


class WorkerFailed(RoveError):
    """A worker met an error that ends the whole crawl."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


class _WorkerProcess:
    """One worker process while it lives, and its last report."""

    def __init__(
        self,
        order: WorkerOrder,
        *,
        command: Sequence[str],
        log_file: Path,
        on_news: Callable[[str], None],
        count_oom_kills: Callable[[], Sequence[int]],
    ) -> None:
        self._order = order
        self._log_file = log_file
        self._count_oom_kills = count_oom_kills
        self._oom_kills = count_oom_kills()
        self._was_killed_by_us = False
        self._command = command
        self._on_news = on_news
        self._process: asyncio.subprocess.Process | None = None
        self._has_order = False
        self.report = WorkerReport()

    async def run(self, stopping: asyncio.Event, stop_seconds: float, *, is_paused: Callable[[], bool]) -> WorkerReport:
        """Start the process and wait until it is gone; return its last report."""
        with _opened_for_errors(self._log_file) as errors:
            process = self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=errors
            )
        assert process.stdin is not None and process.stdout is not None, "both are pipes"
        stopper = asyncio.create_task(_stop_when_set(stopping, process, stop_seconds))
        try:
            # The worker may be gone already. A write to a closed pipe would raise RuntimeError.
            if not process.stdin.is_closing():
                order = msgspec.structs.replace(self._order, is_paused=is_paused())
                process.stdin.write(msgspec.json.encode(order) + b"\n")
                self._has_order = True
                with suppress(ConnectionError):
                    await process.stdin.drain()
            await self._read_reports(process.stdout)
            await process.wait()
        finally:
            stopper.cancel()
            self.kill()
            process.stdin.close()
        return self.report

    def set_paused(self, is_paused: bool) -> None:
        """Tell the process to pause or to continue. Before it has its order, the order will say so."""
        process = self._process
        if process is not None and process.stdin is not None and self._has_order and not process.stdin.is_closing():
            process.stdin.write(PAUSE if is_paused else UNPAUSE)

    def kill(self) -> None:
        """Kill the process if there is one."""
        if self._process is not None and self._process.returncode is None:
            self._was_killed_by_us = True
            with suppress(ProcessLookupError):
                self._process.kill()

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        return None if self._process is None else self._process.returncode

    def death(self) -> Death:
        """Return how the process died."""
        return Death(
            exit_code=self.exit_code,
            log_name=self._log_file.name,
            resident=self.report.counters.resident,
            was_killed_by_us=self._was_killed_by_us,
            oom_kills_before=self._oom_kills,
            oom_kills_after=self._count_oom_kills(),
        )

    async def _read_reports(self, output: asyncio.StreamReader) -> None:
        while True:
            line = b"(a line too long to read)"
            try:
                line = await output.readline()
                if not line:
                    return
                report = decode_report(line)
            except ValueError:
                log.warning("process %d wrote %r", self._order.number, line[:200])
                continue
            if report.news:
                self._on_news(report.news)
            elif report.failure:
                # The report of a failure has no counters, so keep the last ones.
                self.report = msgspec.structs.replace(
                    self.report,
                    counters=self.report.counters.ended(),
                    failure=report.failure,
                    exit_code=report.exit_code,
                )
            else:
                self.report = report


class Supervisor:
    """The Runner of a crawl in several processes of this machine."""

    def __init__(
        self,
        orders: Sequence[WorkerOrder],
        *,
        progress: Progress,
        clock: Callable[[], float],
        on_death: Callable[[int], Awaitable[None]],
        on_stop: Callable[[], None],
        say: Callable[[str], None],
        on_news: Callable[[str], None],
        log_of: Callable[[int], Path],
        command: Sequence[str] = WORKER_COMMAND,
        timing: Timing | None = None,
        count_oom_kills: Callable[[], Sequence[int]] = oom_kills,
    ) -> None:
        """Prepare one worker for each order.

        `on_death` is given the process number in the frontier of a worker that died, to clean up after it.
        `on_stop` is called once, when the crawl starts to stop. `log_of` returns the log file of a worker, which takes
        its standard error.
        """
        self._orders = orders
        self._workers: dict[int, _WorkerProcess] = {}
        """The current worker for each order, by the order's number."""
        self.progress = progress
        self._clock = clock
        self._on_death = on_death
        self._on_stop = on_stop
        self._say = say
        self._on_news = on_news
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
            self._on_stop()
            self._stopping.set()

    def set_paused(self, is_paused: bool) -> None:
        """Tell all workers, and those that are started later, to start no new visits, or to start them again."""
        self._is_paused = is_paused
        for worker in self._workers.values():
            worker.set_paused(is_paused)

    def kill(self) -> None:
        """Kill all workers at once. The next start recovers what they leave behind."""
        for worker in self._workers.values():
            worker.kill()

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
        pause = self._timing.first_pause
        while True:
            began = self._clock()
            worker = _WorkerProcess(
                order,
                command=self._command,
                log_file=self._log_of(order.number),
                on_news=self._on_news,
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
            await self._on_death(report.process)
            if self._ending is not None:
                return self._ending
            if self._clock() - began > self._timing.steady:
                pause = self._timing.first_pause
            log.warning(
                "%s", log_line("death", worker=order.number, process=report.process, why=death, restart_in_s=pause)
            )
            if worker.exit_code != TRY_LATER:
                self._say(f"process {order.number} died ({death}); restarting it in {pause:.0f} s")
            await wait_for_event(self._stopping, pause)
            if self._stopping.is_set():
                return Ending.STOPPED
            pause = min(2 * pause, self._timing.longest_pause)

    async def _keep_marking(self) -> None:
        while True:
            self._update_progress()
            self.progress.mark(self._clock())
            await asyncio.sleep(self._timing.mark)

    def _update_progress(self) -> None:
        counters = (worker.report.counters for worker in self._workers.values())
        self.progress.update(sum(counters, self._ended_workers))


async def _stop_when_set(stopping: asyncio.Event, process: asyncio.subprocess.Process, seconds: float) -> None:
    """Close the worker's standard input when the crawl stops, and kill the worker if that does not help."""
    await stopping.wait()
    assert process.stdin is not None, "it is a pipe"
    with suppress(ConnectionError):
        process.stdin.close()
    await asyncio.sleep(seconds)
    log.error("the process with id %d does not stop; killing it", process.pid)
    process.kill()


def _opened_for_errors(log_file: Path) -> BinaryIO:
    """Open the file that takes a worker's standard error; nothing takes it where the log cannot be opened."""
    try:
        return log_file.open("ab", buffering=0)
    except OSError as error:
        log.warning("%s cannot be opened for the errors of a worker: %s", log_file, error.strerror)
        return Path(os.devnull).open("ab", buffering=0)


async def _all_or_first_failure(lives: list[asyncio.Task[Ending]], loading: asyncio.Task[None]) -> None:
    """Wait until all workers have ended; raise the first failure of a worker or of the seed loader."""
    pending: set[asyncio.Future[Any]] = {*lives, loading}
    while not all(life.done() for life in lives):
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
