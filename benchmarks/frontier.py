"""What do claims, settles and offered links cost as the frontier grows? Run by hand, about half an hour.

    python -m benchmarks.frontier            10,000 to 10 million URLs, on SQLite and on PostgreSQL
    python -m benchmarks.frontier --quick    under a minute

A frontier is filled in bulk, with 20 pending URLs in each domain and all domains due, in the order in which a crawl
meets them: the URLs of a domain lie far apart. Then, through the frontier's own verbs and with nothing else around:

- claims + settles: batches of 256 domains are leased by one task and settled by another, as in a crawl, one URL a
  visit, with no delay, so that domains come back; once more with the row of one request for each visit;
- offered links: batches of 4,096 of which 70 % are known, from one process and from two; scattered (each link to
  a domain of its own, the worst case) or as 60 links a page, 80 % of them to the page's own domain;
- on PostgreSQL the buffers that one claimed domain touches, by EXPLAIN (ANALYZE, BUFFERS) of the two statements of
  a claim of 100 domains, and what becomes of them after a million settles, also while somebody holds a snapshot open.

Without --postgres a server of our own is started, with fsync off, and is gone at the end, as is everything else.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import psutil
import uvloop
from tests.postgres import own_server

from benchmarks import plot
from benchmarks.report import about_machine, machine
from rove.frontier.contract import Frontier, Policy
from rove.frontier.postgres.claim_floor import LOWEST
from rove.frontier.postgres.database import SESSION_SETTINGS, PostgresDatabase
from rove.frontier.postgres.frontier import PostgresFrontier
from rove.frontier.postgres.session import QUERIES
from rove.frontier.priority import HELD, RETRIED, URLS_PER_ADD, URLS_PER_LEASE
from rove.frontier.sqlite.database import SqliteDatabase
from rove.frontier.sqlite.frontier import SqliteFrontier
from rove.model.ledger import RequestKind, RequestRow
from rove.model.urls import NewUrl, UrlState
from rove.model.visits import Lease, Settled, VisitResult
from rove.urls.fingerprint import fingerprint

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
CLAIM_BATCH = 256
EXPLAINED_BATCH = 100
EXPLAINED_TIMES = 5
LINK_BATCH = 4096
KNOWN = 0.7
LINKS_PER_PAGE = 60
OWN_DOMAIN = 0.8
MOST_LINKS_PER_S = 150_000
"""Of one process: batches are made before the clock starts."""
BUDGET = 180.0
BACKENDS = ("sqlite", "postgres")
TARGETS = {"links": 60_000.0, "claims": 15_000.0}


# What the frontier holds


@dataclass(frozen=True, slots=True)
class Plan:
    """How many URLs in how many domains."""

    domains: int
    per_domain: int

    @property
    def urls(self) -> int:
        """All of them."""
        return self.domains * self.per_domain


def domain_name(number: int) -> str:
    """The name of a domain."""
    return f"site{number}.test"


def url_text(number: int, page: int) -> str:
    """A URL of a domain."""
    return f"https://www.site{number}.test/articles/2026/the-title-of-page-{page}"


def new_url(number: int, page: int) -> NewUrl:
    """A link to a page."""
    name, text = domain_name(number), url_text(number, page)
    return NewUrl(fingerprint(name), name, fingerprint(text), text, 1)


# Where it is


@dataclass(frozen=True, slots=True)
class Sqlite:
    """A frontier in a file."""

    file: str
    name: str = "SQLite"

    @asynccontextmanager
    async def opened(self, policy: Policy) -> AsyncIterator[Frontier]:
        """One more process of the crawl."""
        database = SqliteDatabase(Path(self.file))
        await database.open(create=True)
        frontier = SqliteFrontier(database, policy)
        await frontier.begin(run=1)
        try:
            yield frontier
        finally:
            await database.close()

    async def fill(self, plan: Plan) -> None:
        """Insert without the indexes of the URLs, in the order of arrival, and index afterwards."""
        async with self.opened(policy()):
            pass
        with sqlite3.connect(self.file, isolation_level=None) as base:
            indexes = base.execute(
                "SELECT name, sql FROM sqlite_master WHERE name IN ('url_key', 'url_pending')"
            ).fetchall()
            base.execute("PRAGMA synchronous = OFF")
            base.execute("BEGIN")
            for name, _ in indexes:
                base.execute(f"DROP INDEX {name}")
            base.executemany(
                "INSERT INTO domain (id, name, ready_at, pending) VALUES (?, ?, ?, ?)",
                (
                    (fingerprint(domain_name(number)), domain_name(number), number, plan.per_domain)
                    for number in range(plan.domains)
                ),
            )
            base.executemany(
                "INSERT INTO url (domain, fingerprint, url, priority, position, depth) "
                "VALUES (?, ?, ?, 1, ?, 1)",
                _rows_by_arrival(plan),
            )
            base.executemany("INSERT INTO counter VALUES (?, ?)", _counters(plan).items())
            base.execute("INSERT INTO counter VALUES ('adds', ?)", (plan.urls // URLS_PER_ADD + 1,))
            for _, index in indexes:
                base.execute(index)
            base.execute("COMMIT")
            base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        base.close()

    async def drop(self) -> None:
        """Take it away."""
        for path in Path(self.file).parent.glob(f"{Path(self.file).name}*"):
            path.unlink()


@dataclass(frozen=True, slots=True)
class Postgres:
    """A frontier in a schema."""

    url: str
    schema: str
    name: str = "PostgreSQL"

    @asynccontextmanager
    async def opened(self, policy: Policy) -> AsyncIterator[Frontier]:
        """One more process of the crawl."""
        database = PostgresDatabase(self.url, self.schema)
        await database.open(create=True)
        frontier = PostgresFrontier(database, policy, machine=1)
        await frontier.begin(run=1)
        try:
            yield frontier
        finally:
            await database.close()

    @asynccontextmanager
    async def connected(self, **settings: str) -> AsyncIterator[Any]:
        """A connection of our own."""
        connection = await asyncpg.connect(
            self.url, server_settings={**settings, "search_path": f'"{self.schema}"'}
        )
        try:
            yield connection
        finally:
            await connection.close()

    async def fill(self, plan: Plan) -> None:
        """Copy without indexes, in the order of arrival, and index afterwards."""
        async with self.opened(policy()):
            pass
        async with self.connected(maintenance_work_mem="512MB") as connection:
            await self._fill(connection, plan)

    async def _fill(self, connection: Any, plan: Plan) -> None:
        index = await connection.fetchval("SELECT pg_get_indexdef('url_pending'::regclass)")
        await connection.execute("ALTER TABLE url DROP CONSTRAINT url_pkey; DROP INDEX url_pending")
        await connection.copy_to_table(
            "domain",
            source=_lines(
                f"{fingerprint(domain_name(number))}\t{domain_name(number)}\t{number}\t"
                f"{plan.per_domain}\n"
                for number in range(plan.domains)
            ),
            columns=["id", "name", "ready_at", "pending"],
        )
        await connection.copy_to_table(
            "url",
            source=_lines(_lines_by_arrival(plan)),
            columns=["domain", "fingerprint", "url", "priority", "position", "depth"],
        )
        await connection.execute("ALTER TABLE url ADD PRIMARY KEY (domain, fingerprint)")
        await connection.execute(index)
        await connection.executemany(
            "INSERT INTO counter (name, slot, value) VALUES ($1, 0, $2)", _counters(plan).items()
        )
        await connection.execute(f"SELECT setval('add_number', {plan.urls // URLS_PER_ADD + 1})")
        await connection.execute("VACUUM ANALYZE")

    async def drop(self) -> None:
        """Take it away."""
        async with self.connected() as connection:
            await connection.execute(f'DROP SCHEMA IF EXISTS "{self.schema}" CASCADE')


Place = Sqlite | Postgres


def policy(delay: float = 0.0) -> Policy:
    """No delay: a domain that was settled may be claimed again."""
    return Policy(delay=delay, budget=BUDGET)


def _rows_by_arrival(plan: Plan) -> Iterator[tuple[int, int, str, int]]:
    ids = [fingerprint(domain_name(number)) for number in range(plan.domains)]
    for page in range(plan.per_domain):
        for number, id in enumerate(ids):
            text = url_text(number, page)
            yield id, fingerprint(text), text, page * plan.domains + number


def _lines_by_arrival(plan: Plan) -> Iterator[str]:
    for id, key, text, position in _rows_by_arrival(plan):
        yield f"{id}\t{key}\t{text}\t1\t{position}\t1\n"


async def _lines(lines: Iterator[str]) -> AsyncIterator[bytes]:
    part: list[str] = []
    for line in lines:
        part.append(line)
        if len(part) == 5_000:
            yield "".join(part).encode()
            part.clear()
    yield "".join(part).encode()


def _counters(plan: Plan) -> dict[str, int]:
    return {
        "urls.pending": plan.urls,
        "domains.total": plan.domains,
        "domains.active": plan.domains,
    }


# Claims and settles


@dataclass(frozen=True, slots=True)
class Visiting:
    """Who claims and settles, until the time is over or so many are settled."""

    place: Place
    seconds: float
    most: int
    with_requests: bool = False


@dataclass(slots=True)
class Done:
    """What a process did: domains claimed and settled, or links offered."""

    count: int = 0
    new: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    latencies: list[float] = field(default_factory=list)
    bound: int = LOWEST


async def claim_and_settle(visiting: Visiting, start: Any = None) -> Done:
    """One task leases batches, another settles them."""
    done = Done()
    async with visiting.place.opened(policy()) as frontier:
        leased: asyncio.Queue[list[Lease] | None] = asyncio.Queue(maxsize=1)
        _wait_for(start)
        began, cpu = time.perf_counter(), time.process_time()

        async def claim() -> None:
            claimed = 0
            while claimed < visiting.most and time.perf_counter() - began < visiting.seconds:
                before = time.perf_counter()
                leases = await frontier.claim(min(CLAIM_BATCH, visiting.most - claimed))
                if not leases:
                    await asyncio.sleep(0.001)
                    continue
                done.latencies.append(time.perf_counter() - before)
                claimed += len(leases)
                await leased.put(leases)
            await leased.put(None)

        async def settle() -> None:
            while (leases := await leased.get()) is not None:
                visits = [visited(lease, visiting.with_requests) for lease in leases]
                done.count += await frontier.settle(visits)

        await asyncio.gather(claim(), settle())
        done.seconds, done.cpu = time.perf_counter() - began, time.process_time() - cpu
        if isinstance(frontier, PostgresFrontier):
            done.bound = frontier.claiming.floor.value
    return done


def latencies(done: Sequence[Done]) -> dict[str, float]:
    """Of the claims, in milliseconds; of the last tenth of them as well, which shows what piled up."""
    found = [1000 * latency for one in done for latency in one.latencies] or [0.0]
    last = found[-max(1, len(found) // 10) :]
    return {
        "claim_p50_ms": statistics.median(found),
        "claim_p99_ms": sorted(found)[int(0.99 * len(found))],
        "last_tenth_p50_ms": statistics.median(last),
    }


def visited(lease: Lease, with_requests: bool = False) -> VisitResult:
    """A visit that fetched the lease's first URL."""
    return VisitResult(
        lease=lease,
        requested=True,
        since_finish=0.0,
        settled=(Settled(fingerprint=lease.urls[0].fingerprint, state=UrlState.DONE),),
        requests=(page_row(lease),) if with_requests else (),
    )


