"""Several crawling processes on one frontier: started, watched, started again when they die, stopped together."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from rove.app.worker import NOT_NOW, WorkerReport, WorkOrder
from rove.crawl.progress import Progress
from rove.crawl.shutdown import Ending
from rove.errors import RoveError

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
STEADY_SECONDS = 300.0
"""A process that lived so long did not die of what the last one died of."""
STOP_SECONDS = 60.0
"""What processes get to end after they were told to; then they are killed."""
MARK_SECONDS = 1.0

log = logging.getLogger(__name__)


class WorkerFailed(RoveError):
    """A process ended itself, and the crawl with it, for a reason that a person can read."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


@dataclass(slots=True)
class _Member:
    """One place among the processes, and who has it."""

    order: WorkOrder
    report: WorkerReport = field(default_factory=WorkerReport)
    process: asyncio.subprocess.Process | None = None
    pause: float = FIRST_PAUSE


class Supervisor:
    """The processes of one machine."""

    def __init__(
        self,
        orders: list[WorkOrder],
        *,
        progress: Progress,
        clock: Callable[[], float],
        on_death: Callable[[int], Awaitable[None]],
        say: Callable[[str], None],
        on_news: Callable[[str], None],
        on_stop: Callable[[], None],
    ) -> None:
        """`on_death` looks after what a process that died, by its number in the frontier, has left behind."""
        self._on_news = on_news
        self._on_stop = on_stop
        self._members = [_Member(order) for order in orders]
        self.progress = progress
        self._clock = clock
        self._on_death = on_death
        self._say = say
        self._before = WorkerReport()
        """What processes that are gone had done."""
        self._ending: Ending | None = None
        self._stopping = asyncio.Event()

    def stop(self, ending: Ending = Ending.STOPPED) -> None:
        """Tell all processes to stop in good order."""
        if self._ending is None:
            self._ending = ending
            self._on_stop()
            self._stopping.set()

    def kill(self) -> None:
        """End all processes at once; they are made for that."""
        for member in self._members:
            if member.process is not None:
                with suppress(ProcessLookupError):
                    member.process.kill()

    async def run(self, feed: Callable[[], Awaitable[None]]) -> Ending:
        """Keep the processes going until they have come to the end of the crawl; `feed` loads the seeds meanwhile."""
        lives = [asyncio.create_task(self._keep(member)) for member in self._members]
        feeder = asyncio.ensure_future(feed())
        marking = asyncio.create_task(self._keep_marking())
        try:
            await _all_or_first_failure(lives, feeder)
            endings = [life.result() for life in lives]
        finally:
            self.stop()
            feeder.cancel()
            marking.cancel()
            await asyncio.gather(*lives, feeder, marking, return_exceptions=True)
            self._sum_up()
        return self._own_ending(endings)

    def _own_ending(self, endings: list[Ending]) -> Ending:
        if self._ending not in (None, Ending.STOPPED):
            assert self._ending is not None, "checked above"
            return self._ending
        for wanted in (Ending.MAX_PAGES, Ending.MAX_DURATION):
            if wanted in endings:
                return wanted
        return Ending.STOPPED if Ending.STOPPED in endings else Ending.EXHAUSTED

    async def _keep(self, member: _Member) -> Ending:
        """Have one place filled until whoever has it ends in good order."""
        while True:
            began = time.monotonic()
            last = await self._live(member)
            self._before = _summed([self._before, last])
            member.report = WorkerReport()
            if last.failure:
                self.stop()
                raise WorkerFailed(last.failure, last.exit_code)
            was_stopped_alone = last.ending == Ending.STOPPED and self._ending is None
            if last.ending and not was_stopped_alone:
                return Ending(last.ending)
            await self._on_death(last.process)
            if self._ending is not None:
                return self._ending
            if time.monotonic() - began > STEADY_SECONDS:
                member.pause = FIRST_PAUSE
            log.warning("process %d died (%s)", member.order.number, _how(member))
            if member.process is None or member.process.returncode != NOT_NOW:
                self._say(
                    f"process {member.order.number} died ({_how(member)}); "
                    f"it is started again in {member.pause:.0f} s"
                )
            with suppress(TimeoutError):
                async with asyncio.timeout(member.pause):
                    await self._stopping.wait()
                    return Ending.STOPPED
            member.pause = min(2 * member.pause, LONGEST_PAUSE)

    async def _live(self, member: _Member) -> WorkerReport:
        """Start a process and listen to it until it is gone; its last words."""
        member.process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-P", "-m", "rove.app.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        stopper = asyncio.create_task(self._stop_when_told(member.process))
        try:
            assert member.process.stdin is not None, "it was asked for"
            with suppress(ConnectionError):
                member.process.stdin.write(msgspec.json.encode(member.order) + b"\n")
                await member.process.stdin.drain()
            await self._listen(member)
            await member.process.wait()
        finally:
            stopper.cancel()
            with suppress(ProcessLookupError):
                member.process.kill()
        return member.report

    async def _listen(self, member: _Member) -> None:
        assert member.process is not None and member.process.stdout is not None, "it was asked for"
        while True:
            line = b"(a line too long to read)"
            try:
                line = await member.process.stdout.readline()
                if not line:
                    return
                report = msgspec.json.decode(line, type=WorkerReport)
            except ValueError:
                log.warning("process %d said %r", member.order.number, line[:200])
                continue
            if report.news:
                self._on_news(report.news)
            elif report.failure:
                kept = msgspec.structs.replace(
                    member.report, failure=report.failure, exit_code=report.exit_code, in_flight=0
                )
                member.report = kept
            else:
                member.report = report

    async def _stop_when_told(self, process: asyncio.subprocess.Process) -> None:
        await self._stopping.wait()
        assert process.stdin is not None, "it was asked for"
        with suppress(ConnectionError):
            process.stdin.close()
        await asyncio.sleep(STOP_SECONDS)
        log.error("process %d does not stop; it is killed", process.pid)
        process.kill()

    async def _keep_marking(self) -> None:
        while True:
            self._sum_up()
            self.progress.mark(self._clock())
            await asyncio.sleep(MARK_SECONDS)

    def _sum_up(self) -> None:
        total = _summed([self._before, *(member.report for member in self._members)])
        progress = self.progress
        progress.pages, progress.visits = total.pages, total.visits
        progress.requests, progress.bytes = total.requests, total.bytes
        progress.in_flight = sum(member.report.in_flight for member in self._members)
        progress.queued = sum(member.report.queued for member in self._members)
        progress.errors = Counter(total.errors)
        troubles = (member.report.trouble for member in self._members)
        progress.trouble = next(filter(None, troubles), "")


def _summed(reports: list[WorkerReport]) -> WorkerReport:
    errors: Counter[str] = Counter()
    for report in reports:
        errors.update(report.errors)
    return WorkerReport(
        pages=sum(report.pages for report in reports),
        visits=sum(report.visits for report in reports),
        requests=sum(report.requests for report in reports),
        bytes=sum(report.bytes for report in reports),
        errors=dict(errors),
    )


def _how(member: _Member) -> str:
    code = None if member.process is None else member.process.returncode
    if code is not None and code < 0:
        return f"signal {-code}"
    if code == 0:
        return "somebody stopped it"
    return f"exit code {code}; rove-{member.order.number}.log may tell why"


async def _all_or_first_failure(
    lives: list[asyncio.Task[Ending]], feeder: asyncio.Future[None]
) -> None:
    """Wait until all lives are over, or one of them or the feeder has failed, which is raised."""
    pending: set[asyncio.Future[Any]] = {*lives, feeder}
    while not all(life.done() for life in lives):
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
