"""Measure what claims, settles and added links cost as the frontier grows. Run by hand, about half an hour.

    python -m benchmarks.frontier            10,000 to 10 million URLs, on SQLite and on PostgreSQL
    python -m benchmarks.frontier --quick    under a minute

The benchmark fills a frontier in bulk: 20 pending URLs in each domain, all domains due. The URLs arrive in the order in
which a crawl finds them, so those of one domain lie far apart. Then it measures the frontier's own verbs, with nothing
else around:

- Claims + settles: one task leases batches of 256 domains and another settles them, as in a crawl. Each visit has one
  URL and there is no delay, so domains come back. A second run adds one request row per visit.
- Added links: batches of 4,096 links of which 70 % are known, from one process and from two. They are scattered (each
  link to another domain, the worst case) or come as 60 links per page, 80 % of them to the page's own domain.
- On PostgreSQL, the buffers that one claimed domain touches, by EXPLAIN (ANALYZE, BUFFERS) of the two statements that
  claim 100 domains; also after a million settles, with and without an old snapshot open.

Without --postgres, the benchmark starts a PostgreSQL server with fsync off and removes it at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop
from tests.postgres import own_server

from benchmarks import plot
from benchmarks.frontier_backends import Backend, Plan, Postgres, Sqlite
from benchmarks.frontier_buffers import buffers_per_claim
from benchmarks.frontier_load import (
    LINK_BATCH,
    AddTask,
    ClaimTask,
    WorkDone,
    claim_and_settle,
    figures,
    latencies,
)
from benchmarks.frontier_report import buffers_table, claims_table, draw, links_table, wear_table
from benchmarks.report import about_machine, machine, say
from rove.frontier.postgres.claim_floor import LOWEST

ROOT = Path(__file__).resolve().parent.parent
SERVER_SETTINGS: Mapping[str, str] = {
    "fsync": "off",
    "shared_buffers": "512MB",
    "max_connections": "300",
    "max_wal_size": "4GB",
}
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
QUICK_SIZES = (10_000, 100_000)
URLS_PER_DOMAIN = 20
MOST_LINKS_PER_S = 150_000
"""The batches of one process are made before the clock starts, for at most this rate."""
BACKENDS = ("sqlite", "postgres")


def measure(backend: Backend, urls: int, seconds: float) -> dict[str, Any]:
    """Fill a frontier with this many URLs and measure everything about it."""
    plan = Plan(urls // URLS_PER_DOMAIN, URLS_PER_DOMAIN)
    began = time.perf_counter()
    asyncio.run(backend.fill(plan))
    result: dict[str, Any] = {"frontier": backend.name, "urls": urls, "domains": plan.domains}
    result["fill_s"] = time.perf_counter() - began
    say(f"{backend.name}, {urls:,} URLs: filled in {result['fill_s']:.1f} s")
    result |= measure_claims(backend, urls, seconds)
    result["links"] = [
        _announced(backend, urls, _add_task(backend, plan, by_page, seconds, processes), processes)
        for by_page in (False, True)
        for processes in (1, 2)
    ]
    asyncio.run(backend.drop())
    return result


def measure_claims(backend: Backend, urls: int, seconds: float) -> dict[str, Any]:
    """Measure claims and settles, and the buffers that a claim touches before and after."""
    result: dict[str, Any] = {}
    if isinstance(backend, Postgres):
        result["buffers"] = asyncio.run(buffers_per_claim(backend, LOWEST))
    result["claims"] = [
        _announced(backend, urls, ClaimTask(backend, seconds, urls // 5 // processes, with_rows), processes)
        for processes, with_rows in ((1, False), (2, False), (1, True))
    ]
    if isinstance(backend, Postgres):
        bound = result["claims"][-1]["bound"]
        result["buffers_after"] = asyncio.run(buffers_per_claim(backend, bound))
        result["buffers_after_unbounded"] = asyncio.run(buffers_per_claim(backend, LOWEST))
    return result


def _add_task(backend: Backend, plan: Plan, by_page: bool, seconds: float, processes: int) -> AddTask:
    links = min(plan.urls, round(MOST_LINKS_PER_S * seconds / processes))
    return AddTask(backend, plan, by_page, seconds, 2 + links // LINK_BATCH)


def _announced(backend: Backend, urls: int, task: AddTask | ClaimTask, processes: int) -> dict[str, Any]:
    rates = figures(task, processes)
    what = "links" if isinstance(task, AddTask) else "claims + settles"
    rate = f"{rates['per_s']:,.0f} {what}/s"
    say(f"{backend.name}, {urls:,} URLs, {processes} process(es): {rate}")
    return rates


def wear(backend: Postgres, urls: int, settles: int) -> list[dict[str, Any]]:
    """Measure the cost of claims after many settles, and after as many more while an old snapshot is open."""
    domains = urls // URLS_PER_DOMAIN
    plan = Plan(domains, (urls + 2 * settles) // domains + 1)
    asyncio.run(backend.fill(plan))
    say(f"{backend.name}, {plan.urls:,} URLs: filled; now {settles:,} settles, twice")
    rows = [asyncio.run(_worn(backend, "filled", WorkDone()))]
    done = uvloop.run(claim_and_settle(ClaimTask(backend, 3600, settles)))
    rows.append(asyncio.run(_worn(backend, f"{settles:,} settles later", done)))
    rows.append(uvloop.run(_wear_under_snapshot(backend, settles)))
    asyncio.run(backend.drop())
    return [{**row, "urls": urls} for row in rows]


async def _wear_under_snapshot(backend: Postgres, settles: int) -> dict[str, Any]:
    async with backend.connected() as holder:
        transaction = holder.transaction(isolation="repeatable_read")
        await transaction.start()
        await holder.fetchval("SELECT count(*) FROM meta")
        done = await claim_and_settle(ClaimTask(backend, 3600, settles))
        row = await _worn(backend, f"{settles:,} more under an old snapshot", done)
        await transaction.rollback()
    return row


async def _worn(backend: Postgres, when: str, done: WorkDone) -> dict[str, Any]:
    names = ("domain", "domain_due", "domain_pkey", "url", "url_pending")
    async with backend.connected() as connection:
        sizes = {name: await connection.fetchval(f"SELECT pg_table_size('{name}')") for name in names}
    return {
        "when": when,
        "per_s": done.count / done.seconds if done.seconds else None,
        **(latencies([done]) if done.latencies else {}),
        "buffers": await buffers_per_claim(backend, done.bound),
        "buffers_unbounded": await buffers_per_claim(backend, LOWEST),
        "megabytes": {name: round(size / 1e6, 1) for name, size in sizes.items()},
        "load": os.getloadavg()[0],
    }


@contextmanager
def postgres_url(given: str | None) -> Iterator[str]:
    """Yield the URL of the given server, or of a new one."""
    if given:
        yield given
        return
    with own_server(SERVER_SETTINGS) as server:
        yield server.url


def main() -> int:
    """Measure, print the tables and save all results."""
    options = _options().parse_args()
    sizes = [size for size in (QUICK_SIZES if options.quick else SIZES) if size <= options.urls]
    if options.urls > sizes[-1] and not options.quick:
        sizes.append(options.urls)
    if options.only_size:
        sizes = options.only_size
    seconds = 1.0 if options.quick else options.seconds
    settles = 20_000 if options.quick else options.settles
    about = {**machine(), "server_settings": dict(SERVER_SETTINGS)}
    results: list[dict[str, Any]] = []
    worn: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="rove-frontier-") as folder:
        if "sqlite" in options.on:
            for size in sizes:
                results.append(measure(Sqlite(f"{folder}/frontier.sqlite"), size, seconds))
        if "postgres" in options.on:
            with postgres_url(options.postgres) as url:
                for size in sizes:
                    results.append(measure(Postgres(url, f"bench_{size}"), size, seconds))
                if settles:
                    size = 20_000 if options.quick else options.settles_urls
                    worn = wear(Postgres(url, "bench_worn"), size, settles)
    everything = {"machine": about, "results": results, "worn": worn}
    plot.save_json(options.out / "frontier.json", everything)
    draw(options.out, results, worn)
    tables = [links_table(results), claims_table(results), buffers_table(results)]
    tables += [wear_table(worn)] if worn else []
    print(*filter(None, tables), about_machine(about), sep="\n\n")
    return 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", metavar="URL", help="use this server instead of a new one")
    parser.add_argument(
        "--on",
        nargs="+",
        choices=BACKENDS,
        default=BACKENDS,
        help="backends to measure (default: both)",
    )
    parser.add_argument("--urls", type=int, default=SIZES[-1], help="largest frontier (default: 10 million)")
    parser.add_argument("--only-size", type=int, action="append", help="measure only this size; repeatable")
    parser.add_argument("--seconds", type=float, default=8.0, help="length of each measurement (default: 8)")
    parser.add_argument(
        "--settles",
        type=int,
        default=1_000_000,
        help="settles before the last measurement (default: 1,000,000; 0 skips it)",
    )
    parser.add_argument(
        "--settles-urls",
        type=int,
        default=1_000_000,
        help="URLs in the frontier of that measurement (default: 1,000,000)",
    )
    parser.add_argument("--quick", action="store_true", help="under a minute")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "frontier", help="folder for the results")
    return parser


if __name__ == "__main__":
    sys.exit(main())
