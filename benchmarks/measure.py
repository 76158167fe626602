"""One contestant run on a fresh web and measured in its steady state, from outside.

The first seconds are left out (starting, the first connections, empty caches), and so is the end. Pages are counted in
the server's log, CPU time and memory are the operating system's; what the contestant says of itself is held against it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from tests.postgres import own_server

from benchmarks.contestants import CRAWLS, LOOPS, Trial, command_of
from benchmarks.watch import Watch
from benchmarks.web import BenchmarkFailed, ServedWeb, served
from rove.demo.judge import judge
from rove.demo.log import LoggedRequest, LogKind

SERVER_SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "4GB"}
"""PostgreSQL as it comes, with some memory: what it says is committed is on the disk."""
PATIENCE = 90.0
"""Seconds that a run may take longer than it should."""
POLL = 0.1
STOPPED = 130
"""The exit code of a crawl that was stopped by Ctrl-C."""
Prepare = Callable[["Ground"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a run takes place on."""

    folder: Path
    web: ServedWeb
    database: str
    """The URL of PostgreSQL; '' for SQLite."""
    database_process: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One contestant in one run. Rates are of the steady state, from the server's log and /proc."""

    contestant: str
    pages_per_s: float
    requests_per_s: float
    connections_per_s: float
    in_flight: float
    """Requests that the server was at, on average."""
    crawler_ms: float
    """CPU milliseconds of the crawler per page; SQLite works inside of it."""
    database_ms: float
    """Of PostgreSQL."""
    server_ms: float
    crawler_cores: float
    """CPU seconds per second."""
    database_cores: float
    server_cores: float
    other_cores: float
    """What all else on the machine used, the kernel's share for loopback included."""
    peak_rss: int
    """Of the crawler's processes together, over the whole run."""
    peak_process_rss: int
    """Of the largest of them."""
    rss_by_second: list[int]
    """Of the largest of them."""
    errors: dict[str, int]
    pages_logged: int
    """In the whole run, by the server's log."""
    pages_told: int
    """In the whole run, by the contestant itself."""
    seconds: float
    details: dict[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self)


@contextmanager
def ground(contestant: str, trial: Trial) -> Iterator[Ground]:
    """A web, a folder and perhaps a database of its own; all are gone afterwards."""
    with TemporaryDirectory(prefix="rove-bench-") as name, served(trial.plan, Path(name)) as web:
        given: dict[str, Any] = {"folder": Path(name), "web": web}
        if not CRAWLS.get(contestant, (1, False))[1]:
            yield Ground(**given, database="", database_process=None)
            return
        with own_server(SERVER_SETTINGS) as server:
            yield Ground(**given, database=server.url, database_process=_process_of(server.url))


@contextmanager
def started(command: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command in a process group of its own, which does not outlive this."""
    with (folder / "output").open("wb") as out, (folder / "messages").open("wb") as messages:
        process = subprocess.Popen(command, stdout=out, stderr=messages, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def ended(process: subprocess.Popen[bytes], folder: Path, seconds: float, *codes: int) -> None:
    """Wait until a command has ended, as it should have."""
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        raise BenchmarkFailed(f"not over after {seconds:.0f} s: {process.args!r}") from None
    if code not in (codes or (0,)):
        said = (folder / "messages").read_text(errors="replace")[-2_000:]
        raise BenchmarkFailed(f"ended with {code}: {process.args!r}\n{said}")


def measure(contestant: str, trial: Trial, prepare: Prepare | None = None) -> Figures:
    """Run one contestant on a fresh web, perhaps prepared, and see what it does."""
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
        told = told_by(contestant, folder)
        here.web.stop()  # its log is whole then
        own = here.web.requests(before)
        if not own:
            raise BenchmarkFailed(f"{contestant} asked for nothing")
        begun = min(entry.start for entry in own)
        return _figures(contestant, trial, here.web.requests(), begun, watch, told)


def let_run(process: subprocess.Popen[bytes], web: ServedWeb, before: int, seconds: float) -> None:
    """From its first request, for so long; then Ctrl-C. How long it took to start does not matter here."""
    wait_until(lambda: web.log_size > before, process, PATIENCE)
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    if process.poll() is None:
        process.send_signal(signal.SIGINT)


def wait_until(holds: Callable[[], bool], process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait until something holds, while a process runs."""
    deadline = time.monotonic() + seconds
    while not holds():
        if process.poll() is not None:
            raise BenchmarkFailed(f"ended early, with {process.returncode}: {process.args!r}")
        if time.monotonic() > deadline:
            raise BenchmarkFailed(f"not so far after {seconds:.0f} s: {process.args!r}")
        time.sleep(POLL)


def told_by(contestant: str, folder: Path) -> dict[str, Any]:
    """What the contestant says of itself."""
    if contestant not in CRAWLS:
        told: dict[str, Any] = json.loads((folder / "output").read_text())
        return {**told, "errors": {"failed": told["errors"]} if told["errors"] else {}}
    command = [sys.executable, "-m", "rove", "status", "--json", "--data-dir", f"{folder}/data"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    if answer.returncode:
        raise BenchmarkFailed(f"rove status: {answer.stderr}")
    status: dict[str, Any] = json.loads(answer.stdout)
    return status


def is_page(entry: LoggedRequest) -> bool:
    """Whether a page was served, whole."""
    return entry.status == 200 and entry.complete and not entry.for_robots


def _figures(
    contestant: str,
    trial: Trial,
    log: list[LoggedRequest],
    begun: float,
    watch: Watch,
    told: dict[str, Any],
) -> Figures:
    """The log holds what a preparation asked for as well, as the contestant's own counts do."""
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
        others = sum(entry.host not in trial.plan.few for entry in inside)
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
        errors=dict(errors),
        pages_logged=len(pages),
        pages_told=told["pages"],
        seconds=seconds,
        details=details,
    )


def _details_of_rove(
    trial: Trial, log: list[LoggedRequest], start: float, told: dict[str, Any]
) -> dict[str, float]:
    """What only a crawl has."""
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
    """A visit asks for one page; one that was cut short may have come no further than to a robots.txt."""
    pages = [entry.host for entry in log if not entry.for_robots]
    return len(pages) + len({entry.host for entry in log} - set(pages))


def _share_of_ceiling(trial: Trial, log: list[LoggedRequest], start: float) -> dict[str, float]:
    """How much of what the delay allows was done; each page is one visit, as these webs have no redirects.

    The clock of a host starts again when its visit has ended, so that visits/s cannot exceed hosts / (delay + visit).
    """
    pages = [e for e in log if is_page(e) and start <= e.end < start + trial.seconds]
    mean = sum(entry.end - entry.start for entry in pages) / max(len(pages), 1)
    ceiling = trial.plan.hosts / (trial.delay + mean)
    rate = len(pages) / trial.seconds
    return {"politeness_ceiling": ceiling, "share_of_ceiling": rate / ceiling}


def _is_answer(entry: LoggedRequest) -> bool:
    return entry.status == 200 and entry.complete


def _fault(entry: LoggedRequest) -> str:
    """What is wrong with a request, by the server's log; '' if nothing is."""
    if entry.kind is LogKind.NOT_HTTP:
        return "rubbish"
    if not entry.complete:
        return "given up"
    return "" if entry.status == 200 else f"status {entry.status}"


def _process_of(url: str) -> int:
    """The process of a PostgreSQL that this one has started, by its port."""
    port = url.rpartition(":")[2].partition("/")[0]
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if port in child.cmdline():
                return child.pid
    raise BenchmarkFailed(f"no process of PostgreSQL on port {port}")
