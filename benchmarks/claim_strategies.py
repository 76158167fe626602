"""Show why rove leases domains and not URLs: four ways to claim URLs, and rove's, on one PostgreSQL. Ten minutes.

    python -m benchmarks.claim_strategies            a million URLs
    python -m benchmarks.claim_strategies --quick    under a minute

The first four are what a crawler ends up with if it claims URLs (url_claims.py):

- delete: read the head of the queue, delete the row to claim it, check the domain; if not ready, append it again;
- skip locked: mark the first unclaimed row that is not locked, check the domain; if not ready, unclaim the row;
- joined: the same, but only rows whose domain is ready by its last fetch;
- both locked: the same, with the domain's row locked too and its time written at the claim;
- rove: a claimer leases domains in batches for all workers, and visits are settled in batches.

The workers of the first four share up to 50 connections; rove has its own handful. A visit is a sleep of a few
milliseconds; then the URL is done and the domain's last fetch is noted. The delay is longer than a run, so each domain
may get one request, and a second one breaks the rule. Either all URLs are spread evenly over the
domains, or the head of the queue is clogged: its first URLs belong to five domains.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import uvloop

from benchmarks import plot
from benchmarks.frontier import ROOT, SERVER_SETTINGS, postgres_url
from benchmarks.frontier_backends import Plan, Postgres
from benchmarks.frontier_load import visited
from benchmarks.report import about_machine, machine
from benchmarks.url_claims import (
    DELAY,
    NOTHING,
    STRATEGIES,
    Claim,
    Ledger,
    Queue,
    Strategy,
)
from rove.frontier.records import Policy
from rove.model.urls import NewUrl
from rove.model.visits import Lease, VisitResult
from rove.urls.canonical import NO_IDS

VISIT_SECONDS = 0.005
CONNECTIONS = 50
CLOGGING_DOMAINS = 5
GROUP = 256
GROUP_SECONDS = 0.1
PAUSE = 0.005
"""Seconds to wait after a claim that found nothing."""
SCHEMA = "strategies"


ROVE = "rove"
NAMES = (*(strategy.name for strategy in STRATEGIES), ROVE)


async def work(strategy: Strategy, pool: Any, ledger: Ledger) -> None:
    """Claim, visit and note, until the task is cancelled."""
    free_since = time.perf_counter()
    try:
        while True:
            began = time.perf_counter()
            async with pool.acquire() as connection:
                claim = await strategy.claim(connection)
            ledger.claims.append(time.perf_counter() - began)
            if isinstance(claim, str):
                ledger.reasons[claim] += 1
                if claim == NOTHING:
                    await asyncio.sleep(PAUSE)
                continue
            ledger.waits.append(time.perf_counter() - free_since)
            ledger.request(claim.domain)
            await asyncio.sleep(VISIT_SECONDS)
            async with pool.acquire() as connection:
                await note(strategy, connection, claim)
            free_since = time.perf_counter()
    except asyncio.CancelledError:
        ledger.waits.append(time.perf_counter() - free_since)


async def note(strategy: Strategy, connection: Any, claim: Claim) -> None:
    """Note the domain's last fetch and that the URL is done."""
    await connection.execute("UPDATE domain SET last_fetch = now() WHERE id = $1", claim.domain)
    if not strategy.delete_done:
        await connection.execute("UPDATE url SET done = true WHERE id = $1", claim.url)


async def run_strategy(url: str, strategy: Strategy, queue: Queue, workers: int, seconds: float) -> Ledger:
    """Run one cell of the table."""
    ledger = Ledger()
    settings = {"search_path": SCHEMA, "jit": "off"}
    async with asyncpg.create_pool(
        url,
        min_size=min(workers, CONNECTIONS),
        max_size=min(workers, CONNECTIONS),
        server_settings=settings,
    ) as pool:
        async with pool.acquire() as connection:
            await fill(connection, queue)
        await _for(seconds, [work(strategy, pool, ledger) for _ in range(workers)])
        async with pool.acquire() as connection:
            await connection.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
    return ledger


