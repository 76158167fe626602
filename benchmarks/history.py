"""Measure what the history costs: crawls of a small web in turns, with it and without.

    python -m benchmarks.history --rounds 6 --pages 5000

Each crawl stores the same number of pages in one process. Its CPU time and the blocks that it wrote come from the
operating system. Without the history, the meter, the phases of requests and the sampler are replaced by others that do
nothing. What a sample takes is measured for itself, because it is far below what two crawls differ by.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import pycurl

from benchmarks.contestants import ROVE, Trial, crawl_command
from benchmarks.report import say
from benchmarks.web import BenchmarkFailed, ServedWeb, WebPlan, served
from rove.__main__ import run
from rove.app.process_samples import ProcessSamples
from rove.crawl.meter import Meter
from rove.fetch.phases import Phases
from rove.frontier.rows.packed_samples import pack, unpack
from rove.model.histogram import Histogram
from rove.model.ledger import Location, RequestKind, RequestRow
from rove.model.samples import Sample, combined, together
from rove.model.visits import Lease, VisitResult
from rove.observe.sampler import SAMPLE_SECONDS, Sampler

BLOCK = 512
WITH, WITHOUT = "with", "without"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a crawl used."""

    cpu_seconds: float
    bytes_written: int
    seconds: float


def crawl_in(folder: Path, web: ServedWeb, variant: str, pages: int) -> Cost:
    """Crawl until some pages are stored; return what that cost."""
    trial = Trial(plan=web.plan, concurrency=500, delay=0.1, warm_up=0.0, seconds=0.0)
    words = crawl_command(ROVE, trial, web, folder, "")
    command = [sys.executable, "-m", "benchmarks.history", "--crawl", variant]
    command += [*words[words.index("crawl") :], "--max-pages", str(pages), "--quiet"]
    started = time.monotonic()
    process = os.posix_spawn(sys.executable, command, os.environ)
    _, status, used = os.wait4(process, 0)
    if status:
        raise BenchmarkFailed(f"the crawl ended with {os.waitstatus_to_exitcode(status)}")
    return Cost(used.ru_utime + used.ru_stime, BLOCK * used.ru_oublock, time.monotonic() - started)


def without_history() -> None:
    """Replace everything that counts and measures for the history in this process."""
    nothing: Callable[..., None] = lambda *_, **__: None  # noqa: E731
    for owner, names in (
        (Histogram, ["add"]),
        (Meter, ["note_margin", "note_links", "note_settled"]),
        (Phases, ["note"]),
    ):
        for name in names:
            setattr(owner, name, nothing)
    patched: Any = Histogram
    patched.measured = _nothing_measured
    sampler: Any = Sampler
    sampler.running = _not_running
    samples: Any = ProcessSamples
    samples.keep_sampling = _no_samples


@contextmanager
def _nothing_measured(_: object) -> Iterator[None]:
    yield


@asynccontextmanager
async def _not_running(_: object) -> AsyncIterator[None]:
    yield


async def _no_samples(*_: object) -> None:
    pass


def samples_of(data: Path) -> list[Sample]:
    """Return the samples of a crawl."""
    with sqlite3.connect(data / "frontier.sqlite") as connection:
        rows = connection.execute("SELECT ended, seconds, figures FROM sample ORDER BY ended").fetchall()
    found = []
    for ended, seconds, packed in rows:
        figures, histograms = unpack(packed)
        found.append(Sample(node="", ended=ended, seconds=seconds, figures=figures, histograms=histograms))
    return found


def microseconds(work: Callable[[], object], times: int = 200) -> float:
    """Return how long some work takes, at best."""
    best = min(_timed(work, times) for _ in range(5))
    return 1e6 * best / times


def _timed(work: Callable[[], object], times: int) -> float:
    started = time.process_time()
    for _ in range(times):
        work()
    return time.process_time() - started


