"""One worker process: how a parent starts it, tells it what to do, reads its reports and learns how it died."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from rove.app.death import Death
from rove.app.worker import PAUSE, UNPAUSE, WorkerOrder, WorkerReport, decode_report
from rove.errors import RoveError
from rove.model.samples import Sample
from rove.resources.process_state import oom_kills

LONGEST_REPORT = 1 << 20
"""Bytes of a line that a worker writes. One with a sample has some ten thousand."""
WORKER_COMMAND = (sys.executable, "-P", "-m", "rove.app.worker")

log = logging.getLogger(__name__)


class WorkerFailed(RoveError):
    """A worker met an error that ends the whole crawl."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


class WorkerProcess:
    """One worker process while it lives, and its last report."""

    def __init__(
        self,
        order: WorkerOrder,
        *,
        log_file: Path,
        on_news: Callable[[str], None],
        on_sample: Callable[[str, Sample], None],
        command: Sequence[str] = WORKER_COMMAND,
        count_oom_kills: Callable[[], Sequence[int]] = oom_kills,
    ) -> None:
        """`log_file` takes its standard error; `on_news` is given its news, sentences for the user.

        `on_sample` is given its name and its samples.
        """
        self._order = order
        self._log_file = log_file
        self._count_oom_kills = count_oom_kills
        self._oom_kills = count_oom_kills()
        self._was_killed_by_us = False
        self._command = command
        self._on_news = on_news
        self._on_sample = on_sample
        self._process: asyncio.subprocess.Process | None = None
        self._has_order = False
        self.report = WorkerReport()

    async def run(self, stopping: asyncio.Event, stop_seconds: float, *, is_paused: Callable[[], bool]) -> WorkerReport:
        """Start the process and wait until it is gone; return its last report."""
        with _opened_for_errors(self._log_file) as errors:
            process = self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                limit=LONGEST_REPORT,
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
    def was_killed_by_us(self) -> bool:
        """Whether the parent has killed the process."""
        return self._was_killed_by_us

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
            if report.sample is not None:
                self._on_sample(self._order.name, report.sample)
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
                self.report = msgspec.structs.replace(report, sample=None)


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
    """Open the file that takes a worker's standard error: its log, or /dev/null if that cannot be opened."""
    try:
        return log_file.open("ab", buffering=0)
    except OSError as error:
        log.warning("%s cannot be opened for the errors of a worker: %s", log_file, error.strerror)
        return Path(os.devnull).open("ab", buffering=0)
