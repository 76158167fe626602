"""The contestants: their names, and the commands that start them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.loops import EMAIL
from benchmarks.web import ServedWeb, WebPlan, settings

SLACK = 1.5
"""Seconds that a contestant keeps running after the measurement."""
LOOP_WARM_UP = 5.0
HERE = Path(__file__).parent
ROVE = "rove"
OTHER_TREE = "other-tree-2"
CRAWLS = {
    ROVE: (1, False),
    "rove-2": (2, False),
    "rove-4": (4, False),
    "postgres": (1, True),
    "postgres-2": (2, True),
    "postgres-4": (4, True),
    OTHER_TREE: (2, False),
}
"""The real command: the number of processes, and whether the frontier is on PostgreSQL."""
LOOPS = {
    "raw": ("raw", 1),
    "raw-2": ("raw", 2),
    "fetch": ("fetch", 1),
    "handshakes-2": ("handshakes", 2),
    "bare": ("bare", 1),
    "bare-2": ("bare", 2),
    "lexbor": ("lexbor", 1),
    "lexbor-2": ("lexbor", 2),
}
"""The kind of the loop, and the number of processes."""
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
    "lexbor": "loop of pycurl + Lexbor",
    "lexbor-2": "loop of pycurl + Lexbor, 2 processes",
    ROVE: "rove, SQLite",
    "rove-2": "rove, SQLite, 2 processes",
    "rove-4": "rove, SQLite, 4 processes",
    "postgres": "rove, PostgreSQL",
    "postgres-2": "rove, PostgreSQL, 2 processes",
    "postgres-4": "rove, PostgreSQL, 4 processes",
    OTHER_TREE: "rove of the other tree, SQLite, 2 processes",
    SCRAPY: "Scrapy, no delay",
    SCRAPY_PLAIN: "Scrapy, no delay, plain queue",
    SCRAPY_DELAYED: "Scrapy, with the delay",
}
CONTESTANTS = tuple(NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The conditions under which each contestant runs."""

    plan: WebPlan
    concurrency: int | str
    """Fetches in flight. 'auto' is for crawls only."""
    delay: float
    warm_up: float
    """Seconds until a crawl is in its steady state. The loops need less."""
    seconds: float
    """Seconds that a crawl is measured for. The loops are steadier and get half."""
    other_python: str = ""
    """The Python of the other source tree (see `python_of`)."""

    def warm_up_of(self, contestant: str) -> float:
        """Return the seconds that a contestant runs before it is measured."""
        return min(self.warm_up, LOOP_WARM_UP) if contestant in LOOPS else self.warm_up

    def seconds_of(self, contestant: str) -> float:
        """Return the seconds that a contestant is measured for."""
        return self.seconds / 2 if contestant in LOOPS else self.seconds

    def lasts(self, contestant: str) -> float:
        """Return the seconds that a contestant runs in all."""
        return self.warm_up_of(contestant) + self.seconds_of(contestant) + SLACK


def is_there(contestant: str) -> bool:
    """Tell whether a contestant is installed."""
    return not contestant.startswith(SCRAPY) or find_spec("scrapy") is not None


def command_of(contestant: str, trial: Trial, web: ServedWeb, folder: Path, database: str) -> list[str]:
    """Return the command that starts a contestant. A crawl runs until it is stopped."""
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


def crawl_command(contestant: str, trial: Trial, web: ServedWeb, folder: Path, database: str) -> list[str]:
    """Return the command for a crawl that runs until it is stopped."""
    return [
        *(
            python_of(contestant, trial),
            "-m",
            "rove",
            "crawl",
            str(write_seeds(trial.plan, folder)),
        ),
        *("--email", EMAIL, "--data-dir", str(folder / "data")),
        *("--concurrency", str(trial.concurrency), "--processes", str(CRAWLS[contestant][0])),
        *("--delay", str(trial.delay), "--allow-short-delay"),
        *("--connect-to", web.connect_to, "--allow-private-addresses"),
        *(("--frontier", database) if database else ()),
    ]


def python_of(contestant: str, trial: Trial) -> str:
    """Return the Python whose rove a contestant runs: ours, or that of another source tree."""
    return trial.other_python if contestant == OTHER_TREE else sys.executable


def write_seeds(plan: WebPlan, folder: Path) -> Path:
    """Write the seed file, unless it is there."""
    file = folder / "seeds.txt"
    if not file.exists():
        with file.open("w") as lines:
            lines.writelines(f"{url}\n" for url in plan.seeds())
    return file
