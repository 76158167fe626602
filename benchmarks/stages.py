"""Measure where the crawler's CPU time goes: a profile of `rove crawl` on the small web, summed up by stage.

    python -m benchmarks.stages --save after.json --before docs/performance/before.json --svg stages.svg

The operating system tells how much CPU time each thread of the crawl used. A sampling profiler (py-spy, of the bench
extra) tells what the thread was doing. Both together, divided by the pages in the server's log, give milliseconds per
page and stage. With the saved profile of an earlier commit, the plot shows before and after.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from benchmarks import plot
from benchmarks.contestants import ROVE, Trial, crawl_command
from benchmarks.measure import PATIENCE, STOPPED, ended, is_page, started, wait_until
from benchmarks.report import about_machine, machine
from benchmarks.web import WebPlan, served
from benchmarks.webs import LATENCY, REAL

Stack = list[str]
"""From the thread to the innermost call, as 'function (file:line)'."""

_IDLE = "_worker ("
"""The innermost call of a pool's thread that waits for work."""
# The first rule whose words are all in a stack decides, so inner calls stand before outer ones. Rules name files or
# packages where they can; a test checks that these exist.
STAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ledger", ("_insert_requests (",)),
    ("ledger", ("rove/frontier/rows/requests.py",)),
    ("ledger", ("rove/crawl/inflight_log.py",)),
    ("add", (": frontier_", "rove/frontier/sqlite/add.py")),
    ("claim", (": frontier_", "rove/frontier/sqlite/claim.py")),
    ("settle", (": frontier_", "rove/frontier/sqlite/settle.py")),
    ("robots.txt records", (": frontier_", "rove/frontier/sqlite/origins.py")),
    ("other queries", (": frontier_",)),
    ("compress", (": store_", "compress (")),
    ("sync", (": store_", ".sync ")),
    ("records", (": store_",)),
    ("links", ("rove/parse/links.py",)),
    ("links", ("rove/urls/", "read_html")),
    ("text", ("rove/parse/text.py",)),
    ("parse", ("rove/parse/",)),
    ("gate and robots.txt", ("rove/policy/robots.py",)),
    ("gate and robots.txt", ("rove/policy/gate.py",)),
    ("gate and robots.txt", ("rove/crawl/robots_check.py",)),
    ("dns", ("rove/fetch/dns.py",)),
    ("dns", ("pycares/",)),
    ("fetch", ("rove/fetch/",)),
    ("fetch", ("pycurl/",)),
    ("known links dropped", ("_add_links (",)),
    ("visit record", ("rove/crawl/visit_record.py",)),
    ("handing over to threads", ("run_in_executor",)),
    ("rest of the visit", ("rove/crawl/visit.py",)),
    ("rest of the loop", ("MainThread",)),
    ("other threads", ()),
)
GROUPS = {
    "claim": ("claim",),
    "gate": ("gate and robots.txt", "robots.txt records"),
    "dns": ("dns",),
    "fetch": ("fetch",),
    "parse": ("parse", "text"),
    "canonicalise and de-duplicate": ("links", "known links dropped"),
    "store": ("records", "compress", "sync"),
    "settle": ("settle", "ledger", "visit record"),
    "add": ("add",),
}
"""The stages that each bar of the plot sums up. All others are overhead of the loop."""
OVERHEAD = "loop overhead"
_THREADS = {"MainThread": "event loop", "frontier_": "frontier thread", "store_": "store thread"}


def stage_of(stack: Stack) -> str:
    """Return the stage that a stack belongs to."""
    text = ";".join(stack)
    return next(stage for stage, words in STAGES if all(word in text for word in words))


def thread_of(name: str) -> str:
    """Return the crawl's thread for a profiler's name such as 'thread (4711): frontier_0'."""
    return next((thread for word, thread in _THREADS.items() if word in name), "other threads")


@dataclass(slots=True)
class Samples:
    """The profiler's samples."""

    stages: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Samples by thread and stage."""
    threads: dict[int, str] = field(default_factory=dict)
    """The threads by their numbers."""


def read_stacks(path: Path) -> Samples:
    """Read the profiler's folded stacks and count them."""
    samples = Samples()
    for line in path.read_text().splitlines():
        text, _, count = line.rpartition(" ")
        stack = text.split(";")
        thread = thread_of(stack[0])
        samples.threads[int(re.findall(r"\d+", stack[0])[0])] = thread
        if not stack[-1].startswith(_IDLE):
            samples.stages[thread, stage_of(stack)] += int(count)
    return samples


def cpu_by_thread(crawler: psutil.Process) -> Counter[int]:
    """Return the CPU milliseconds of each thread since its start."""
    return Counter({t.id: round(1000 * (t.user_time + t.system_time)) for t in crawler.threads()})


