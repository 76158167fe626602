"""Run one contestant on a fresh web and measure its steady state from outside.

The first seconds (start, first connections, empty caches) and the end do not count. Pages are counted in the server's
log; CPU time and memory come from the operating system. The contestant's own counts are compared with these.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from tests.judge import judge
from tests.postgres import own_server

from benchmarks.contestants import CRAWLS, LOOPS, Trial, command_of, python_of
from benchmarks.watch import Watch
from benchmarks.web import BenchmarkFailed, ServedWeb, served
from rove.demo.log import LoggedRequest, LogKind

SERVER_SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "4GB"}
"""PostgreSQL's defaults with more memory. fsync is on: what is committed is on the disk."""
PATIENCE = 90.0
"""Seconds that a run may take longer than planned."""
POLL = 0.1
STOPPED = 130
"""The exit code of a crawl that was stopped by Ctrl-C."""
Prepare = Callable[["Ground"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The web, folder and database of one run."""

    folder: Path
    web: ServedWeb
    database: str
    """The URL of PostgreSQL; '' for SQLite."""
    database_process: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The measurements of one contestant in one run. Rates are those of the steady state."""

    contestant: str
    pages_per_s: float
    requests_per_s: float
    connections_per_s: float
    in_flight: float
    """The average number of requests that the server was answering."""
    crawler_ms: float
    """CPU milliseconds of the crawler per page, SQLite included."""
    database_ms: float
    """CPU milliseconds of PostgreSQL per page."""
    server_ms: float
    crawler_cores: float
    """CPU seconds per second."""
    database_cores: float
    server_cores: float
    other_cores: float
    """CPU seconds per second of everything else on the machine, including the kernel's work for loopback."""
    peak_rss: int
    """The largest sum over the crawler's processes in the whole run."""
    peak_process_rss: int
    """The peak of the largest process."""
    in_flight_by_second: list[int]
    """The requests that the server was answering, second by second, from the first request on."""
    rss_by_second: list[int]
    """The largest process, second by second."""
    errors: dict[str, int]
    pages_logged: int
    """Pages of the whole run by the server's log."""
    pages_told: int
    """Pages of the whole run by the contestant's own count."""
    seconds: float
    details: dict[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return asdict(self)


@contextmanager
def ground(contestant: str, trial: Trial) -> Iterator[Ground]:
    """Create a web, a folder and, if needed, a database for one run, and remove them afterwards."""
    with TemporaryDirectory(prefix="rove-bench-") as name, served(trial.plan, Path(name)) as web:
        given: dict[str, Any] = {"folder": Path(name), "web": web}
        if not CRAWLS.get(contestant, (1, False))[1]:
            yield Ground(**given, database="", database_process=None)
            return
        with own_server(SERVER_SETTINGS) as server:
            yield Ground(**given, database=server.url, database_process=_process_of(server.url))


@contextmanager
def started(command: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command in a process group of its own and kill it at the end of the block."""
    with (folder / "output").open("wb") as out, (folder / "messages").open("wb") as messages:
        process = subprocess.Popen(command, stdout=out, stderr=messages, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def ended(process: subprocess.Popen[bytes], folder: Path, seconds: float, *codes: int) -> None:
    """Wait until a command has ended, and check its exit code."""
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        raise BenchmarkFailed(f"still running after {seconds:.0f} s: {process.args!r}") from None
    if code not in (codes or (0,)):
        said = (folder / "messages").read_text(errors="replace")[-2_000:]
        raise BenchmarkFailed(f"ended with {code}: {process.args!r}\n{said}")


def measure(contestant: str, trial: Trial, prepare: Prepare | None = None) -> Figures:
    """Run one contestant on a fresh web, prepared by `prepare` if given, and return its figures."""
    with ground(contestant, trial) as here:
        folder = here.folder
        command = command_of(contestant, trial, here.web, folder, here.database)
        if prepare is not None:
            prepare(here)
            command.append("--resume")
        before = here.web.log_size
        with (
            started(command, folder) as process,
            Watch(process.pid, here.web.process, here.database_process) as watch,
        ):
            if contestant in CRAWLS:
                let_run(process, here.web, before, trial.lasts(contestant))
            ended(process, folder, trial.lasts(contestant) + PATIENCE, 0, STOPPED)
        told = told_by(contestant, trial, folder)
        here.web.stop()  # completes the log
        own = here.web.requests(before)
        if not own:
            raise BenchmarkFailed(f"{contestant} sent no request")
        begun = min(entry.start for entry in own)
        figures = _figures(contestant, trial, here.web.requests(), begun, watch, told)
        if contestant in CRAWLS:
            figures.details["longest_lag_s"] = longest_lag(folder / "data" / "rove.log")
        return figures


def let_run(process: subprocess.Popen[bytes], web: ServedWeb, before: int, seconds: float) -> None:
    """Let a crawl run for some seconds from its first request, then stop it with Ctrl-C."""
    wait_until(lambda: web.log_size > before, process, PATIENCE)
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    if process.poll() is None:
        process.send_signal(signal.SIGINT)


def wait_until(holds: Callable[[], bool], process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait until a condition holds while a process runs."""
    deadline = time.monotonic() + seconds
    while not holds():
        if process.poll() is not None:
            raise BenchmarkFailed(f"ended early, with {process.returncode}: {process.args!r}")
        if time.monotonic() > deadline:
            raise BenchmarkFailed(f"did not get that far within {seconds:.0f} s: {process.args!r}")
        time.sleep(POLL)


def told_by(contestant: str, trial: Trial, folder: Path) -> dict[str, Any]:
    """Return the contestant's own counts."""
    if contestant not in CRAWLS:
        told: dict[str, Any] = json.loads((folder / "output").read_text())
        return {**told, "errors": {"failed": told["errors"]} if told["errors"] else {}}
    python = python_of(contestant, trial)
    command = [python, "-m", "rove", "status", "--json", "--data-dir", f"{folder}/data"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    if answer.returncode:
        raise BenchmarkFailed(f"rove status: {answer.stderr}")
    status: dict[str, Any] = json.loads(answer.stdout)
    return status


def in_flight_by_second(log: Sequence[LoggedRequest], begun: float, end: float) -> list[int]:
    """Count the requests that had begun and not ended, second by second."""
    starts, ends = sorted(entry.start for entry in log), sorted(entry.end for entry in log)
    moments = (begun + second for second in range(int(end - begun) + 1))
    return [bisect_right(starts, moment) - bisect_right(ends, moment) for moment in moments]


def is_page(entry: LoggedRequest) -> bool:
    """Tell whether a whole page was served."""
    return entry.status == 200 and entry.complete and not entry.for_robots


def _figures(
    contestant: str,
    trial: Trial,
    log: list[LoggedRequest],
    begun: float,
    watch: Watch,
    told: dict[str, Any],
) -> Figures:
    """Compute the figures. The log includes the requests of a preparation, as the contestant's own counts do."""
    counts = is_page if LOOPS.get(contestant, ("",))[0] != "handshakes" else _is_answer
    pages = [entry for entry in log if counts(entry)]
    start = begun + trial.warm_up_of(contestant)
    seconds = trial.seconds_of(contestant)
    end = start + seconds
    inside = [entry for entry in pages if start <= entry.end < end]
    count = max(len(inside), 1)
    crawler = watch.used(lambda sample: sample.crawler_cpu, start, end)
    server = watch.used(lambda sample: sample.server_cpu, start, end)
    database = watch.used(lambda sample: sample.database_cpu, start, end)
    machine = watch.used(lambda sample: sample.machine_cpu, start, end)
    errors = Counter(told["errors"]) + Counter(fault for entry in log if (fault := _fault(entry)))
    details = {}
    if contestant in CRAWLS:
        details = _details_of_rove(trial, log, start, told)
        others = sum(trial.plan.is_other(entry.host) for entry in inside)
        details["other_pages_per_s"] = others / seconds
    requests = [entry for entry in log if start <= entry.end < end]
    return Figures(
        contestant=contestant,
        pages_per_s=len(inside) / seconds,
        requests_per_s=len(requests) / seconds,
        connections_per_s=sum(entry.connected for entry in requests) / seconds,
        in_flight=sum(max(0.0, min(e.end, end) - max(e.start, start)) for e in log) / seconds,
        crawler_ms=1000 * crawler / count,
        database_ms=1000 * database / count,
        server_ms=1000 * server / count,
        crawler_cores=crawler / seconds,
        database_cores=database / seconds,
        server_cores=server / seconds,
        other_cores=(machine - crawler - server - database) / seconds,
        peak_rss=max(sample.crawler_rss for sample in watch.samples),
        peak_process_rss=max(sample.largest_rss for sample in watch.samples),
        rss_by_second=[sample.largest_rss for sample in watch.samples[::4]],
        in_flight_by_second=in_flight_by_second(log, begun, end),
        errors=dict(errors),
        pages_logged=len(pages),
        pages_told=told["pages"],
        seconds=seconds,
        details=details,
    )


def _details_of_rove(trial: Trial, log: list[LoggedRequest], start: float, told: dict[str, Any]) -> dict[str, float]:
    """Return the figures that only a crawl has."""
    verdict = judge(trial.plan.web, log, trial.delay)
    return {
        "rules_broken": len(verdict.violations),
        "refetches": verdict.refetches,
        "requests_logged": len(log),
        "requests_told": told["requests"],
        "urls_per_page": sum(told["urls"].values()) / max(told["pages"], 1),
        "visits_per_host": told["pages"] / trial.plan.hosts,
        "leases": told["leases"],
        "leases_unasked": sum(told["leases_without_request"].values()),
        "visits_logged": _visits(log),
        **_share_of_ceiling(trial, log, start),
    }


def _visits(log: list[LoggedRequest]) -> int:
    """Count visits: one per page, and one for each host that was only asked for its robots.txt."""
    pages = [entry.host for entry in log if not entry.for_robots]
    return len(pages) + len({entry.host for entry in log} - set(pages))


def _share_of_ceiling(trial: Trial, log: list[LoggedRequest], start: float) -> dict[str, float]:
    """Return the share of visits that the delay allows. Each page is one visit because these webs have no redirects.

    The delay of a host starts when its visit has ended, so visits/s cannot exceed hosts / (delay + visit).
    """
    pages = [e for e in log if is_page(e) and start <= e.end < start + trial.seconds]
    mean = sum(entry.end - entry.start for entry in pages) / max(len(pages), 1)
    ceiling = trial.plan.hosts / (trial.delay + mean)
    rate = len(pages) / trial.seconds
    return {"politeness_ceiling": ceiling, "share_of_ceiling": rate / ceiling}


def longest_lag(log: Path) -> float:
    """Return the longest stop of an event loop that the log tells of, in seconds."""
    return max((float(text) for text in re.findall(r" longest_lag_s=([0-9.]+)", log.read_text())), default=0.0)


def _is_answer(entry: LoggedRequest) -> bool:
    return entry.status == 200 and entry.complete


def _fault(entry: LoggedRequest) -> str:
    """Return what the server's log says is wrong with a request, or an empty string."""
    if entry.kind is LogKind.NOT_HTTP:
        return "rubbish"
    if not entry.complete:
        return "given up"
    return "" if entry.status == 200 else f"status {entry.status}"


def _process_of(url: str) -> int:
    """Return the process id of the PostgreSQL server that this process started on a port."""
    port = url.rpartition(":")[2].partition("/")[0]
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if port in child.cmdline():
                return int(child.pid)
    raise BenchmarkFailed(f"no process of PostgreSQL on port {port}")
