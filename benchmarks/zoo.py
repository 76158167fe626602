"""Whether servers that misbehave slow down the others: the pace of healthy sites, alone and among the zoo.

    .venv/bin/python -m benchmarks.zoo            # about three minutes
    .venv/bin/python -m benchmarks.zoo --quick

The healthy sites have more pages than there is time for, and the delay binds: without anything in the way each is
asked once a delay. What the zoo costs is then what it keeps the event loop from, and 'longest silence' shows it
directly: for how long no healthy site was asked at all. Alone and with the zoo are measured in turns. The healthy sites
are served by a process of their own, so that the zoo's work is not in their way.

A site is left alone for ten times what its answer took, and a stall of ours looks like a slow answer. With a delay of
some seconds, as here, only long stalls count for more than they are; with one of half a second, nearly all do.
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
EMAIL = "benchmark@example.org"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is measured."""

    hosts: int
    delay: float
    seconds: float
    rounds: int
    without: tuple[str, ...]
    """Animals that stay at home."""

    @property
    def pages(self) -> int:
        """More than can be asked for in time."""
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
    """The longest time in which none of them was asked."""

    @property
    def rate(self) -> float:
        """Pages per second."""
        return self.pages / self.seconds


def measure(plan: Plan, *, among: bool) -> Pace:
    """One crawl."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sites = stack.enter_context(opened(plan.sites))
        seeds, reach = sites.seeds, sites.reach
        if among:
            others = stack.enter_context(_wild(plan.without))
            seeds = [*others["seeds"], *seeds]
            reach = ["--connect-to", f"healthy-*.test=127.0.0.1:{sites.port}", *others["reach"]]
        (folder / "seeds.txt").write_text("".join(f"{seed}\n" for seed in seeds))
        command = [
            sys.executable,
            "-m",
            "rove",
            "crawl",
            str(folder / "seeds.txt"),
            "--email",
            EMAIL,
        ]
        command += ["--data-dir", str(folder / "data"), "--delay", str(plan.delay)]
        command += ["--allow-short-delay", "--max-duration", f"{plan.seconds}s", "--sitemaps"]
        command += ["--timeout", "5", "--processes", "1", *reach]
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
        return _pace(sites, plan.seconds)


@contextmanager
def _wild(without: Iterable[str]) -> Iterator[dict[str, list[str]]]:
    """The zoo without its healthy sites, in another process: its seeds, and how it is reached."""
    command = [sys.executable, "-m", "tests.zoo.keeper", "--wild"]
    command += [word for name in without for word in ("--without", name)]
    with subprocess.Popen(
        command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as keeper:
        assert keeper.stdin is not None and keeper.stdout is not None
        yield json.loads(keeper.stdout.readline())
        keeper.stdin.close()


def _pace(zoo: Zoo, seconds: float) -> Pace:
    times = [
        asked.at
        for asked in zoo.asked
        if asked.host.startswith("healthy-") and asked.path != "/robots.txt"
    ]
    end = times[0] + seconds
    counted = [at for at in times if at <= end]
    silence = max(after - before for before, after in pairwise([*counted, end]))
    return Pace(pages=len(counted), seconds=seconds, silence=silence)


def table(plan: Plan, rounds: Sequence[tuple[Pace, Pace]]) -> Iterable[str]:
    """The rounds and their middle, line by line."""
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
    rounds = [(measure(plan, among=False), measure(plan, among=True)) for _ in range(plan.rounds)]
    print("\n".join(table(plan, rounds)))


if __name__ == "__main__":
    main()