async def fill(connection: Any, queue: Queue) -> None:
    """Create and fill the tables of such a crawler, with a partial index on the unclaimed rows."""
    await connection.execute(
        f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA};"
        "CREATE TABLE domain (id integer PRIMARY KEY, last_fetch timestamptz NOT NULL);"
        "CREATE TABLE url (id bigserial, domain integer NOT NULL, claimed_at timestamptz, "
        "done boolean NOT NULL DEFAULT false, text text NOT NULL)"
    )
    await connection.execute(
        "INSERT INTO domain SELECT number, '-infinity' "
        f"FROM generate_series(0, {queue.domains - 1}) AS number;"
        "INSERT INTO url (domain, text) SELECT "
        f"CASE WHEN number < {queue.clogged} THEN number % {CLOGGING_DOMAINS} "
        f"ELSE number % {queue.domains} END, "
        "'https://www.site' || number || '.test/articles/2026/the-title-of-page' "
        f"FROM generate_series(0, {queue.urls - 1}) AS number ORDER BY number",
        timeout=300,
    )
    await connection.execute(
        "ALTER TABLE url ADD PRIMARY KEY (id);CREATE INDEX unclaimed ON url (id) WHERE claimed_at IS NULL",
        timeout=300,
    )
    await connection.execute("VACUUM ANALYZE url")
    await connection.execute("VACUUM ANALYZE domain")


@dataclass(slots=True)
class Crawl:
    """A crawl's use of its frontier, without fetching anything."""

    frontier: Any
    ledger: Ledger
    workers: int
    leased: asyncio.Queue[Lease] = field(default_factory=asyncio.Queue)
    over: asyncio.Queue[VisitResult] = field(default_factory=asyncio.Queue)
    settled: int = 0

    async def claimer(self) -> None:
        """Keep leases ready for all workers."""
        while True:
            room = self.workers + GROUP // 2 - self.leased.qsize()
            if room < GROUP // 4 or self.over.qsize() > 2 * GROUP:
                await asyncio.sleep(0.001)
                continue
            began = time.perf_counter()
            leases = await self.frontier.claim(min(room, GROUP))
            self.ledger.claims.append(time.perf_counter() - began)
            if not leases:
                self.ledger.reasons[NOTHING] += 1
                await asyncio.sleep(PAUSE)
            for lease in leases:
                self.leased.put_nowait(lease)

    async def worker(self) -> None:
        """Visit leased domains."""
        free_since = time.perf_counter()
        try:
            while True:
                lease = await self.leased.get()
                self.ledger.waits.append(time.perf_counter() - free_since)
                self.ledger.request(lease.domain)
                await asyncio.sleep(VISIT_SECONDS)
                self.over.put_nowait(visited(lease))
                free_since = time.perf_counter()
        except asyncio.CancelledError:
            self.ledger.waits.append(time.perf_counter() - free_since)

    async def settler(self) -> None:
        """Settle visits in batches."""
        while True:
            group = [await self.over.get()]
            if self.over.qsize() < GROUP:
                await asyncio.sleep(GROUP_SECONDS)
            while len(group) < GROUP and not self.over.empty():
                group.append(self.over.get_nowait())
            self.settled += await self.frontier.settle(group)


async def run_rove(url: str, queue: Queue, workers: int, seconds: float) -> Ledger:
    """Run one cell of the table with rove's own frontier."""
    ledger = Ledger()
    async with _filled(url, queue) as place, place.opened(Policy(delay=DELAY, budget=180)) as front:
        crawl = Crawl(front, ledger, workers)
        tasks = [crawl.worker() for _ in range(workers)]
        await _for(seconds, [crawl.claimer(), crawl.settler(), *tasks])
    if crawl.leased.qsize():
        ledger.reasons["left at the end"] = crawl.leased.qsize()
    return ledger


