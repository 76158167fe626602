"""One crawling process of several: `python -m rove.app.worker`, started by the supervisor.

The supervisor writes one WorkerOrder to its standard input, and later PAUSE and UNPAUSE. It reads WorkerReports, one
per line, from the worker's standard output. The worker shuts down when its standard input is closed, so it also stops
if the supervisor is killed.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from rove.admin.diagnose import SIGNAL
from rove.app.crawl_log import CrawlLog
from rove.app.diagnosis import Diagnosis
from rove.app.log_file import start_logging
from rove.app.process import assembled
from rove.app.process_samples import current_slot
from rove.config import Settings
from rove.crawl.limits import RemainingLimits
from rove.crawl.loop import Crawl
from rove.crawl.progress import Counters
from rove.crawl.shutdown import Ending
from rove.datadir import DataDir, Remote
from rove.errors import RoveError, Unreachable
from rove.frontier.backends import backend_for, policy_of
from rove.model.samples import Sample
from rove.notation.log_line import log_line
from rove.policy.concurrency import Bounds
from rove.policy.outage import OutageRules
from rove.resources import activity
from rove.resources.runtime import tune_process

REPORT_SECONDS = 0.5
TRY_LATER = os.EX_TEMPFAIL
"""Exit code of a worker that cannot reach the database."""
PAUSE, UNPAUSE = b"pause\n", b"unpause\n"
"""What the supervisor may write after the order."""

log = logging.getLogger("rove.app.worker")


class WorkerOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a worker needs to know to start."""

    data_dir: bytes
    """The path as the kernel knows it: JSON has no place for a name that is not UTF-8."""
    remote: Remote | None
    settings: Settings
    run: int
    number: int
    """The number of the worker on this machine, from 1; 0 for trials."""
    bounds: Bounds
    processes: int
    """How many workers this machine has."""
    seconds_before: float
    started: float
    """When the run began, by this machine's steady clock."""
    log_level: str
    outage_rules: OutageRules
    backoffs_end: float
    """Until then, by this machine's steady clock, wait for sites that kept failing in an earlier run."""
    is_paused: bool = False
    """Start no visit until UNPAUSE."""
    is_trial: bool = False
    """Only try suspects, one at a time, and end when none is due."""

    @property
    def name(self) -> str:
        """The name of the worker in its log and in its WARC files."""
        return "trial" if self.is_trial else str(self.number)


class WorkerReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line from a worker: its counters since it began, a sample, some news, or how it ended."""

    process: int = 0
    """The worker's process number in the frontier; 0 until it has one."""
    counters: Counters = msgspec.field(default_factory=Counters)
    sample: Sample | None = None
    """What the worker has done since its last sample; about every two seconds."""
    news: str = ""
    """A sentence for the user."""
    ending: str = ""
    failure: str = ""
    """The error that ended the worker, as a sentence for the user."""
    exit_code: int = 0


def decode_report(line: bytes) -> WorkerReport:
    """Decode a line of a worker's standard output; ValueError if it is not a report."""
    return msgspec.json.decode(line, type=WorkerReport, dec_hook=_counter)


def _counter(kind: type, value: Any) -> Counter[str]:
    return Counter(msgspec.convert(value, dict[str, int]))


def main() -> None:
    """Carry out the order on standard input."""
    # Ctrl-C and a closed terminal reach every process of the terminal; the supervisor tells its workers what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(SIGNAL, signal.SIG_IGN)
    tune_process()
    # Unbuffered, because more lines may follow.
    line = io.FileIO(sys.stdin.fileno(), closefd=False).readline()
    order = msgspec.json.decode(line, type=WorkerOrder)
    activity.begin(f"crawl, process {order.name}")
    try:
        log_file = DataDir(Path(os.fsdecode(order.data_dir))).log_of(order.name)
        start_logging(log_file, order.log_level, takes_stderr=True)
        diagnosis = Diagnosis(f"rove-{order.name}", log_file)
        diagnosis.install()
        uvloop.run(_Worker(order, diagnosis).run())
    except Unreachable as error:
        log.warning("%s", error)
        send(WorkerReport(news=f"the database is away ({error}); waiting for it"))
        sys.exit(TRY_LATER)
    except RoveError as error:
        log.error("%s", error, exc_info=error)
        send(WorkerReport(failure=str(error), exit_code=error.exit_code))
        sys.exit(error.exit_code)
    except Exception:
        log.exception("unexpected error; this is a bug")
        sys.exit(1)


