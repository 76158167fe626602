"""Measure whether a crawling process stays below its memory limit. Run by hand: `python -m benchmarks.memory`, minutes.

The real `rove crawl`, in one process, crawls a web on loopback whose pages all have the largest size that rove reads,
as plain HTML and compressed, with 1,000 fetches in flight when the first is answered. It also crawls a web of ordinary
pages, with the same limit and without one, to show that the limit costs nothing there. Memory is read from
/proc/PID/status, and `rove status` counts the pages. Nothing leaves this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LARGE = 5 * 1024 * 1024
ORDINARY = 40_000
WAIT = 0.05
"""Seconds between two samples of the process."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One crawl."""

    name: str
    kind: str
    size: int
    hosts: int
    ceiling: str
    at_once: int
    """Fetches in flight when the first one is answered."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """The measurements of one crawl."""

    case: Case
    pages: int
    seconds: float
    cpu: float
    most_at_once: int
    peak: int
    exit_code: int
    requests: int


def main() -> int:
    """Measure every case and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--concurrency", type=int, default=1_000, help="fetches at once (default: 1000)")
    parser.add_argument("--hosts", type=int, default=1_200, help="hosts with large pages (default: 1200)")
    parser.add_argument("--ceiling", default="512MiB", help="value of --max-memory (default: 512MiB)")
    parser.add_argument("--only", action="append", help="only cases whose name starts with this; repeatable")
    parser.add_argument("--keep", type=Path, help="leave the data directories here")
    options = parser.parse_args()
    hosts, ceiling = options.hosts, options.ceiling
    at_once = min(options.concurrency, hosts)
    cases = [
        Case(name=name, kind=kind, size=size, hosts=count, ceiling=limit, at_once=held)
        for name, kind, size, count, limit, held in (
            ("5 MiB of HTML", "html", LARGE, hosts, ceiling, at_once),
            ("5 MiB in gzip", "gzip", LARGE, hosts, ceiling, at_once),
            ("40 KB of HTML", "html", ORDINARY, 10_000, ceiling, 0),
            ("40 KB, no limit", "html", ORDINARY, 10_000, "64GiB", 0),
        )
    ]
    chosen = [case for case in cases if not options.only or case.name.startswith(tuple(options.only))]
    print(
        f"{'':16} {'ceiling':>8} {'peak RSS':>9} {'at once':>8} {'pages':>13} {'requests':>9} "
        f"{'seconds':>8} {'pages/s':>8} {'CPU ms/page':>12}"
    )
    good = True
    for case in chosen:
        with tempfile.TemporaryDirectory() as temporary:
            folder = options.keep or Path(temporary)
            result = crawl(case, folder / case.name.replace(" ", "-"), options.concurrency)
        good = good and result.pages == case.hosts and not result.exit_code
        print(
            f"{case.name:16} {case.ceiling:>8} {result.peak / 2**20:>5.0f} MiB {result.most_at_once:>8,} "
            f"{result.pages:>6,}/{case.hosts:>6,} {result.requests:>9,} {result.seconds:>8.1f} "
            f"{result.pages / result.seconds:>8.1f} {1000 * result.cpu / max(1, result.pages):>12.1f}",
            flush=True,
        )
    return 0 if good else 1


def crawl(case: Case, folder: Path, concurrency: int) -> Result:
    """Crawl a web to its end and sample the process."""
    folder.mkdir(parents=True)
    seeds, data = folder / "seeds.txt", folder / "data"
    seeds.write_text("".join(f"http://host{i}.large{i}.test/\n" for i in range(case.hosts)))
    with served(case) as web:
        command = [
            *(sys.executable, "-m", "rove", "crawl", seeds, "--email", "bench@crawler.test"),
            *("--data-dir", data, "--delay", "5", "--allow-short-delay", "--max-depth", "0"),
            *("--concurrency", concurrency, "--processes", 1, "--max-memory", case.ceiling),
            *("--connect-to", f"*=127.0.0.1:{web.port}", "--allow-private-addresses"),
            *("--log-level", "debug", "--min-free-disk", 0),
        ]
        started, cpu = time.monotonic(), cpu_of_children()
        with (folder / "output.txt").open("w") as output:
            process = subprocess.Popen(list(map(str, command)), stdout=output, stderr=output)
        peak = [0]
        watcher = threading.Thread(target=watch, args=(process, peak))
        watcher.start()
        process.wait()
        seconds, cpu = time.monotonic() - started, cpu_of_children() - cpu
        watcher.join()
    shown = subprocess.run(
        [sys.executable, "-m", "rove", "status", "--json", "--data-dir", str(data)],
        capture_output=True,
        text=True,
        check=True,
    )
    status = json.loads(shown.stdout)
    return Result(
        case=case,
        pages=status["pages"],
        seconds=seconds,
        cpu=cpu,
        most_at_once=web.most,
        peak=peak[0],
        exit_code=process.returncode,
        requests=web.sent,
    )


def cpu_of_children() -> float:
    """Return the CPU seconds of the child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def watch(process: subprocess.Popen[bytes], peak: list[int]) -> None:
    """Record the peak memory of a process until it ends."""
    while process.poll() is None:
        try:
            match = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
        except OSError:
            break
        if match is not None:
            peak[0] = max(peak[0], int(match[1]) * 1024)
        time.sleep(WAIT)


@dataclass
class Served:
    """A web of large pages."""

    port: int
    most: int = 0
    sent: int = 0


@contextmanager
def served(case: Case) -> Iterator[Served]:
    """Serve a web. Its figures are set when the block ends."""
    program = [sys.executable, "-m", "benchmarks.large_web"]
    server = subprocess.Popen(
        [*program, case.kind, str(case.size), str(case.at_once)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    assert server.stdin is not None and server.stdout is not None, "both are pipes"
    web = Served(int(server.stdout.readline()))
    try:
        yield web
    finally:
        server.stdin.close()
        figures = json.loads(server.stdout.readline() or "{}")
        web.most, web.sent = figures.get("most", 0), figures.get("sent", 0)
        server.wait()


if __name__ == "__main__":
    sys.exit(main())
