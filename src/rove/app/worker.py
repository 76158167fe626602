"""One crawling process of several: `python -m rove.app.worker`, started by the supervisor.

It is told what to do in one line on its standard input, and reports in lines on its standard output. When its
standard input ends, be it by a line that says so or because the supervisor is gone, it stops in good order.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path

import msgspec
import uvloop

from rove.app.process import assembled, start_logging
from rove.config import Settings
from rove.crawl.limits import RemainingLimits
from rove.crawl.loop import Crawl
from rove.crawl.progress import Progress
from rove.crawl.shutdown import Ending
from rove.datadir import DataDir, Remote
from rove.errors import RoveError, Unreachable
from rove.frontier.backends import backend_for, policy_of
from rove.frontier.clock import steady_seconds
from rove.resources.runtime import tune_process

REPORT_SECONDS = 0.5
NOT_NOW = 75
"""The exit code of a process that could not begin, but might later."""

log = logging.getLogger("rove.app.worker")


class WorkOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is to do."""

    data_dir: str
    remote: Remote | None
    settings: Settings
    run: int
    number: int
    """Which of the processes this is, from 1."""
    concurrency: int
    seconds_before: float
    started: float
    """When the run began, by the steady clock of this machine."""
    log_level: str


class WorkerReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a process says of itself: how far it is since it began, and at its end how it ended."""

    process: int = 0
    """Its number in the frontier, once it has one."""
    pages: int = 0
    visits: int = 0
    requests: int = 0
    bytes: int = 0
    in_flight: int = 0
    queued: int = 0
    trouble: str = ""
    """What slows it down."""
    errors: dict[str, int] = {}
    news: str = ""
    """A sentence for the person who watches."""
    ending: str = ""
    failure: str = ""
    """What ended it; a sentence for the person who watches."""
    exit_code: int = 0


def main() -> None:
    """Do what the first line of standard input orders."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches every process; the supervisor passes it on
    tune_process()
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=WorkOrder)
    start_logging(DataDir(Path(order.data_dir)).log_of(order.number), order.log_level)
    try:
        uvloop.run(_Worker(order).run())
    except Unreachable as error:
        log.warning("%s", error)
        send(WorkerReport(news=f"the database is away ({error}); waiting for it"))
        sys.exit(NOT_NOW)
    except RoveError as error:
        log.error("%s", error, exc_info=error)
        send(WorkerReport(failure=str(error), exit_code=error.exit_code))
        sys.exit(error.exit_code)
    except Exception:
        log.exception("this is a bug")
        sys.exit(1)


def send(report: WorkerReport) -> None:
    """Write a report; when nobody reads it any more, that is no reason to fail."""
    try:
        os.write(sys.stdout.fileno(), msgspec.json.encode(report) + b"\n")
    except OSError:
        log.debug("nobody reads the reports")


class _Worker:
    """The process's life."""

    def __init__(self, order: WorkOrder) -> None:
        self._order = order
        self._data = DataDir(Path(order.data_dir))
        self._process = 0
        self._under_way: Crawl | None = None

    async def run(self) -> None:
        """Crawl as ordered, and say how it ended."""
        order = self._order
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._heard)
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
                    concurrency=order.concurrency,
                    name=f"rove-{order.number}",
                    remaining_limits=RemainingLimits(
                        limits=order.settings.limits,
                        seconds_before=order.seconds_before,
                        started=order.started,
                        clock=steady_seconds,
                    ),
                    on_news=self._tell,
                ) as crawl:
                    ending = await self._crawl(crawl)
            finally:
                await backend.close()
        log.info("%s after %d pages", ending, crawl.progress.pages)
        self._report(crawl.progress, ending=ending)

    async def _crawl(self, crawl: Crawl) -> Ending:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, crawl.stop)
        self._under_way = crawl
        reporting = asyncio.create_task(self._keep_reporting(crawl))
        try:
            return await crawl.run()
        finally:
            reporting.cancel()
            loop.remove_reader(sys.stdin.fileno())

    def _heard(self) -> None:
        """Whatever comes after the order, and its end too, means: stop."""
        os.read(sys.stdin.fileno(), 4096)
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        log.info("told to stop")
        if self._under_way is None:
            # Nothing has begun; it may be waiting for a database that is away.
            send(WorkerReport(ending=Ending.STOPPED))
            os._exit(0)
        self._under_way.stop()

    async def _keep_reporting(self, crawl: Crawl) -> None:
        while True:
            self._report(crawl.progress)
            await asyncio.sleep(REPORT_SECONDS)

    def _report(self, progress: Progress, *, ending: Ending | None = None) -> None:
        send(
            WorkerReport(
                process=self._process,
                pages=progress.pages,
                visits=progress.visits,
                requests=progress.requests,
                bytes=progress.bytes,
                in_flight=progress.in_flight,
                queued=progress.queued,
                trouble=progress.trouble,
                errors=dict(progress.errors),
                ending=ending or "",
            )
        )

    def _tell(self, sentence: str) -> None:
        log.warning("%s", sentence)
        send(WorkerReport(process=self._process, news=sentence))


if __name__ == "__main__":
    main()
