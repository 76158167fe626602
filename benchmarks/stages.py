"""Where does the crawler's CPU time go? A profile of `rove crawl` on the small web, summed up by stage.

    python benchmarks/stages.py        needs py-spy: pip install py-spy

The operating system says how much CPU time each thread of the crawl used; a sampling profiler says what the
thread was at. Both together, over the pages in the server's log, give milliseconds per page and stage.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent))  # the server for tests serves here as well

from contestants import ROVE, Trial, command_of, is_page
from report import about_machine, machine
from web import WebPlan, served

Stack = list[str]
"""From the thread to the innermost call, as 'function (file:line)'."""

_IDLE = "_worker ("
"""The innermost call of a pool's thread that waits for work."""
# The first rule whose words are all in a stack decides, so what is inside stands before what is around it.
_STAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ledger", ("._insert_requests ",)),
    ("ledger", ("ledger_rows (",)),
    ("ledger", ("rove/spool.py",)),
    ("ledger", ("begin_request (rove/journal.py",)),
    ("ledger", ("end_request (rove/journal.py",)),
    ("ledger", ("_with_outcome (rove/journal.py",)),
    ("add", (": frontier_", "._add ")),
    ("claim", (": frontier_", "._claim ")),
    ("settle", (": frontier_", "._settle ")),
    ("robots.txt records", (": frontier_", "origins")),
    ("other queries", (": frontier_",)),
    ("compress", (": store_", "compress (")),
    ("sync", (": store_", ".sync ")),
    ("records", (": store_",)),
    ("links", ("rove/parse/links.py",)),
    ("links", ("rove/url.py", "read_html")),
    ("text", ("rove/parse/text.py",)),
    ("text", ("_text (rove/parse/html.py",)),
    ("parse", ("rove/parse/",)),
    ("gate and robots.txt", ("rove/robots.py",)),
    ("gate and robots.txt", ("rove/gate.py", ".judge ")),
    ("fetch", ("rove/fetch/",)),
    ("fetch", ("pycurl/",)),
    ("offers of links", ("._meet ",)),
    ("known links dropped", ("._add_links ",)),
    ("journal and rows", ("rove/journal.py",)),
    ("handing over to threads", ("run_in_executor",)),
    ("rest of the visit", ("rove/visit.py",)),
    ("rest of the loop", ("MainThread",)),
    ("other threads", ()),
)
_THREADS = {"MainThread": "event loop", "frontier_": "frontier thread", "store_": "store thread"}


def stage_of(stack: Stack) -> str:
    """What a stack was sampled in."""
    text = ";".join(stack)
    return next(stage for stage, words in _STAGES if all(word in text for word in words))


def thread_of(name: str) -> str:
    """Which of the crawl's threads a profiler's name means, such as 'thread (4711): frontier_0'."""
    return next((thread for word, thread in _THREADS.items() if word in name), "other threads")


@dataclass(slots=True)
class Samples:
    """What the profiler saw."""

    stages: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Samples by thread and stage."""
    threads: dict[int, str] = field(default_factory=dict)
    """The threads by their numbers."""


def read_stacks(path: Path) -> Samples:
    """The profiler's folded stacks, summed up."""
    found = Samples()
    for line in path.read_text().splitlines():
        text, _, count = line.rpartition(" ")
        stack = text.split(";")
        thread = thread_of(stack[0])
        found.threads[int(re.findall(r"\d+", stack[0])[0])] = thread
        if not stack[-1].startswith(_IDLE):
            found.stages[thread, stage_of(stack)] += int(count)
    return found


def cpu_by_thread(crawler: psutil.Process) -> Counter[int]:
    """CPU milliseconds of each thread since its start."""
    return Counter({t.id: round(1000 * (t.user_time + t.system_time)) for t in crawler.threads()})


def profile(crawler: int, seconds: float, file: Path) -> None:
    """Sample the crawler for so long."""
    program = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which(
        "py-spy"
    )
    if program is None:
        raise SystemExit("py-spy is not installed: python -m pip install py-spy")
    command = [program, "record", "--pid", str(crawler), "--duration", str(round(seconds))]
    command += ["--rate", "100", "--threads", "--nonblocking", "--format", "raw"]
    subprocess.run([*command, "--output", str(file)], check=True, capture_output=True)


def table(samples: Samples, cpu: Counter[int], pages: int) -> list[str]:
    """CPU time per page, by thread and stage: the thread's own time, shared out by samples."""
    by_thread: Counter[str] = Counter()
    for number, milliseconds in cpu.items():
        by_thread[samples.threads.get(number, "other threads")] += milliseconds
    total = by_thread.total()
    lines = ["| thread | stage | CPU ms/page | share |", "|---|---|--:|--:|"]
    for thread, used in by_thread.most_common():
        own = Counter({s: count for (of, s), count in samples.stages.items() if of == thread})
        lines.append(f"| **{thread}** | | **{used / pages:.2f}** | **{used / total:.0%}** |")
        for stage, count in own.most_common():
            share = used * count / own.total()
            lines.append(f"| | {stage} | {share / pages:.3f} | {share / total:.1%} |")
    return lines


def main() -> int:
    """Profile one crawl and print the table."""
    options = _options().parse_args()
    trial = Trial(
        plan=WebPlan(hosts=options.hosts, knobs=tuple(options.set)),
        concurrency=options.concurrency,
        delay=options.delay,
        warm_up=options.warm_up,
        seconds=options.seconds + 3.0,  # the profiler takes a moment to start
    )
    about = machine()
    with TemporaryDirectory(prefix="rove-bench-") as name:
        folder = Path(name)
        with served(trial.plan, folder) as web:
            command = command_of(ROVE, trial, web, folder, "")
            quiet = subprocess.DEVNULL
            with subprocess.Popen(command, stdout=quiet, stderr=quiet) as crawl:
                time.sleep(options.warm_up)
                crawler = psutil.Process(crawl.pid)
                before, start = cpu_by_thread(crawler), time.monotonic()
                profile(crawl.pid, options.seconds, folder / "stacks")
                used, end = cpu_by_thread(crawler) - before, time.monotonic()
        pages = sum(is_page(entry) and start <= entry.end < end for entry in web.requests())
        samples = read_stacks(folder / "stacks")
    print("\n".join(table(samples, used, pages)))
    print(f"\n- {pages:,} pages in {end - start:.1f} s, {pages / (end - start):,.0f} pages/s")
    print(about_machine(about))
    return 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, default=20_000, help="20000")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KNOB=VALUE", help="of the web"
    )
    parser.add_argument("--concurrency", type=int, default=500, help="500")
    parser.add_argument("--delay", type=float, default=0.5, help="0.5")
    parser.add_argument("--seconds", type=float, default=20.0, help="profiled: 20")
    parser.add_argument("--warm-up", type=float, default=5.0, help="seconds left out before: 5")
    return parser


if __name__ == "__main__":
    sys.exit(main())
