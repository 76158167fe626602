"""Measure how fast a crawl is and what it costs. Run by hand: `make bench` takes over two hours;
`make bench-quick` runs everything on tiny webs, side by side, to see that it works.

All contestants run in turns on one machine, on each web (webs.py), in the opposite order in every other round. The
parts that need runs of their own follow (parts.py, limits.py). Pages are counted in the server's log; CPU time and
memory come from the operating system; rove's own counts are compared with the log. Nothing leaves this machine and no
name is looked up. Only the JSON file, the table and the plots beside it stay behind.

--against TREE compares this source tree with another one, which has its own .venv: both crawl in turns, on SQLite.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from tests.postgres import NoServer

from benchmarks import latency, limits, parts
from benchmarks.contestants import CONTESTANTS, NAMES, OTHER_TREE, is_there
from benchmarks.measure import Figures, measure
from benchmarks.parts import FROM_TABLE, Verdicts
from benchmarks.report import against, as_text, best, machine, plotted, say
from benchmarks.web import BenchmarkFailed
from benchmarks.webs import Arena, arenas

OWN_RUNS: Mapping[str, Callable[..., Verdicts]] = {
    "b": parts.binding,
    "c": parts.large_frontier,
    "e": limits.memory,
    "g": limits.million_seeds,
    "h": limits.stopping,
    "i": latency.latency,
}
WEB_NAMES = tuple(arenas(quick=True))
TERMINATED = 128 + signal.SIGTERM
SIDE_BY_SIDE = 4
"""Quick runs at the same time: their speed does not matter."""

Job = Callable[[], Any]


class Bench:
    """Runs the chosen parts and collects their results. A run that fails does not end the others."""

    def __init__(self, options: argparse.Namespace, about: dict[str, Any]) -> None:
        self._options = options
        self._rounds: int = 1 if options.quick else options.rounds
        self._about = about
        only = options.only or (["a"] if options.against else [*WEB_NAMES, *FROM_TABLE, *OWN_RUNS])
        needed = {web for part in only if part in FROM_TABLE for web in FROM_TABLE[part][1]}
        every = arenas(quick=options.quick)
        if options.against:
            every = {name: _compared(arena, options.against) for name, arena in every.items()}
        if options.pages:
            every = {name: _with_pages(arena, options.pages) for name, arena in every.items()}
        self.arenas = {name: every[name] for name in every if name in {*only, *needed}}
        self._every = every
        self._own = [part for part in OWN_RUNS if part in only]
        self._contestants = [
            name for name in options.contestant or CONTESTANTS if name not in options.without and is_there(name)
        ]
        self.rounds: dict[str, list[list[Figures]]] = {name: [] for name in self.arenas}
        self.verdicts: Verdicts = []
        self.failures: list[str] = []

    def run(self) -> None:
        """Run all parts one after the other, or side by side if they are quick."""
        jobs: list[Job] = []
        for number in range(self._rounds):
            for web, arena in self.arenas.items():
                self.rounds[web].append([])
                chosen = [name for name in arena.contestants if name in self._contestants]
                for name in chosen if number % 2 == 0 else reversed(chosen):
                    jobs.append(partial(self._measure, web, arena, name))
        jobs += [partial(self._part, part) for part in self._own]
        if self._options.quick:
            with ThreadPoolExecutor(SIDE_BY_SIDE) as threads:
                list(threads.map(lambda job: job(), jobs))
        else:
            for job in jobs:
                job()
                self.save()  # if it is interrupted, the results so far are there
        table = {web: best(rounds) for web, rounds in self.rounds.items()}
        for judge, _ in FROM_TABLE.values():
            self.verdicts += judge(table)
        self.verdicts.sort(key=lambda verdict: verdict.part)

    def _measure(self, web: str, arena: Arena, contestant: str) -> None:
        current_round = self.rounds[web][-1]
        figures = self._tried(f"{web}: {contestant}", partial(measure, contestant, arena.trial))
        if figures is not None:
            current_round.append(figures)
            say(f"{web}: {NAMES[contestant]}: {figures.pages_per_s:,.0f} pages/s")

    def _part(self, part: str) -> None:
        run = OWN_RUNS[part]
        if part == "c":
            run = partial(run, rounds=self._rounds)
        for name in self._contestants:
            verdicts: Verdicts | None = self._tried(
                f"{part}: {name}", partial(run, self._every, [name], quick=self._options.quick)
            )
            for verdict in verdicts or []:
                self.verdicts.append(verdict)
                say(f"({part}) {verdict.claim}: {verdict.numbers}")

    def _tried(self, what: str, run: Job) -> Any:
        try:
            return run()
        except (BenchmarkFailed, NoServer) as error:
            self.failures.append(f"{what}: {error}")
            say(f"FAILED: {self.failures[-1]}")
            return None

    def save(self) -> None:
        """Write all results, round by round, to the JSON file."""
        file: Path = self._options.json
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(self._as_json(), indent=1) + "\n")

    def _as_json(self) -> dict[str, Any]:
        return {
            "machine": self._about,
            "quick": self._options.quick,
            "webs": {
                name: {
                    "about": arena.about,
                    "trial": asdict(arena.trial),
                    "rounds": [[f.as_json() for f in one] for one in self.rounds[name]],
                }
                for name, arena in self.arenas.items()
            },
            "verdicts": [verdict.as_json() for verdict in self.verdicts],
            "failures": self.failures,
        }


def main() -> int:
    """Measure, print the tables and save all results. Return 1 if a run failed."""
    options = _options().parse_args()
    # SIGTERM must run the clean-up that ends the started processes; by default it would not.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    about = machine()
    bench = Bench(options, about)
    bench.run()
    bench.save()
    text = as_text(about, bench.arenas, bench.rounds, bench.verdicts, bench.failures, quick=options.quick)
    options.json.with_suffix(".md").write_text(text + "\n")
    print(text)
    if options.against:
        print(*(against(bench.rounds[web]) for web in bench.arenas), sep="\n")
    plots = plotted(options.json.with_suffix(".svg"), bench.rounds)
    for verdict in bench.verdicts:
        if verdict.part == "i" and (drawn := latency.plotted(options.json.with_suffix(".latency.svg"), verdict.values)):
            plots.append(drawn)
    print(f"- all results, round by round: {options.json}, with {len(plots)} plots beside it")
    return 1 if bench.failures else 0


def _compared(arena: Arena, tree: Path) -> Arena:
    """Return the web with two contestants: rove of this tree and rove of another one."""
    python = tree.resolve() / ".venv" / "bin" / "python"
    if not python.exists():
        sys.exit(f"{python} does not exist: --against needs a source tree with a virtual environment")
    trial = replace(arena.trial, other_python=str(python))
    return replace(arena, trial=trial, contestants=("rove-2", OTHER_TREE))


def _with_pages(arena: Arena, folder: Path) -> Arena:
    """Return the web with the real pages of a folder in place of generated ones, if it has any."""
    plan = arena.trial.plan
    if not plan.profile.real:
        return arena
    return replace(arena, trial=replace(arena.trial, plan=replace(plan, pages=str(folder.resolve()))))


def _options() -> argparse.ArgumentParser:
    default_file = Path(tempfile.gettempdir()) / "rove-bench.json"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts_and_webs = (*WEB_NAMES, *FROM_TABLE, *OWN_RUNS)
    parser.add_argument(
        "--only",
        action="append",
        choices=parts_and_webs,
        help="run only this web or part; repeatable",
    )
    parser.add_argument("--contestant", action="append", choices=CONTESTANTS, help="run only this one; repeatable")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=CONTESTANTS,
        help="leave this one out; repeatable",
    )
    parser.add_argument("--rounds", type=int, default=2, help="rounds of the webs and of part c (default: 2)")
    parser.add_argument("--against", type=Path, metavar="TREE", help="compare with the rove of another source tree")
    parser.add_argument("--pages", type=Path, metavar="FOLDER", help="serve these pages in the webs of real-like pages")
    parser.add_argument("--quick", action="store_true", help="tiny webs, to see that it works")
    parser.add_argument(
        "--json",
        type=Path,
        default=default_file,
        help=f"file for the results (default: {default_file})",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