def send(report: WorkerReport) -> None:
    """Write a report to standard output."""
    try:
        os.write(sys.stdout.fileno(), msgspec.json.encode(report) + b"\n")
    except OSError:
        log.debug("the supervisor is gone; nobody reads this report")


class _Worker:
    """The crawl of one worker process, from its order to its last report."""

    def __init__(self, order: WorkerOrder, diagnosis: Diagnosis) -> None:
        self._order = order
        self._diagnosis = diagnosis
        self._data = DataDir(Path(os.fsdecode(order.data_dir)))
        self._process = 0
        self._crawl: Crawl | None = None
        self._is_paused = order.is_paused

    async def run(self) -> None:
        """Crawl until the end, then report how it ended."""
        order = self._order
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._obey)
        backend = backend_for(self._data, order.remote, on_news=self._tell)
        with self._data.worked_in():
            try:
                await backend.open()
                frontier = await backend.begin(policy_of(order.settings), order.run)
                self._process = frontier.process
                async with assembled(
                    data=self._data,
                    settings=order.settings,
                    frontier=frontier,
                    catalog=backend.catalog,
                    bounds=order.bounds,
                    processes=order.processes,
                    name=f"rove-{order.name}",
                    process=order.name,
                    remaining_limits=RemainingLimits(
                        limits=order.settings.limits, seconds_before=order.seconds_before, started=order.started
                    ),
                    on_news=self._tell,
                    outage_rules=order.outage_rules,
                    backoffs_end=order.backoffs_end,
                    is_trial=order.is_trial,
                ) as crawl:
                    log.info("%s", log_line("start", process=frontier.process, pid=os.getpid(), run=order.run))
                    async with CrawlLog(crawl.progress, frontier).written():
                        ending = await self._run(crawl)
            finally:
                await backend.close()
        log.info("%s", log_line("end", process=self._process, ending=ending, pages=crawl.progress.pages))
        self._report(crawl, has_sample=True, ending=ending)

    async def _run(self, crawl: Crawl) -> Ending:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, crawl.stop)
        self._crawl = crawl
        self._diagnosis.attach(crawl.accounts)
        crawl.set_paused(self._is_paused)
        reporting = asyncio.create_task(self._keep_reporting(crawl))
        try:
            return await crawl.run()
        finally:
            reporting.cancel()
            loop.remove_reader(sys.stdin.fileno())

    def _obey(self) -> None:
        """Do what the supervisor has written, or shut down if it has closed standard input."""
        written = os.read(sys.stdin.fileno(), 4096)
        if not written:
            self._stop()
            return
        self._is_paused = written.splitlines(keepends=True)[-1] == PAUSE
        if self._crawl is not None:
            self._crawl.set_paused(self._is_paused)

    def _stop(self) -> None:
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        log.info("the supervisor closed standard input; stopping")
        if self._crawl is None:
            # The crawl has not begun and nothing has to be saved. `run` may hang in a connection attempt.
            send(WorkerReport(ending=Ending.STOPPED))
            os._exit(0)
        self._crawl.stop()

    async def _keep_reporting(self, crawl: Crawl) -> None:
        sampled = current_slot()
        while True:
            slot = current_slot()
            self._report(crawl, has_sample=slot != sampled)
            sampled = slot
            await asyncio.sleep(REPORT_SECONDS)

    def _report(self, crawl: Crawl, *, has_sample: bool, ending: Ending | None = None) -> None:
        sample = crawl.take_sample() if has_sample else None
        counters = crawl.progress.snapshot()
        send(WorkerReport(process=self._process, counters=counters, sample=sample, ending=ending or ""))

    def _tell(self, sentence: str) -> None:
        log.warning("%s", sentence)
        send(WorkerReport(process=self._process, news=sentence))


if __name__ == "__main__":
    main()
