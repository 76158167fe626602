"""The contestants: a command each, run on a small web of its own and measured in its steady state.

The first seconds are left out (starting, the first connections, empty caches), and so is the end.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.postgres import own_server

from loops import EMAIL
from rove.demo.log import LoggedRequest, LogKind, judge
from watch import Watch
from web import ServedWeb, WebPlan, served

SERVER_SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "4GB"}
"""PostgreSQL as it comes, with some memory: what it says is committed is on the disk."""
SLACK = 1.5
"""Seconds that a contestant runs on after what is measured of it."""
LOOPS = Path(__file__).with_name("loops.py")
ROVE = "rove"
CRAWLS = {
    ROVE: (1, False),
    "rove-2": (2, False),
    "rove-4": (4, False),
    "postgres": (1, True),
    "postgres-2": (2, True),
    "postgres-4": (4, True),
}
"""The real command: how many processes, and whether on PostgreSQL."""
LOOP_NAMES = ("raw", "fetch", "bare")
CONTESTANTS = (*LOOP_NAMES, *CRAWLS)
USUAL = (*LOOP_NAMES, ROVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How each contestant is run."""

    plan: WebPlan
    concurrency: int
    delay: float
    warm_up: float
    seconds: float
    """What is measured of rove; the loops, which are steadier, get half."""

    def seconds_of(self, contestant: str) -> float:
        """What is measured of a contestant."""
        return self.seconds if contestant in CRAWLS else self.seconds / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One contestant in one round. Rates are of the steady state, from the server's log and /proc."""

    contestant: str
    pages_per_s: float
    requests_per_s: float
    crawler_ms: float
    """CPU milliseconds of the crawler per page."""
    server_ms: float
    crawler_cores: float
    """CPU seconds per second."""
    server_cores: float
    other_cores: float
    """What all else on the machine used, the kernel's share for loopback included."""
    peak_rss: int
    """Of the crawler, over the whole run."""
    rss_by_second: list[int]
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


def measure(contestant: str, trial: Trial) -> Figures:
    """Run one contestant on a fresh web and see what it does."""
    with TemporaryDirectory(prefix="rove-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        on_postgres = CRAWLS.get(contestant, (1, False))[1]
        database = stack.enter_context(own_server(SERVER_SETTINGS)).url if on_postgres else ""
        with served(trial.plan, folder) as web:
            command = command_of(contestant, trial, web, folder, database)
            output, messages = folder / "output", folder / "messages"
            with (
                output.open("w") as out,
                messages.open("w") as err,
                subprocess.Popen(command, stdout=out, stderr=err) as process,
                Watch(process.pid, web.process) as watch,
            ):
                code = process.wait()
            if code != 0:
                said = messages.read_text()
                raise SystemExit(f"{said}{contestant} ended with {code}: {' '.join(command)}")
            told = _told(contestant, output, folder)
        # The server has ended, so the log is whole.
        return _figures(contestant, trial, web, watch, told)


def command_of(
    contestant: str, trial: Trial, web: ServedWeb, folder: Path, database: str
) -> list[str]:
    """How a contestant is started; with a database, its frontier is there."""
    lasts = trial.warm_up + trial.seconds_of(contestant) + SLACK
    if contestant in CRAWLS:
        seeds = folder / "seeds.txt"
        seeds.write_text("".join(f"http://{host}/\n" for host in trial.plan.web.seeds()))
        return [
            *(sys.executable, "-m", "rove", "crawl", str(seeds), "--email", EMAIL),
            *("--data-dir", str(folder / "data"), "--concurrency", str(trial.concurrency)),
            *("--delay", str(trial.delay), "--allow-short-delay", "--max-duration", f"{lasts}s"),
            *("--connect-to", web.connect_to, "--allow-private-addresses"),
            *("--processes", str(CRAWLS[contestant][0])),
            *(("--frontier", database) if database else ()),
        ]
    knobs = [word for knob in trial.plan.knobs for word in ("--set", knob)]
    return [
        *(sys.executable, str(LOOPS), contestant, "--address", web.address, *knobs),
        *("--hosts", str(trial.plan.hosts), "--concurrency", str(trial.concurrency)),
        *("--seconds", str(lasts)),
    ]


def _told(contestant: str, output: Path, folder: Path) -> dict[str, Any]:
    """What the contestant says of itself."""
    if contestant not in CRAWLS:
        told: dict[str, Any] = json.loads(output.read_text())
        return {**told, "errors": {"failed": told["errors"]} if told["errors"] else {}}
    command = [sys.executable, "-m", "rove", "status", "--json", "--data-dir", f"{folder}/data"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    status: dict[str, Any] = json.loads(answer.stdout)
    return status


def _figures(
    contestant: str, trial: Trial, web: ServedWeb, watch: Watch, told: dict[str, Any]
) -> Figures:
    log = web.requests()
    pages = [entry for entry in log if is_page(entry)]
    first = min(entry.start for entry in log)
    start = first + trial.warm_up
    seconds = trial.seconds_of(contestant)
    end = start + seconds
    count = sum(start <= entry.end < end for entry in pages)
    crawler = watch.used(lambda sample: sample.crawler_cpu, start, end)
    server = watch.used(lambda sample: sample.server_cpu, start, end)
    machine = watch.used(lambda sample: sample.machine_cpu, start, end)
    errors = Counter(told["errors"]) + Counter(_fault(entry) for entry in log if _fault(entry))
    details = _details_of_rove(trial, log, count / seconds, told) if contestant in CRAWLS else {}
    return Figures(
        contestant=contestant,
        pages_per_s=count / seconds,
        requests_per_s=sum(start <= entry.end < end for entry in log) / seconds,
        crawler_ms=1000 * crawler / max(count, 1),
        server_ms=1000 * server / max(count, 1),
        crawler_cores=crawler / seconds,
        server_cores=server / seconds,
        other_cores=(machine - crawler - server) / seconds,
        peak_rss=max(sample.crawler_rss for sample in watch.samples),
        rss_by_second=[sample.crawler_rss for sample in watch.samples[::4]],
        errors=dict(errors),
        pages_logged=len(pages),
        pages_told=told["pages"],
        seconds=seconds,
        details=details,
    )


def _details_of_rove(
    trial: Trial, log: list[LoggedRequest], visits_per_s: float, told: dict[str, Any]
) -> dict[str, float]:
    """What only a crawl has: each page is one visit, as this web has no redirects."""
    ceiling = trial.plan.hosts / trial.delay
    verdict = judge(trial.plan.web, log, trial.delay)
    return {
        "politeness_ceiling": ceiling,
        "share_of_ceiling": visits_per_s / ceiling,
        "rules_broken": len(verdict.violations),
        "refetches": verdict.refetches,
        "requests_logged": len(log),
        "requests_told": told["requests"],
        "urls_per_page": sum(told["urls"].values()) / max(told["pages"], 1),
        "visits_per_host": told["pages"] / trial.plan.hosts,
    }


def is_page(entry: LoggedRequest) -> bool:
    """Whether a page was served, whole."""
    return entry.status == 200 and entry.complete and not entry.for_robots


def _fault(entry: LoggedRequest) -> str:
    """What is wrong with a request, by the server's log; '' if nothing is."""
    if entry.kind is LogKind.RUBBISH:
        return "rubbish"
    if not entry.complete:
        return "given up"
    return "" if entry.status == 200 else f"status {entry.status}"