def page_row(lease: Lease) -> RequestRow:
    """What is kept of the request for the lease's first URL."""
    head = lease.urls[0]
    return RequestRow(
        visit=lease.token,
        seq=0,
        domain=lease.domain,
        kind=RequestKind.PAGE,
        url=head.url,
        fingerprint=head.fingerprint,
        started=1.0,
        began=1_000,
        ended=2_000,
        address="192.0.2.1",
        status=200,
        media_type="text/html",
        size=40_000,
        content_hash=head.fingerprint,
        title="The title of a page",
    )


# Buffers


async def buffers_per_claim(place: Postgres, bound: int) -> float:
    """Shared buffers, hit or read, that a claim of a hundred domains touches for each of them."""
    async with place.connected(**SESSION_SETTINGS) as connection:
        for query in ("lease", "head_urls"):
            await connection.execute(f"PREPARE {query} AS {QUERIES[query].text}")
        found = [await _claim_explained(connection, bound) for _ in range(EXPLAINED_TIMES)]
    return statistics.median(found)


async def _claim_explained(connection: Any, bound: int) -> float:
    transaction = connection.transaction()
    await transaction.start()
    try:
        lease = {"bound": bound, "limit": EXPLAINED_BATCH, "budget": 180_000, "delay": 0}
        lease |= {"latest": 1 << 62, "ceiling": 1 << 62, "earliest": 0}
        touched = await _explained(connection, "lease", {**lease, "process": -1})
        rows = await connection.fetch("SELECT id FROM domain WHERE owner = -1")
        now = await connection.fetchval("SELECT clock_ms()")
        ids = "'{" + ",".join(str(row[0]) for row in rows) + "}'"
        order = {"retried": RETRIED, "held": HELD, "limit": URLS_PER_LEASE}
        touched += await _explained(connection, "head_urls", {"domains": ids, "now": now, **order})
        return touched / len(rows)
    finally:
        await transaction.rollback()


