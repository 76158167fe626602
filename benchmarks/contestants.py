"""The contestants: what each is called and how it is started."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.loops import EMAIL
from benchmarks.web import ServedWeb, WebPlan, settings

SLACK = 1.5
"""Seconds that a contestant runs on after what is measured of it."""
LOOP_WARM_UP = 5.0
HERE = Path(__file__).parent
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
LOOPS = {
    "raw": ("raw", 1),
    "raw-2": ("raw", 2),
    "fetch": ("fetch", 1),
    "handshakes-2": ("handshakes", 2),
    "bare": ("bare", 1),
    "bare-2": ("bare", 2),
}
"""The loop's kind, and how many processes."""
SCRAPY = "scrapy"
SCRAPY_PLAIN = "scrapy-plain"
SCRAPY_DELAYED = "scrapy-delay"
SCRAPY_CONCURRENCY = 100
NAMES = {
    "raw": "server: bare sockets",
    "raw-2": "server: bare sockets, 2 processes",
    "handshakes-2": "fetch of robots.txt alone, 2 processes",
    "fetch": "fetch alone",
    "bare": "bare loop: fetch + parse",
    "bare-2": "bare loop, 2 processes",
    ROVE: "rove, SQLite",
    "rove-2": "rove, SQLite, 2 processes",
    "rove-4": "rove, SQLite, 4 processes",
    "postgres": "rove, PostgreSQL",
    "postgres-2": "rove, PostgreSQL, 2 processes",
    "postgres-4": "rove, PostgreSQL, 4 processes",
    SCRAPY: "Scrapy, no delay",
    SCRAPY_PLAIN: "Scrapy, no delay, plain queue",
    SCRAPY_DELAYED: "Scrapy, with the delay",
}
CONTESTANTS = tuple(NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How each contestant is run."""

    plan: WebPlan
    concurrency: int
    delay: float
    warm_up: float
    """Of a crawl, until it is as it stays; the loops are so at once."""
    seconds: float
    """What is measured of a crawl; the loops, which are steadier, get half."""

    def warm_up_of(self, contestant: str) -> float:
        """How long a contestant has run before it is measured."""
        return min(self.warm_up, LOOP_WARM_UP) if contestant in LOOPS else self.warm_up

    def seconds_of(self, contestant: str) -> float:
        """What is measured of a contestant."""
        return self.seconds / 2 if contestant in LOOPS else self.seconds

    def lasts(self, contestant: str) -> float:
        """How long it runs in all."""
        return self.warm_up_of(contestant) + self.seconds_of(contestant) + SLACK


def is_there(contestant: str) -> bool:
    """Whether a contestant is installed."""
    return not contestant.startswith(SCRAPY) or find_spec("scrapy") is not None


def command_of(
    contestant: str, trial: Trial, web: ServedWeb, folder: Path, database: str
) -> list[str]:
    """How a contestant is started; with a database, its frontier is there. A crawl has to be stopped."""
    if contestant in CRAWLS:
        return crawl_command(contestant, trial, web, folder, database)
    if contestant in LOOPS:
        kind, processes = LOOPS[contestant]
        return [
            *(sys.executable, "-m", "benchmarks.loops", kind, "--address", web.address),
            *settings(trial.plan.knobs),
            *("--hosts", str(trial.plan.hosts), "--concurrency", str(trial.concurrency)),
            *("--seconds", str(trial.lasts(contestant)), "--processes", str(processes)),
        ]
    delay = trial.delay if contestant == SCRAPY_DELAYED else 0.0
    return [
        *(sys.executable, "-m", "benchmarks.scrapy_spider", str(write_seeds(trial.plan, folder))),
        *("--port", str(web.port), "--seconds", str(trial.lasts(contestant) + SLACK)),
        *("--concurrency", str(SCRAPY_CONCURRENCY), "--delay", str(delay)),
        *("--queue", "plain" if contestant == SCRAPY_PLAIN else "recommended"),
    ]


def crawl_command(
    contestant: str, trial: Trial, web: ServedWeb, folder: Path, database: str
) -> list[str]:
    """A crawl with rove, without an end."""
    return [
        *(sys.executable, "-m", "rove", "crawl", str(write_seeds(trial.plan, folder))),
        *("--email", EMAIL, "--data-dir", str(folder / "data")),
        *("--concurrency", str(trial.concurrency), "--processes", str(CRAWLS[contestant][0])),
        *("--delay", str(trial.delay), "--allow-short-delay"),
        *("--connect-to", web.connect_to, "--allow-private-addresses"),
        *(("--frontier", database) if database else ()),
    ]


def write_seeds(plan: WebPlan, folder: Path) -> Path:
    """The file of seeds."""
    file = folder / "seeds.txt"
    if not file.exists():
        with file.open("w") as lines:
            lines.writelines(f"{url}\n" for url in plan.seeds())
    return file
