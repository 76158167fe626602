"""Measure whether misbehaving servers slow down the others: the pace of healthy sites, alone and beside the zoo.

    .venv/bin/python -m benchmarks.zoo            # about three minutes
    .venv/bin/python -m benchmarks.zoo --quick

The healthy sites have more pages than there is time for, and the delay binds: undisturbed, each site gets one request
per delay. The zoo costs whatever keeps the event loop from that. 'Longest silence' shows it directly: the longest time
without a request to any healthy site. Crawls with and without the zoo take turns. The zoo runs in a process of its own,
so that its work does not slow down the healthy sites' server.

A site is left alone for ten times as long as its answer took, and a stall of our own looks like a slow answer. With a
delay of some seconds, as here, only long stalls are magnified by this; with half a second, nearly all are.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.zoo import healthy
from tests.zoo.animal import Animal
from tests.zoo.keeper import Zoo, opened

ROOT = Path(__file__).parent.parent

GOAL = 0.90
EMAIL = "benchmark@crawler.test"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The settings of a measurement."""

    hosts: int
    delay: float
    seconds: float
    rounds: int
    without: tuple[str, ...] = ()
    """Animals to leave out."""
    timeout: float | None = 5.0
    """Seconds that a request may take; None for rove's own default."""

    @property
    def pages(self) -> int:
        """More pages than can be requested in time."""
        return int(self.seconds / self.delay) + 10

    def sites(self, _forbidden: int) -> list[Animal]:
        """The healthy sites."""
        return healthy.animals(self.hosts, self.pages)


@dataclass(frozen=True, kw_only=True)
class Pace:
    """What the healthy sites saw of one crawl."""

    pages: int
    seconds: float
    silence: float
    """The longest time without a request to any of them."""

    @property
    def rate(self) -> float:
        """Pages per second."""
        return self.pages / self.seconds


def measure(plan: Plan, command: Sequence[str] = ()) -> Pace:
    """Run one crawl; `command` serves others beside the healthy sites, and prints their seeds and connect options."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sites = stack.enter_context(opened(plan.sites))
        seeds, reach = sites.seeds, sites.reach
        if command:
            others = stack.enter_context(_served(command))
            seeds = [*others["seeds"], *seeds]
            reach = ["--connect-to", f"healthy-*.test=127.0.0.1:{sites.port}", *others["reach"]]
        (folder / "seeds.txt").write_text("".join(f"{seed}\n" for seed in seeds))
        crawl = [sys.executable, "-m", "rove", "crawl", str(folder / "seeds.txt"), "--email", EMAIL]
        crawl += ["--data-dir", str(folder / "data"), "--delay", str(plan.delay)]
        crawl += ["--allow-short-delay", "--max-duration", f"{plan.seconds}s", "--sitemaps"]
        crawl += ["--processes", "1", *reach]
        crawl += [] if plan.timeout is None else ["--timeout", str(plan.timeout)]
        subprocess.run(crawl, check=True, capture_output=True, cwd=ROOT)
        return _pace(sites, plan.seconds)


@contextmanager
def _served(command: Sequence[str]) -> Iterator[dict[str, list[str]]]:
    """Serve others in another process; yield their seeds and connect options."""
    with subprocess.Popen(
        [sys.executable, "-m", *command], cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as keeper:
        assert keeper.stdin is not None and keeper.stdout is not None
        yield json.loads(keeper.stdout.readline())
        keeper.stdin.close()


def _pace(zoo: Zoo, seconds: float) -> Pace:
    times = [asked.at for asked in zoo.requests if asked.host.startswith("healthy-") and asked.path != "/robots.txt"]
    end = times[0] + seconds
    counted = [at for at in times if at <= end]
    silence = max(after - before for before, after in pairwise([*counted, end]))
    return Pace(pages=len(counted), seconds=seconds, silence=silence)


def table(plan: Plan, rounds: Sequence[tuple[Pace, Pace]]) -> Iterable[str]:
    """Return the rounds and their medians, line by line."""
    ceiling = plan.hosts / plan.delay
    yield (
        f"{plan.hosts} healthy sites, a delay of {plan.delay:g} s: at most {ceiling:,.0f} pages/s;"
        f" {plan.seconds:g} s each"
    )
    yield f"{'round':>6} {'alone/s':>9} {'among/s':>9} {'ratio':>7} {'silence alone':>14} {'among':>7}"
    for number, (alone, among) in enumerate(rounds, start=1):
        yield (
            f"{number:>6} {alone.rate:>9.1f} {among.rate:>9.1f} {among.rate / alone.rate:>7.3f}"
            f" {alone.silence:>12.2f} s {among.silence:>5.2f} s"
        )
    ratio = statistics.median(among.rate / alone.rate for alone, among in rounds)
    yield f"median ratio {ratio:.3f}: {'as it should be' if ratio >= GOAL else f'below {GOAL:g}'}"


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--hosts", type=int, default=400, help="healthy sites")
    parser.add_argument("--delay", type=float, default=2.0, help="seconds between two visits")
    parser.add_argument("--seconds", type=float, default=30.0, help="length of a crawl")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without", action="append", default=[], help="leave an animal out")
    parser.add_argument("--quick", action="store_true", help="one round of ten seconds")
    given = parser.parse_args()
    plan = Plan(
        hosts=given.hosts,
        delay=given.delay,
        seconds=10.0 if given.quick else given.seconds,
        rounds=1 if given.quick else given.rounds,
        without=tuple(given.without),
    )
    wild = ["tests.zoo.keeper", "--wild", *(word for name in plan.without for word in ("--without", name))]
    rounds = [(measure(plan), measure(plan, wild)) for _ in range(plan.rounds)]
    print("\n".join(table(plan, rounds)))


if __name__ == "__main__":
    main()