async def _explained(connection: Any, query: str, given: Mapping[str, object]) -> int:
    values = ", ".join(str(given[name]) for name in QUERIES[query].parameters)
    sql = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {query} ({values})"
    plan = json.loads(await connection.fetchval(sql))[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


# Links


@dataclass(frozen=True, slots=True)
class Offering:
    """Who offers what for how long."""

    place: Place
    plan: Plan
    by_page: bool
    seconds: float
    batches: int


def batches_of(offering: Offering, number: int) -> list[list[NewUrl]]:
    """What a process offers: known links at random, and links that nobody has offered yet."""
    choose = random.Random(number)
    plan = offering.plan
    unseen = plan.per_domain + number * (1 << 32)
    batches: list[list[NewUrl]] = []
    for _ in range(offering.batches):
        batch: list[NewUrl] = []
        own = 0
        while len(batch) < LINK_BATCH:
            if len(batch) % LINKS_PER_PAGE == 0:
                own = choose.randrange(plan.domains)
            is_own = offering.by_page and choose.random() < OWN_DOMAIN
            domain = own if is_own else choose.randrange(plan.domains)
            if choose.random() < KNOWN:
                batch.append(new_url(domain, choose.randrange(plan.per_domain)))
            else:
                unseen += 1
                batch.append(new_url(domain, unseen))
        batches.append(batch)
    return batches


async def offer(offering: Offering, batches: list[list[NewUrl]], start: Any) -> Done:
    """Offer links, one batch after the other; the first one warms up."""
    done = Done()
    async with offering.place.opened(policy()) as frontier:
        await frontier.add(batches.pop())
        _wait_for(start)
        began, cpu = time.perf_counter(), time.process_time()
        for batch in batches:
            done.new += (await frontier.add(batch)).unseen
            done.count += len(batch)
            if time.perf_counter() - began > offering.seconds:
                break
        done.seconds, done.cpu = time.perf_counter() - began, time.process_time() - cpu
    return done


# Processes


def process(task: Offering | Visiting, number: int, start: Any, results: Any) -> None:
    """What one process does."""
    if isinstance(task, Visiting):
        results.put(uvloop.run(claim_and_settle(task, start)))
    else:
        results.put(uvloop.run(offer(task, batches_of(task, number), start)))


def in_processes(task: Offering | Visiting, processes: int) -> list[Done]:
    """The same task in so many processes, which start together."""
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(processes), context.Queue()
    number = random.randrange(1, 1 << 20) * 8
    workers = [
        context.Process(target=process, args=(task, number + i, start, results))
        for i in range(processes)
    ]
    for worker in workers:
        worker.start()
    done = [results.get(timeout=600) for _ in workers]
    for worker in workers:
        worker.join()
    return done


def figures(task: Offering | Visiting, processes: int) -> dict[str, Any]:
    """The rate of all processes together, and the CPU time of one domain or link."""
    before = server_cpu(task.place)
    done = in_processes(task, processes)
    after = server_cpu(task.place)
    count = max(1, sum(one.count for one in done))
    found: dict[str, Any] = {
        "processes": processes,
        "per_s": count / max(one.seconds for one in done),
        "each_per_s": [one.count / one.seconds for one in done],
        "count": count,
        "client_us": 1e6 * sum(one.cpu for one in done) / count,
        "load": os.getloadavg()[0],
    }
    if before is not None and after is not None:
        found["server_us"] = 1e6 * (after - before) / count
    if isinstance(task, Visiting):
        bound = max(one.bound for one in done)
        return {**found, **latencies(done), "with_requests": task.with_requests, "bound": bound}
    return {**found, "by_page": task.by_page, "new": sum(one.new for one in done)}


def server_cpu(place: Place) -> float | None:
    """CPU seconds of all the server's processes that have ended, None where it is not ours to see."""
    if isinstance(place, Sqlite):
        return None
    time.sleep(0.5)  # connections that were closed end a moment later
    try:
        times = psutil.Process(asyncio.run(_postmaster(place))).cpu_times()
    except (asyncpg.PostgresError, psutil.Error):
        return None
    return float(times.children_user + times.children_system)


async def _postmaster(place: Postgres) -> int:
    async with place.connected() as connection:
        return int((await connection.fetchval("SELECT pg_read_file('postmaster.pid')")).split()[0])


def _wait_for(start: Any) -> None:
    if start is not None:
        start.wait()


# The runs


def measure(place: Place, urls: int, seconds: float) -> dict[str, Any]:
    """Everything about one frontier of one size."""
    plan = Plan(urls // URLS_PER_DOMAIN, URLS_PER_DOMAIN)
    began = time.perf_counter()
    asyncio.run(place.fill(plan))
    found: dict[str, Any] = {"frontier": place.name, "urls": urls, "domains": plan.domains}
    found["fill_s"] = time.perf_counter() - began
    _say(f"{place.name}, {urls:,} URLs: filled in {found['fill_s']:.1f} s")
    found |= measure_claims(place, urls, seconds)
    found["links"] = [
        _told(place, urls, _offering(place, plan, by_page, seconds, processes), processes)
        for by_page in (False, True)
        for processes in (1, 2)
    ]
    asyncio.run(place.drop())
    return found


def measure_claims(place: Place, urls: int, seconds: float) -> dict[str, Any]:
    """Claims and settles, and the buffers that a claim touches before and after."""
    found: dict[str, Any] = {}
    if isinstance(place, Postgres):
        found["buffers"] = asyncio.run(buffers_per_claim(place, LOWEST))
    found["claims"] = [
        _told(place, urls, Visiting(place, seconds, urls // 5 // processes, kept), processes)
        for processes, kept in ((1, False), (2, False), (1, True))
    ]
    if isinstance(place, Postgres):
        bound = found["claims"][-1]["bound"]
        found["buffers_after"] = asyncio.run(buffers_per_claim(place, bound))
        found["buffers_after_unbounded"] = asyncio.run(buffers_per_claim(place, LOWEST))
    return found


def _offering(place: Place, plan: Plan, by_page: bool, seconds: float, processes: int) -> Offering:
    links = min(plan.urls, round(MOST_LINKS_PER_S * seconds / processes))
    return Offering(place, plan, by_page, seconds, 2 + links // LINK_BATCH)


def _told(place: Place, urls: int, task: Offering | Visiting, processes: int) -> dict[str, Any]:
    found = figures(task, processes)
    what = "links" if isinstance(task, Offering) else "claims + settles"
    rate = f"{found['per_s']:,.0f} {what}/s"
    _say(f"{place.name}, {urls:,} URLs, {processes} process(es): {rate}")
    return found


def wear(place: Postgres, urls: int, settles: int) -> list[dict[str, Any]]:
    """What claims cost after many settles, and after many more under an old snapshot."""
    domains = urls // URLS_PER_DOMAIN
    plan = Plan(domains, (urls + 2 * settles) // domains + 1)
    asyncio.run(place.fill(plan))
    _say(f"{place.name}, {plan.urls:,} URLs: filled; now {settles:,} settles, twice")
    found = [asyncio.run(_worn(place, "filled", Done()))]
    done = uvloop.run(claim_and_settle(Visiting(place, 3600, settles)))
    found.append(asyncio.run(_worn(place, f"{settles:,} settles later", done)))
    found.append(uvloop.run(_wear_under_snapshot(place, settles)))
    asyncio.run(place.drop())
    return [{**row, "urls": urls} for row in found]


async def _wear_under_snapshot(place: Postgres, settles: int) -> dict[str, Any]:
    async with place.connected() as holder:
        transaction = holder.transaction(isolation="repeatable_read")
        await transaction.start()
        await holder.fetchval("SELECT count(*) FROM meta")
        done = await claim_and_settle(Visiting(place, 3600, settles))
        found = await _worn(place, f"{settles:,} more under an old snapshot", done)
        await transaction.rollback()
    return found


async def _worn(place: Postgres, when: str, done: Done) -> dict[str, Any]:
    names = ("domain", "domain_due", "domain_pkey", "url", "url_pending")
    async with place.connected() as connection:
        sizes = {
            name: await connection.fetchval(f"SELECT pg_table_size('{name}')") for name in names
        }
    return {
        "when": when,
        "per_s": done.count / done.seconds if done.seconds else None,
        **(latencies([done]) if done.latencies else {}),
        "buffers": await buffers_per_claim(place, done.bound),
        "buffers_unbounded": await buffers_per_claim(place, LOWEST),
        "megabytes": {name: round(size / 1e6, 1) for name, size in sizes.items()},
        "load": os.getloadavg()[0],
    }


@contextmanager
def postgres_url(given: str | None) -> Iterator[str]:
    """The server that was asked for, or one of our own."""
    if given:
        yield given
        return
    with own_server(SERVER_SETTINGS) as server:
        yield server.url


# What is told


def links_table(results: Sequence[dict[str, Any]]) -> str:
    """Offered links."""
    rows = [
        {
            "frontier": result["frontier"],
            "URLs": result["urls"],
            "links": _kind(links),
            "processes": links["processes"],
            "links/s": links["per_s"],
            "each process": ", ".join(f"{rate:,.0f}" for rate in links["each_per_s"]),
            "client µs/link": links["client_us"],
            "server µs/link": links.get("server_us"),
            "load": links["load"],
        }
        for result in results
        for links in result["links"]
    ]
    return plot.markdown(rows)


def claims_table(results: Sequence[dict[str, Any]]) -> str:
    """Claims and settles."""
    rows = [
        {
            "frontier": result["frontier"],
            "URLs": result["urls"],
            "processes": claims["processes"],
            "request rows": "kept" if claims["with_requests"] else "none",
            "claims + settles/s": claims["per_s"],
            "claim p50 ms": claims["claim_p50_ms"],
            "claim p99 ms": claims["claim_p99_ms"],
            "client µs": claims["client_us"],
            "server µs": claims.get("server_us"),
            "load": claims["load"],
        }
        for result in results
        for claims in result["claims"]
    ]
    return plot.markdown(rows)


def buffers_table(results: Sequence[dict[str, Any]]) -> str:
    """Buffers that a claim touches."""
    rows = [
        {
            "URLs": result["urls"],
            "domains": result["domains"],
            "buffers/claim, filled": result["buffers"],
            "after claims and settles": result["buffers_after"],
            "the same without bound": result["buffers_after_unbounded"],
            "filled in s": result["fill_s"],
        }
        for result in results
        if "buffers" in result
    ]
    return plot.markdown(rows) if rows else ""


def wear_table(worn: Sequence[dict[str, Any]]) -> str:
    """What many settles leave behind."""
    rows = [
        {
            "PostgreSQL": row["when"],
            "claims + settles/s": row.get("per_s"),
            "claim p50 ms": row.get("claim_p50_ms"),
            "claim p99 ms": row.get("claim_p99_ms"),
            "last tenth p50 ms": row.get("last_tenth_p50_ms"),
            "buffers/claim": row["buffers"],
            "without bound": row["buffers_unbounded"],
            "load": row["load"],
            "MB": ", ".join(f"{name} {size:g}" for name, size in row["megabytes"].items()),
        }
        for row in worn
    ]
    return plot.markdown(rows)


def draw(folder: Path, results: Sequence[dict[str, Any]], worn: Sequence[dict[str, Any]]) -> None:
    """The plots."""
    x = "URLs in the frontier"
    links: dict[str, list[tuple[float, float]]] = {}
    claims: dict[str, list[tuple[float, float]]] = {}
    touched: dict[str, list[tuple[float, float]]] = {}
    for result in results:
        name, urls = result["frontier"], result["urls"]
        for one in result["links"]:
            key = f"{name}, {_kind(one)}, {one['processes']} process(es)"
            links.setdefault(key, []).append((urls, one["per_s"]))
        for one in result["claims"]:
            key = f"{name}, {one['processes']} process(es)"
            key += ", with request rows" if one["with_requests"] else ""
            claims.setdefault(key, []).append((urls, one["per_s"]))
        if "buffers" in result:
            touched.setdefault("filled", []).append((urls, result["buffers"]))
            touched.setdefault("after claims", []).append((urls, result["buffers_after"]))
    for row in worn[1:]:
        touched[row["when"]] = [(row["urls"], row["buffers"])]
    plot.lines(
        folder / "links.svg",
        links,
        title="Offered links, 70 % known",
        x=x,
        y="links/s",
        target=TARGETS["links"],
    )
    plot.lines(
        folder / "claims.svg",
        claims,
        title="Domains claimed and settled",
        x=x,
        y="per second",
        target=TARGETS["claims"],
    )
    if touched:
        plot.lines(
            folder / "buffers.svg",
            touched,
            title="Buffers that a claim touches on PostgreSQL",
            x=x,
            y="buffers per domain claimed",
        )


def _kind(links: Mapping[str, Any]) -> str:
    return "60 a page" if links["by_page"] else "scattered"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Measure, print the tables and save everything."""
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--postgres", metavar="URL", help="a server; else one of our own")
    parser.add_argument("--on", nargs="+", choices=BACKENDS, default=BACKENDS, help="both")
    parser.add_argument("--urls", type=int, default=SIZES[-1], help="at most: 10 million")
    parser.add_argument("--only-size", type=int, action="append", help="instead of growing")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement: 8")
    parser.add_argument("--settles", type=int, default=1_000_000, help="1000000; 0: none")
    parser.add_argument("--settles-urls", type=int, default=1_000_000, help="of how many URLs")
    parser.add_argument("--quick", action="store_true", help="under a minute")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "frontier", help="folder")
    return parser


if __name__ == "__main__":
    sys.exit(main())
