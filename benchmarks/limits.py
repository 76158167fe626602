"""The parts of the benchmark that are not about pages per second: memory, a million seeds, and stopping."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from statistics import mean
from typing import Any

import asyncpg
import psutil

from benchmarks.contestants import NAMES, crawl_command
from benchmarks.measure import (
    PATIENCE,
    STOPPED,
    Ground,
    ended,
    ground,
    measure,
    started,
    wait_until,
)
from benchmarks.parts import BACKENDS, Verdict, Verdicts
from benchmarks.web import WebPlan
from benchmarks.webs import DELAY, LATENCY, Arena
from rove.demo.log import LoggedRequest

MOST_RSS = 300_000_000
MOST_GROWTH = 0.10
IN_FLIGHT = 1_000
LEAST_IN_FLIGHT = 0.9
"""The share of the wanted requests that must be in flight for a verdict."""
SEEDS = 1_000_000
FIRST_FETCH_SECONDS = 2.0
LOADED_SECONDS = 30.0
STOP_SECONDS = 10.0


def memory(arenas: Mapping[str, Arena], chosen: Sequence[str], *, quick: bool) -> Verdicts:
    """(e) Measure the memory of one process with all fetches in flight, because answers take seconds."""
    base = arenas["40kb"].trial
    fetches = 50 if quick else IN_FLIGHT
    latency = "latency=0.3,0.5" if quick else "latency=5,10"
    trial = replace(base, plan=base.plan.with_knobs(latency), concurrency=fetches)
    if not quick:
        trial = replace(trial, warm_up=30.0, seconds=120.0)
    verdicts = []
    for name in BACKENDS:
        if name not in chosen:
            continue
        figures = measure(name.removesuffix("-2"), trial)
        half = figures.rss_by_second[len(figures.rss_by_second) // 2 :]
        first, last = mean(half[: len(half) // 2 + 1]), mean(half[len(half) // 2 :])
        growth = last / first - 1
        verdicts.append(
            Verdict(
                part="e",
                claim=(
                    f"memory, {NAMES[name.removesuffix('-2')]}, {fetches:,} fetches in flight: "
                    f"under {MOST_RSS / 1e6:.0f} MB a process, and flat"
                ),
                is_reached=(
                    figures.peak_process_rss < MOST_RSS and growth <= MOST_GROWTH
                    if figures.in_flight >= LEAST_IN_FLIGHT * fetches
                    else None
                ),
                numbers=(
                    f"{figures.in_flight:,.0f} in flight on average; at most {figures.peak_process_rss / 1e6:.0f} MB; "
                    f"{growth:+.1%} from the third quarter of the run to the fourth; "
                    f"{figures.requests_per_s:,.0f} requests/s"
                ),
                values=figures.as_json(),
            )
        )
    return verdicts


def million_seeds(arenas: Mapping[str, Arena], chosen: Sequence[str], *, quick: bool) -> Verdicts:
    """(g) Measure how soon the first fetch starts and how soon all seeds are in the frontier."""
    count = 3_000 if quick else SEEDS
    plan = WebPlan(hosts=count, knobs=(LATENCY,))
    trial = replace(arenas["40kb"].trial, plan=plan, delay=DELAY)
    verdicts = []
    for name in BACKENDS:
        if name not in chosen:
            continue
        with ground(name, trial) as here:
            command = crawl_command(name, trial, here.web, here.folder, here.database)
            begun = time.monotonic()
            with started(command, here.folder) as process:
                wait_until(lambda: _all_loaded(here), process, 4 * PATIENCE)
                loaded = time.monotonic() - begun
                wait_until(lambda: here.web.log_size > 0, process, PATIENCE)
                process.send_signal(signal.SIGINT)
                ended(process, here.folder, PATIENCE, 0, STOPPED)
            here.web.stop()
            first = min(entry.start for entry in here.web.requests()) - begun
        verdicts.append(
            Verdict(
                part="g",
                claim=(
                    f"{count:,} seeds, {NAMES[name]}: first fetch within {FIRST_FETCH_SECONDS:g} s, "
                    f"all loaded within {LOADED_SECONDS:g} s"
                ),
                is_reached=first <= FIRST_FETCH_SECONDS and loaded <= LOADED_SECONDS,
                numbers=f"first fetch {first:.1f} s after the command, all loaded after {loaded:.1f} s",
                values={"first_s": first, "loaded_s": loaded},
            )
        )
    return verdicts


def stopping(arenas: Mapping[str, Arena], chosen: Sequence[str], *, quick: bool) -> Verdicts:
    """(h) Measure how long Ctrl-C takes while no answer comes."""
    base = arenas["40kb"].trial
    fetches = 50 if quick else IN_FLIGHT
    plan = base.plan.with_knobs("latency=60,90")
    trial = replace(base, plan=plan, concurrency=fetches)
    verdicts = []
    for name in BACKENDS:
        if name not in chosen:
            continue
        with ground(name, trial) as here:
            command = crawl_command(name, trial, here.web, here.folder, here.database)
            with started(command, here.folder) as process:
                wait_until(lambda: _open(process, here) >= fetches, process, PATIENCE)
                asked = time.monotonic()
                process.send_signal(signal.SIGINT)
                ended(process, here.folder, PATIENCE, 0, STOPPED)
                took = time.monotonic() - asked
            here.web.stop()
            under_way = in_flight(here.web.requests(), asked)
        verdicts.append(
            Verdict(
                part="h",
                claim=f"stop, {NAMES[name]}, {fetches:,} in flight: Ctrl-C to exit in under {STOP_SECONDS:g} s",
                is_reached=took < STOP_SECONDS,
                numbers=f"{took:.1f} s with {under_way:,} in flight by the server's log",
                values={"seconds": took, "in_flight": under_way},
            )
        )
    return verdicts


def in_flight(log: Sequence[LoggedRequest], moment: float) -> int:
    """Count the requests that had begun and not ended at a moment."""
    begun = bisect_right(sorted(entry.start for entry in log), moment)
    return begun - bisect_right(sorted(entry.end for entry in log), moment)


def _open(process: subprocess.Popen[bytes], here: Ground) -> int:
    """Count the connections of a crawl to the web."""
    count = 0
    with suppress(psutil.Error):
        crawler = psutil.Process(process.pid)
        for member in (crawler, *crawler.children(recursive=True)):
            count += sum(bool(one.raddr) and one.raddr.port == here.web.port for one in member.net_connections("tcp"))
    return count


def _all_loaded(here: Ground) -> bool:
    """Tell whether all seeds are in the frontier, by reading its tables."""
    query = "SELECT count(*), sum(CASE WHEN finished THEN 1 ELSE 0 END) FROM seed_source"
    if here.database:
        row = asyncio.run(_row(here.database, query))
    else:
        file = here.folder / "data" / "frontier.sqlite"
        try:
            with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=10)) as base:
                row = base.execute(query).fetchone()
        except sqlite3.OperationalError:  # it is being created
            row = None
    return row is not None and bool(row[0]) and row[0] == row[1]


async def _row(url: str, query: str) -> Any:
    connection = await asyncpg.connect(url, server_settings={"search_path": "rove"})
    try:
        return await connection.fetchrow(query)
    except asyncpg.UndefinedTableError:  # it is being created
        return None
    finally:
        await connection.close()