@asynccontextmanager
async def _filled(url: str, queue: Queue) -> AsyncIterator[Postgres]:
    place = Postgres(url, SCHEMA)
    await place.drop()
    rest = queue.urls - queue.clogged
    await place.fill(Plan(queue.domains, rest // queue.domains))
    if queue.clogged:
        async with place.opened(Policy(delay=DELAY, budget=180)) as frontier:
            clog = list(_clogging(queue.clogged))
            for start in range(0, len(clog), 4096):
                await frontier.add(clog[start : start + 4096])
        async with place.connected() as connection:
            await connection.execute("UPDATE domain SET ready_at = -1 WHERE name LIKE 'clog%'")
            await connection.execute("VACUUM ANALYZE domain")
    yield place
    await place.drop()


def _clogging(urls: int) -> Sequence[NewUrl]:
    texts = [
        (
            f"clog{number % CLOGGING_DOMAINS}.test",
            f"https://clog{number % CLOGGING_DOMAINS}.test/{number}",
        )
        for number in range(urls)
    ]
    return [NewUrl(NO_IDS.domain_id(name), name, NO_IDS.domain_id(text), text, 0) for name, text in texts]


async def _for(seconds: float, works: Sequence[Any]) -> None:
    """Run all tasks for some seconds."""
    tasks = [asyncio.create_task(work) for work in works]
    ended, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for task in ended:
        task.result()


# What is told


def table(cells: Sequence[dict[str, Any]]) -> str:
    """Return all cells."""
    rows = [
        {
            "queue": cell["queue"],
            "workers": cell["workers"],
            "strategy": cell["strategy"],
            "useful claims/s": cell["useful_per_s"],
            "no request": ", ".join(f"{n:,} {why}" for why, n in cell["no_request"].items()) or "0",
            "rules broken": cell["broken"],
            "claim p50 ms": cell["claim_p50_ms"],
            "claim p99 ms": cell["claim_p99_ms"],
            "worker waits p50 ms": cell["wait_p50_ms"],
            "worker waits p99 ms": cell["wait_p99_ms"],
            "load": cell["load"],
        }
        for cell in cells
    ]
    return plot.markdown(rows)


def draw(path: Path, cells: Sequence[dict[str, Any]]) -> None:
    """Return the useful claims by queue and number of workers."""
    groups: dict[str, dict[str, float]] = {}
    for cell in cells:
        group = groups.setdefault(f"{cell['queue']},\n{cell['workers']} workers", {})
        group[cell["strategy"]] = cell["useful_per_s"]
    plot.bars(path, groups, title="Claims that led to an allowed request", y="per second", log=True)


def main() -> int:
    """Measure every cell, print the table and save all results."""
    options = _options().parse_args()
    urls = 100_000 if options.quick else options.urls
    seconds = 1.5 if options.quick else options.seconds
    domains = urls // 5
    queues = [Queue(urls, domains, 0), Queue(urls, domains, min(50_000, urls // 10))]
    about = {**machine(), "server_settings": dict(SERVER_SETTINGS)}
    cells: list[dict[str, Any]] = []
    with postgres_url(options.postgres) as url:
        for queue in queues:
            for workers in options.workers:
                for name in options.only or NAMES:
                    ledger = uvloop.run(_cell(url, name, queue, workers, seconds))
                    where = {"queue": queue.name, "workers": workers, "strategy": name}
                    load = {"load": round(os.getloadavg()[0], 2)}
                    cells.append({**where, **ledger.figures(seconds), **load})
                    done = f"{queue.name}, {workers} workers, {name}: {ledger.useful:,} useful"
                    print(done, file=sys.stderr, flush=True)
    settings = {"urls": urls, "domains": domains, "seconds": seconds, "delay": DELAY}
    plot.save_json(
        options.out / "claim_strategies.json",
        {"machine": about, "settings": settings, "cells": cells},
    )
    draw(options.out / "claim_strategies.svg", cells)
    print(table(cells))
    print(f"\n- {urls:,} URLs, {domains:,} domains, {seconds:g} s a cell; fsync is off")
    print(about_machine(about))
    return 0


async def _cell(url: str, name: str, queue: Queue, workers: int, seconds: float) -> Ledger:
    if name == ROVE:
        return await run_rove(url, queue, workers, seconds)
    strategy = next(strategy for strategy in STRATEGIES if strategy.name == name)
    return await run_strategy(url, strategy, queue, workers, seconds)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", metavar="URL", help="use this server instead of a new one")
    parser.add_argument("--urls", type=int, default=1_000_000, help="URLs in the queue (default: 1,000,000)")
    parser.add_argument(
        "--workers",
        type=int,
        nargs="+",
        default=[10, 200],
        help="numbers of workers (default: 10 200)",
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each cell (default: 10)")
    parser.add_argument("--only", action="append", choices=NAMES, help="only this way to claim; repeatable")
    parser.add_argument("--quick", action="store_true", help="under a minute")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "frontier", help="folder for results")
    return parser


if __name__ == "__main__":
    sys.exit(main())
