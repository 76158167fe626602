"""The part of the benchmark about latency: how many fetches are in flight, and whether that is as many as it takes.

The web answers after 0.2 to 1.5 s, and a tenth of its hosts never answer, like a list of a million domains. rove crawls
it as it does by default, and with fixed numbers of fetches in flight. Two more runs: on the same web with answers
within 50 ms and without silent hosts, and on one whose latency changes in the middle. The server's log says how many
requests are in flight, second by second.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import plot
from benchmarks.contestants import NAMES, Trial
from benchmarks.measure import Figures, measure
from benchmarks.parts import BACKENDS, Verdict, Verdicts
from benchmarks.report import say
from benchmarks.web import WebPlan
from benchmarks.webs import LATENCY, Arena

AUTO = "auto"
FIXED = (500, 2_000, 4_000, 8_000)
SLOW = ("latency=0.2,1.5", "silent=0.1")
DELAY = 5.0
LEAST_OF_BEST, LEAST_OF_FAST = 0.85, 0.70


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large the runs are."""

    hosts: int = 40_000
    warm_up: float = 40.0
    seconds: float = 30.0
    fixed: Sequence[int] = FIXED
    change_after: float = 60.0


QUICK = Sizes(hosts=300, warm_up=1.0, seconds=1.5, fixed=(50,), change_after=1.5)


def latency(arenas: Mapping[str, Arena], chosen: Sequence[str], *, quick: bool) -> Verdicts:
    """(i) Compare the default with fixed numbers of fetches in flight, on a web with latency."""
    sizes = QUICK if quick else Sizes()
    return [verdict for name in BACKENDS if name in chosen for verdict in _of_backend(name, sizes)]


def _of_backend(name: str, sizes: Sizes) -> Verdicts:
    slow = {number: _run(name, sizes, number, *SLOW) for number in (AUTO, *map(str, sizes.fixed))}
    fast = _run(name, sizes, AUTO, LATENCY)
    change = ("silent=0.1", "latency=0.05,0.2", "latency_later=0.5,3", f"change_after={sizes.change_after:g}")
    longer = replace(sizes, seconds=2 * sizes.change_after - sizes.warm_up)
    changed = _run(name, longer, AUTO, *change)
    best = max(figures.pages_per_s for number, figures in slow.items() if number != AUTO)
    of_best = slow[AUTO].pages_per_s / max(best, 0.001)
    of_fast = slow[AUTO].pages_per_s / max(fast.pages_per_s, 0.001)
    rates = ", ".join(f"{number}: {figures.pages_per_s:,.0f}" for number, figures in slow.items())
    return [
        Verdict(
            part="i",
            claim=(
                f"latency, {NAMES[name]}: at least {LEAST_OF_BEST:.0%} of the best fixed number in flight, and "
                f"{LEAST_OF_FAST:.0%} of the rate without latency"
            ),
            is_reached=of_best >= LEAST_OF_BEST and of_fast >= LEAST_OF_FAST,
            numbers=(
                f"pages/s by number in flight: {rates}; {of_best:.0%} of the best, {of_fast:.0%} of "
                f"{fast.pages_per_s:,.0f} without latency; on average {slow[AUTO].in_flight:,.0f} in flight, "
                f"{slow[AUTO].peak_process_rss / 1e6:.0f} MB in the largest process"
            ),
            values={
                "slow": {number: figures.as_json() for number, figures in slow.items()},
                "fast": fast.as_json(),
                "changed": changed.as_json(),
            },
        )
    ]


def _run(name: str, sizes: Sizes, number: str, *knobs: str) -> Figures:
    plan = WebPlan(hosts=sizes.hosts, knobs=knobs)
    trial = Trial(plan=plan, concurrency=number, delay=DELAY, warm_up=sizes.warm_up, seconds=sizes.seconds)
    figures = measure(name, trial)
    say(f"(i) {NAMES[name]}, {number}, {' '.join(knobs)}: {figures.pages_per_s:,.0f} pages/s")
    return figures


def plotted(path: Path, values: Mapping[str, Any]) -> Path | None:
    """Draw the number of requests in flight over time; nothing without matplotlib."""
    if find_spec("matplotlib") is None:
        return None
    series = {
        "0.2-1.5 s, 10 % silent": values["slow"][AUTO],
        "at most 50 ms": values["fast"],
        "50-200 ms, then 0.5-3 s": values["changed"],
    }
    points = {name: list(enumerate(figures["in_flight_by_second"])) for name, figures in series.items()}
    plot.lines(path, points, title="Requests in flight", x="seconds", y="requests", log=False)
    return path


def main() -> int:
    """Run this part alone, with sizes of one's own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Sizes()
    parser.add_argument("--hosts", type=int, default=default.hosts)
    parser.add_argument("--warm-up", type=float, default=default.warm_up)
    parser.add_argument("--seconds", type=float, default=default.seconds)
    parser.add_argument("--fixed", type=int, action="append", help="a fixed number in flight; repeatable")
    parser.add_argument("--change-after", type=float, default=default.change_after)
    parser.add_argument("--contestant", choices=BACKENDS, default=BACKENDS[0])
    parser.add_argument("--json", type=Path, help="file for the results; a plot goes beside it")
    options = parser.parse_args()
    sizes = Sizes(
        hosts=options.hosts,
        warm_up=options.warm_up,
        seconds=options.seconds,
        fixed=options.fixed or default.fixed,
        change_after=options.change_after,
    )
    (verdict,) = _of_backend(options.contestant, sizes)
    print(f"{verdict.claim}: {'reached' if verdict.is_reached else 'not reached'}: {verdict.numbers}")
    if options.json:
        options.json.write_text(json.dumps(verdict.as_json(), indent=1) + "\n")
        plotted(options.json.with_suffix(".svg"), verdict.values)
    return 0


if __name__ == "__main__":
    sys.exit(main())
