"""How fast is a crawl, and what does it cost? Run by hand: `make bench`, the better part of an hour; `make bench-quick`
does everything on tiny webs, side by side, only to see that it works.

In turns, in one run on one machine, and in the opposite order in every other round: the contestants on each web
(webs.py), then the parts that are runs of their own (parts.py, limits.py). Pages are counted in the server's log, CPU
time and memory are the operating system's; rove's own count is held against the log. Nothing leaves this machine, no
name is looked up, nothing is left behind but the JSON file, the table and the plots beside it.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from tests.postgres import NoServer

from benchmarks import limits, parts
from benchmarks.contestants import CONTESTANTS, NAMES, is_there
from benchmarks.measure import Figures, measure
from benchmarks.parts import FROM_TABLE, Verdicts
from benchmarks.report import as_text, best, machine, plotted
from benchmarks.web import BenchmarkFailed
from benchmarks.webs import Arena, arenas

OWN_RUNS: Mapping[str, Callable[..., Verdicts]] = {
    "b": parts.binding,
    "c": parts.large_frontier,
    "e": limits.memory,
    "g": limits.million_seeds,
    "h": limits.stopping,
}
WEB_NAMES = tuple(arenas(quick=True))
TERMINATED = 128 + signal.SIGTERM
SIDE_BY_SIDE = 4
"""Quick runs at once: their speed does not matter."""

Job = Callable[[], Any]


class Bench:
    """Does what was chosen, and keeps what comes of it; a run that fails does not end the others."""

    def __init__(self, options: argparse.Namespace, about: dict[str, Any]) -> None:
        self._options = options
        self._rounds: int = 1 if options.quick else options.rounds
        self._about = about
        only = options.only or [*WEB_NAMES, *FROM_TABLE, *OWN_RUNS]
        needed = {web for part in only if part in FROM_TABLE for web in FROM_TABLE[part][1]}
        every = arenas(quick=options.quick)
        self.arenas = {name: every[name] for name in every if name in {*only, *needed}}
        self._every = every
        self._own = [part for part in OWN_RUNS if part in only]
        self._contestants = [
            name
            for name in options.contestant or CONTESTANTS
            if name not in options.without and is_there(name)
        ]
        self.rounds: dict[str, list[list[Figures]]] = {name: [] for name in self.arenas}
        self.verdicts: Verdicts = []
        self.failures: list[str] = []

    def run(self) -> None:
        """Everything, one after the other, or side by side if it is quick."""
        jobs: list[Job] = []
        for number in range(self._rounds):
            for web, arena in self.arenas.items():
                self.rounds[web].append([])
                chosen = [name for name in arena.contestants if name in self._contestants]
                for name in chosen if number % 2 == 0 else reversed(chosen):
                    jobs.append(lambda w=web, a=arena, c=name: self._measure(w, a, c))
        jobs += [lambda p=part: self._part(p) for part in self._own]
        if self._options.quick:
            with ThreadPoolExecutor(SIDE_BY_SIDE) as threads:
                list(threads.map(lambda job: job(), jobs))
        else:
            for job in jobs:
                job()
                self.save()  # whoever ends it early keeps what there is
        table = {web: best(rounds) for web, rounds in self.rounds.items()}
        for judge, _ in FROM_TABLE.values():
            self.verdicts += judge(table)
        self.verdicts.sort(key=lambda verdict: verdict.part)

    def _measure(self, web: str, arena: Arena, contestant: str) -> None:
        place = self.rounds[web][-1]
        figures = self._tried(f"{web}: {contestant}", lambda: measure(contestant, arena.trial))
        if figures is not None:
            place.append(figures)
            _say(f"{web}: {NAMES[contestant]}: {figures.pages_per_s:,.0f} pages/s")

    def _part(self, part: str) -> None:
        run = OWN_RUNS[part]
        if part == "c":
            run = partial(run, rounds=self._rounds)
        for name in self._contestants:
            verdicts: Verdicts | None = self._tried(
                f"{part}: {name}",
                lambda name=name: run(self._every, [name], quick=self._options.quick),
            )
            for verdict in verdicts or []:
                self.verdicts.append(verdict)
                _say(f"({part}) {verdict.claim}: {verdict.numbers}")

    def _tried(self, what: str, run: Job) -> Any:
        try:
            return run()
        except (BenchmarkFailed, NoServer) as error:
            self.failures.append(f"{what}: {error}")
            _say(f"FAILED: {self.failures[-1]}")
            return None

    def save(self) -> None:
        """Write everything, round by round."""
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
    """Measure, print one table and save everything; 1 if a run came to nothing."""
    options = _options().parse_args()
    # Told to end, it ends what it has started too; by default a process that is told so cleans nothing up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    about = machine()
    bench = Bench(options, about)
    bench.run()
    bench.save()
    text = as_text(
        about, bench.arenas, bench.rounds, bench.verdicts, bench.failures, quick=options.quick
    )
    options.json.with_suffix(".md").write_text(text + "\n")
    print(text)
    plots = plotted(options.json.with_suffix(".svg"), bench.rounds)
    print(f"- everything, round by round: {options.json}, with {len(plots)} plots beside it")
    return 1 if bench.failures else 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _options() -> argparse.ArgumentParser:
    default_file = Path(tempfile.gettempdir()) / "rove-bench.json"
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts_and_webs = (*WEB_NAMES, *FROM_TABLE, *OWN_RUNS)
    parser.add_argument(
        "--only", action="append", choices=parts_and_webs, help="a web or a part; repeatable"
    )
    parser.add_argument("--contestant", action="append", choices=CONTESTANTS, help="repeatable")
    parser.add_argument(
        "--without", action="append", default=[], choices=CONTESTANTS, help="repeatable"
    )
    parser.add_argument("--rounds", type=int, default=2, help="of the webs and of (c): 2")
    parser.add_argument("--quick", action="store_true", help="tiny webs: does it work?")
    parser.add_argument("--json", type=Path, default=default_file, help=str(default_file))
    return parser


if __name__ == "__main__":
    sys.exit(main())