def profile(crawler: int, seconds: float, file: Path) -> None:
    """Sample the crawler for some seconds and write the stacks to a file."""
    program = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")
    if program is None:
        raise SystemExit("py-spy is not installed: python -m pip install py-spy")
    command = [program, "record", "--pid", str(crawler), "--duration", str(round(seconds))]
    command += ["--rate", "100", "--threads", "--nonblocking", "--format", "raw"]
    subprocess.run([*command, "--output", str(file)], check=True, capture_output=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """CPU milliseconds per page by thread and stage. A thread's time is divided by its samples."""

    pages: int
    seconds: float
    stages: dict[tuple[str, str], float]

    @property
    def groups(self) -> dict[str, float]:
        """CPU milliseconds per page by the groups of the plot."""
        of_stage = {stage: group for group, stages in GROUPS.items() for stage in stages}
        sums = dict.fromkeys((*GROUPS, OVERHEAD), 0.0)
        for (_, stage), milliseconds in self.stages.items():
            sums[of_stage.get(stage, OVERHEAD)] += milliseconds
        return sums

    def as_json(self) -> dict[str, object]:
        """Return the profile as JSON values."""
        stages = [[thread, stage, round(ms, 4)] for (thread, stage), ms in self.stages.items()]
        groups = {group: round(ms, 4) for group, ms in self.groups.items()}
        return {
            "pages": self.pages,
            "seconds": self.seconds,
            "ms_per_page": groups,
            "stages": stages,
        }


def shared_out(samples: Samples, cpu: Counter[int], pages: int, seconds: float) -> Profile:
    """Divide the CPU time of each thread among its stages."""
    by_thread: Counter[str] = Counter()
    for number, milliseconds in cpu.items():
        by_thread[samples.threads.get(number, "other threads")] += milliseconds
    stages = {}
    for thread, used in by_thread.items():
        own = {stage: n for (of, stage), n in samples.stages.items() if of == thread}
        for stage, count in (own or {"other threads": 1}).items():
            stages[thread, stage] = used / max(pages, 1) * count / (sum(own.values()) or 1)
    return Profile(pages=pages, seconds=seconds, stages=stages)


def table(profile: Profile) -> str:
    """Return the tables: by group, and by thread and stage."""
    total = sum(profile.stages.values()) or 1.0
    by_size = sorted(profile.stages.items(), key=lambda item: -item[1])
    rows = [
        {"stage": group, "CPU ms/page": f"{ms:.3f}", "share": f"{ms / total:.1%}"}
        for group, ms in profile.groups.items()
    ]
    finer = [
        {"thread": thread, "stage": stage, "CPU ms/page": f"{ms:.3f}", "share": f"{ms / total:.1%}"}
        for (thread, stage), ms in by_size
    ]
    return f"{plot.markdown(rows)}\n\n{plot.markdown(finer)}"


def profiled(options: argparse.Namespace) -> Profile:
    """Run a crawl and profile it."""
    of_real = REAL if options.real or options.pages else ()
    trial = Trial(
        plan=WebPlan(hosts=options.hosts, knobs=(LATENCY, *of_real, *options.set), pages=options.pages),
        concurrency=options.concurrency,
        delay=options.delay,
        warm_up=options.warm_up,
        seconds=options.seconds,
    )
    with TemporaryDirectory(prefix="rove-bench-") as name:
        folder = Path(name)
        with served(trial.plan, folder) as web:
            command = crawl_command(ROVE, trial, web, folder, "")
            with started(command, folder) as crawl:
                wait_until(lambda: web.log_size > 0, crawl, PATIENCE)
                time.sleep(options.warm_up)
                crawler = psutil.Process(crawl.pid)
                before, start = cpu_by_thread(crawler), time.monotonic()
                profile(crawl.pid, options.seconds, folder / "stacks")
                used, end = cpu_by_thread(crawler) - before, time.monotonic()
                crawl.send_signal(signal.SIGINT)
                ended(crawl, folder, PATIENCE, 0, STOPPED)
            web.stop()
            pages = sum(is_page(entry) and start <= entry.end < end for entry in web.requests())
        return shared_out(read_stacks(folder / "stacks"), used, pages, end - start)


def main() -> int:
    """Profile one crawl, print the tables, and draw it beside an earlier one."""
    options = _options().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    about = machine()
    result = profiled(options)
    print(table(result))
    rate = result.pages / result.seconds
    print(f"\n- {result.pages:,} pages in {result.seconds:.1f} s, {rate:,.0f} pages/s")
    print(about_machine(about))
    saved = {"commit": _commit(), "machine": about, **result.as_json()}
    if options.save is not None:
        plot.save_json(options.save, saved)
    if options.svg is not None:
        bars = {"now": result.groups}
        if options.before is not None:
            before = json.loads(options.before.read_text())
            bars = {f"before\n{before['commit']}": before["ms_per_page"], **bars}
        title = "Where the crawler's CPU time goes, one process on SQLite"
        plot.stacked(options.svg, bars, title=title, y="CPU ms per page")
    return 0


def _commit() -> str:
    """Return the last commit that changed the crawler (the small web does not count)."""
    command = ["git", "-C", str(Path(__file__).parent.parent), "log", "-1", "--format=%h", "--"]
    command += ["src/rove", ":!src/rove/demo"]
    log = subprocess.run(command, capture_output=True, text=True)
    return log.stdout.strip() or "unknown"


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=20_000, help="hosts of the web (default: 20000)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KNOB=VALUE",
        help="set a knob of the web; repeatable",
    )
    parser.add_argument("--real", action="store_true", help="a web of real-like pages")
    parser.add_argument("--pages", default="", metavar="FOLDER", help="a web of the real pages in this folder")
    parser.add_argument("--concurrency", type=int, default=500, help="fetches at once (default: 500)")
    parser.add_argument("--delay", type=float, default=0.5, help="seconds (default: 0.5)")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to profile (default: 20)")
    parser.add_argument("--warm-up", type=float, default=5.0, help="seconds before profiling starts (default: 5)")
    parser.add_argument("--save", type=Path, help="save the profile as JSON")
    parser.add_argument("--before", type=Path, help="a profile that --save wrote at an earlier commit")
    parser.add_argument("--svg", type=Path, help="draw the profile as stacked bars")
    return parser


if __name__ == "__main__":
    sys.exit(main())
