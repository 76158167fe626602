"""How many pages per second, and what of it does the crawl cost? Run by hand: `make bench`, about two minutes.

In turns, in one run on one machine, and in the opposite order in every other round:

- the server alone, asked with bare sockets: it must not be the limit;
- rove's fetcher alone;
- the bare loop: rove's fetcher and parser, and nothing that makes a crawl (no robots.txt, frontier or store);
- rove: the real command on the same web, with a delay that does not bind.

Pages are counted in the server's log, CPU time and memory are the operating system's; rove's own count is held
against the log. Nothing leaves this machine, no name is looked up, nothing is left behind but the JSON file.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # the server for tests serves here as well

from contestants import CONTESTANTS, USUAL, Figures, Trial, measure
from report import NAMES, as_json, as_text, machine
from web import WebPlan


def main() -> int:
    """Measure, print one table and save everything."""
    options = _options().parse_args()
    trial = Trial(
        plan=WebPlan(
            hosts=options.hosts,
            knobs=(f"page_bytes={options.page_bytes}", *options.set),
            processes=options.server_processes,
        ),
        concurrency=options.concurrency,
        delay=options.delay,
        warm_up=options.warm_up,
        seconds=options.seconds,
    )
    about = machine()
    chosen = [name for name in CONTESTANTS if name in (options.only or USUAL)]
    rounds: list[list[Figures]] = []
    for number in range(options.rounds):
        rounds.append([])
        for contestant in chosen if number % 2 == 0 else reversed(chosen):
            figures = measure(contestant, trial)
            rounds[-1].append(figures)
            print(
                f"round {number + 1}: {NAMES[contestant]}: {figures.pages_per_s:,.0f} pages/s",
                file=sys.stderr,
            )
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(as_json(about, trial, rounds), indent=1))
    print(as_text(about, trial, rounds))
    print(f"- everything, round by round: {options.json}")
    return 0


def _options() -> argparse.ArgumentParser:
    default_file = Path(tempfile.gettempdir()) / "rove-bench.json"
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, default=20_000, help="20000")
    parser.add_argument("--page-bytes", type=int, default=40_000, help="40000")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KNOB=VALUE", help="of the web"
    )
    parser.add_argument("--concurrency", type=int, default=500, help="fetches in flight: 500")
    parser.add_argument("--delay", type=float, default=0.5, help="rove's, in seconds: 0.5")
    parser.add_argument("--rounds", type=int, default=2, help="2")
    parser.add_argument(
        "--seconds", type=float, default=18.0, help="measured of rove: 18; the loops: half"
    )
    parser.add_argument("--warm-up", type=float, default=3.0, help="seconds left out before: 3")
    parser.add_argument("--server-processes", type=int, default=1, help="1")
    parser.add_argument("--only", action="append", choices=CONTESTANTS, help="repeatable")
    parser.add_argument("--json", type=Path, default=default_file, help=str(default_file))
    return parser


if __name__ == "__main__":
    sys.exit(main())
