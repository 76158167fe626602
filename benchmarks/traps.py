"""Measure whether a web of traps fills the frontier and wastes fetches. Run by hand, about six minutes:

    python -m benchmarks.traps                     # with the defences
    python -m benchmarks.traps --before REVISION   # in turns with the rove of an earlier commit

The real command crawls the web of trap_web.py with a short delay. The server counts the requests, the size of the
frontier is read from its file, and memory comes from the operating system. The results are a table, plots and JSON.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks import plot
from benchmarks.trap_web import hosts

HERE = Path(__file__).parent
PERIOD = 2.0


@dataclass(slots=True, kw_only=True)
class Run:
    """The measurements of one crawl."""

    name: str
    pending: list[tuple[float, int]] = field(default_factory=list)
    """Pending URLs in the frontier, over time."""
    rss: list[tuple[float, float]] = field(default_factory=list)
    """Memory of all its processes in MiB, over time."""
    asked: Counter[str] = field(default_factory=Counter)

    def row(self) -> dict[str, Any]:
        """Return a line of the table."""
        pages = sum(count for letter, count in self.asked.items() if letter != "R")
        share = {letter: 100 * self.asked[letter] / max(1, pages) for letter in "GHAT"}
        return {
            "": self.name,
            "pages asked": pages,
            "worth having, %": share["G"],
            "hot domain, %": share["H"],
            "asked before, %": share["A"],
            "traps, %": share["T"],
            "pending at the end": self.pending[-1][1],
            "most RSS, MiB": max(rss for _, rss in self.rss),
        }


def main() -> int:
    """Crawl, print the table, draw the plots."""
    options = _options().parse_args()
    versions = {"with defences": HERE.parent}
    with tempfile.TemporaryDirectory(prefix="rove-traps-") as folder:
        work = Path(folder)
        with _checked_out(options.before, work) as before:
            if before is not None:
                versions = {"without": before, **versions}
            runs = [_crawl(name, root, work / name, options) for name, root in versions.items()]
    print(plot.markdown([run.row() for run in runs]))
    _draw(runs, options.out)
    plot.save_json(options.out / "traps.json", [_as_json(run) for run in runs])
    return 0


def _crawl(name: str, root: Path, folder: Path, options: argparse.Namespace) -> Run:
    """Run one crawl with the rove of a source tree."""
    folder.mkdir()
    seeds = folder / "seeds.txt"
    seeds.write_text("".join(f"http://{host}\n" for host in hosts(options.sites)))
    run = Run(name=name)
    with _served(folder / "web.log") as port:
        command = [
            sys.executable,
            "-m",
            "rove",
            "crawl",
            str(seeds),
            "--email",
            "bench@crawler.test",
        ]
        command += ["--data-dir", str(folder / "data"), "--processes", "1"]
        command += ["--delay", str(options.delay), "--allow-short-delay"]
        command += ["--max-duration", f"{options.seconds}s", "--scope", "domain"]
        command += ["--connect-to", f"*.test=127.0.0.1:{port}", "--allow-private-addresses"]
        environment = {**os.environ, "PYTHONPATH": str(root / "src")}
        crawler = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        started = time.monotonic()
        while crawler.poll() is None:
            time.sleep(PERIOD)
            _sample(run, crawler.pid, folder / "data" / "frontier.sqlite", started)
        if crawler.returncode:
            raise SystemExit(f"rove ended with {crawler.returncode}")
    run.asked = Counter((folder / "web.log").read_text())
    print(f"{name}: {run.row()}", file=sys.stderr)
    return run


def _sample(run: Run, pid: int, frontier: Path, started: float) -> None:
    at = round(time.monotonic() - started, 1)
    with suppress(sqlite3.Error, psutil.Error, FileNotFoundError):
        with closing(sqlite3.connect(f"file:{frontier}?mode=ro", uri=True)) as database:
            query = "SELECT value FROM counter WHERE name = 'urls.pending'"
            (pending,) = database.execute(query).fetchone() or (0,)
        process = psutil.Process(pid)
        family = (process, *process.children(recursive=True))
        rss = sum(member.memory_info().rss for member in family)
        if not rss:
            return  # it has just ended
        run.pending.append((at, pending))
        run.rss.append((at, rss / 2**20))


@contextmanager
def _served(log: Path) -> Iterator[int]:
    command = [sys.executable, "-m", "benchmarks.trap_web", "--log", str(log)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None and server.stdin is not None
    try:
        yield int(server.stdout.readline().rpartition(":")[2])
    finally:
        server.stdin.close()
        server.wait(10)
        server.stdout.close()


@contextmanager
def _checked_out(revision: str | None, work: Path) -> Iterator[Path | None]:
    """Check out an earlier commit of this source tree."""
    if revision is None:
        yield None
        return
    tree = work / "before"
    git = ["git", "-C", str(HERE.parent), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(tree), revision], check=True)
    try:
        yield tree
    finally:
        subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def _draw(runs: list[Run], out: Path) -> None:
    for name, title, unit in (
        ("pending", "The frontier in a web of traps", "pending URLs"),
        ("rss", "Memory in a web of traps", "RSS, MiB"),
    ):
        series = {run.name: getattr(run, name) for run in runs}
        plot.lines(out / f"{name}.svg", series, title=title, x="seconds", y=unit, log=False)


def _as_json(run: Run) -> dict[str, Any]:
    return {
        **run.row(),
        "over time": [
            {"at": at, "pending": pending, "RSS": rss}
            for (at, pending), (_, rss) in zip(run.pending, run.rss, strict=True)
        ],
    }


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, default=20, help="sites of each kind (default: 20)")
    parser.add_argument("--delay", type=float, default=0.5, help="seconds (default: 0.5)")
    parser.add_argument("--seconds", type=int, default=180, help="length of a crawl (default: 180)")
    parser.add_argument("--before", metavar="REVISION", help="also run the rove of this commit")
    parser.add_argument("--out", type=Path, default=HERE.parent / "docs" / "traps")
    return parser


if __name__ == "__main__":
    sys.exit(main())