def say_sample_costs(samples: list[Sample]) -> None:
    """Say what one sample of a crawl costs, and how large it is."""
    largest = max(samples, key=lambda sample: len(pack(sample)))
    slots = [largest] * round(SAMPLE_SECONDS / 2)
    took = microseconds(lambda: pack(together([combined(slots), largest])))
    say(f"one sample: {took:,.0f} us of CPU in {SAMPLE_SECONDS:g} s, {100 * took / 1e6 / SAMPLE_SECONDS:.3f} %")
    sizes = [len(pack(sample)) for sample in samples]
    coarse = len(pack(combined(samples)))
    year = 17_280 * median(sizes) + (20_160 + 52_560) * coarse
    say(f"a packed sample: {median(sizes):,.0f} bytes; of a whole run: {coarse:,} bytes; a year: {year / 1e6:,.0f} MB")


def say_visit_cost() -> None:
    """Say what is counted and measured for a visit to robots.txt and a page."""
    meter = Meter("1", delay=70.0, clock=time.monotonic)
    phases, curl = Phases(meter.histogram), pycurl.Curl()
    lease = Lease(domain=1, name="a.test", token=1, crawl_delay=0.0, urls=(), rested=1.0)
    row = {"visit": 1, "domain": 1, "url": "http://a.test/", "fingerprint": 1, "started": 0.0, "began": 0, "ended": 9}
    robots = RequestRow(**row, seq=0, kind=RequestKind.ROBOTS, size=100)  # type: ignore[arg-type]
    where = Location(file="a.warc.gz", offset=0, length=9_000)
    page = RequestRow(**row, seq=1, kind=RequestKind.PAGE, size=40_000, content_hash=1, text=where)  # type: ignore[arg-type]
    visit = VisitResult(lease=lease, requested=True, since_finish=0.0, requests=(robots, page))

    def note() -> None:
        meter.note_margin(lease.rested)
        for kind in (RequestKind.ROBOTS, RequestKind.PAGE):
            meter.histogram(f"request.{kind}").add(0.01)
            phases.note(curl)
        meter.note_settled((visit,), lost=0)

    say(f"one visit with two requests: {microseconds(note, 2_000):.1f} us of CPU")


def say_comparison(costs: Mapping[str, list[Cost]], pages: int) -> None:
    """Say how the crawls with and without the history differ."""
    for variant, of_variant in costs.items():
        cpu = [1000 * cost.cpu_seconds / pages for cost in of_variant]
        say(
            f"{variant:>8}: {median(cpu):.3f} ms of CPU per page ({min(cpu):.3f} to {max(cpu):.3f}), "
            f"{median(cost.bytes_written for cost in of_variant) / pages:,.0f} bytes written, "
            f"{median(pages / cost.seconds for cost in of_variant):.0f} pages/s"
        )
    pairs = list(zip(costs[WITH], costs[WITHOUT], strict=True))
    more_cpu = median(a.cpu_seconds / b.cpu_seconds for a, b in pairs)
    written = median(a.bytes_written / b.bytes_written for a, b in pairs)
    say(f"median of the ratios: {100 * (more_cpu - 1):+.1f} % of CPU, {100 * (written - 1):+.1f} % of bytes written")


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--pages", type=int, default=5_000)
    parser.add_argument("--hosts", type=int, default=2_000)
    given = parser.parse_args()
    costs: dict[str, list[Cost]] = {WITH: [], WITHOUT: []}
    samples: list[Sample] = []
    for number in range(given.rounds):
        for variant in (WITH, WITHOUT) if number % 2 else (WITHOUT, WITH):
            with TemporaryDirectory(prefix="rove-bench-") as name:
                folder = Path(name)
                with served(WebPlan(hosts=given.hosts), folder) as web:
                    costs[variant].append(crawl_in(folder, web, variant, given.pages))
                if variant == WITH:
                    samples += samples_of(folder / "data")
    say_comparison(costs, given.pages)
    say_visit_cost()
    say_sample_costs(samples)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--crawl"]:
        if sys.argv[2] == WITHOUT:
            without_history()
        sys.exit(run(sys.argv[3:]))
    main()
