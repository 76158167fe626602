"""The load of benchmarks.frontier: claims with settles, and added links, from one or more processes."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import asyncpg
import psutil
import uvloop

from benchmarks.frontier_backends import Backend, Plan, Postgres, Sqlite, new_url, policy
from rove.frontier.postgres.claim_floor import LOWEST
from rove.frontier.postgres.frontier import PostgresFrontier
from rove.model.ledger import RequestKind, RequestRow
from rove.model.urls import NewUrl, UrlState
from rove.model.visits import Lease, Settled, VisitResult

CLAIM_BATCH = 256
LINK_BATCH = 4096
KNOWN = 0.7
LINKS_PER_PAGE = 60
OWN_DOMAIN = 0.8


@dataclass(frozen=True, slots=True)
class ClaimTask:
    """Claim and settle until the time is over or `most` domains are settled."""

    backend: Backend
    seconds: float
    most: int
    with_requests: bool = False


@dataclass(slots=True)
class WorkDone:
    """The work of one process: domains claimed and settled, or links added."""

    count: int = 0
    new: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    latencies: list[float] = field(default_factory=list)
    bound: int = LOWEST


async def claim_and_settle(task: ClaimTask, start: Any = None) -> WorkDone:
    """Lease batches of domains in one task, and settle them in another."""
    done = WorkDone()
    async with task.backend.opened(policy()) as frontier:
        leased: asyncio.Queue[list[Lease] | None] = asyncio.Queue(maxsize=1)
        _wait_at(start)
        began, cpu = time.perf_counter(), time.process_time()

        async def claim() -> None:
            claimed = 0
            while claimed < task.most and time.perf_counter() - began < task.seconds:
                before = time.perf_counter()
                leases = await frontier.claim(min(CLAIM_BATCH, task.most - claimed))
                if not leases:
                    await asyncio.sleep(0.001)
                    continue
                done.latencies.append(time.perf_counter() - before)
                claimed += len(leases)
                await leased.put(leases)
            await leased.put(None)

        async def settle() -> None:
            while (leases := await leased.get()) is not None:
                visits = [visited(lease, task.with_requests) for lease in leases]
                done.count += await frontier.settle(visits)

        await asyncio.gather(claim(), settle())
        done.seconds, done.cpu = time.perf_counter() - began, time.process_time() - cpu
        if isinstance(frontier, PostgresFrontier):
            done.bound = frontier.claiming.floor.value
    return done


def latencies(done: Sequence[WorkDone]) -> dict[str, float]:
    """Return the latencies of claims in milliseconds. Those of the last tenth show whether claims slow down."""
    all_ms = [1000 * latency for one in done for latency in one.latencies] or [0.0]
    last = all_ms[-max(1, len(all_ms) // 10) :]
    return {
        "claim_p50_ms": statistics.median(all_ms),
        "claim_p99_ms": sorted(all_ms)[int(0.99 * len(all_ms))],
        "last_tenth_p50_ms": statistics.median(last),
    }


def visited(lease: Lease, with_requests: bool = False) -> VisitResult:
    """Return a visit that fetched the lease's first URL."""
    return VisitResult(
        lease=lease,
        requested=True,
        since_finish=0.0,
        settled=(Settled(fingerprint=lease.urls[0].fingerprint, state=UrlState.DONE),),
        requests=(page_row(lease),) if with_requests else (),
    )


def page_row(lease: Lease) -> RequestRow:
    """Return the request row for the lease's first URL."""
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


@dataclass(frozen=True, slots=True)
class AddTask:
    """Add batches of links for some seconds."""

    backend: Backend
    plan: Plan
    by_page: bool
    seconds: float
    batches: int


def batches_of(task: AddTask, number: int) -> list[list[NewUrl]]:
    """Return the batches that a process adds: random known links, and links that no process has added yet."""
    choose = random.Random(number)
    plan = task.plan
    unseen = plan.per_domain + number * (1 << 32)
    batches: list[list[NewUrl]] = []
    for _ in range(task.batches):
        batch: list[NewUrl] = []
        own = 0
        while len(batch) < LINK_BATCH:
            if len(batch) % LINKS_PER_PAGE == 0:
                own = choose.randrange(plan.domains)
            is_own = task.by_page and choose.random() < OWN_DOMAIN
            domain = own if is_own else choose.randrange(plan.domains)
            if choose.random() < KNOWN:
                page = choose.randrange(plan.per_domain)
            else:
                unseen += 1
                page = unseen
            batch.append(new_url(domain, page, is_foreign=not is_own))
        batches.append(batch)
    return batches


async def add_links(task: AddTask, batches: list[list[NewUrl]], start: Any) -> WorkDone:
    """Add links, batch after batch. The first batch is a warm-up."""
    done = WorkDone()
    async with task.backend.opened(policy()) as frontier:
        await frontier.add(batches.pop())
        _wait_at(start)
        began, cpu = time.perf_counter(), time.process_time()
        for batch in batches:
            done.new += (await frontier.add(batch)).unseen
            done.count += len(batch)
            if time.perf_counter() - began > task.seconds:
                break
        done.seconds, done.cpu = time.perf_counter() - began, time.process_time() - cpu
    return done


def run_task(task: AddTask | ClaimTask, number: int, start: Any, results: Any) -> None:
    """Run a task in this process and put its result into a queue."""
    if isinstance(task, ClaimTask):
        results.put(uvloop.run(claim_and_settle(task, start)))
    else:
        results.put(uvloop.run(add_links(task, batches_of(task, number), start)))


def in_processes(task: AddTask | ClaimTask, processes: int) -> list[WorkDone]:
    """Run the same task in several processes that start together."""
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(processes), context.Queue()
    number = random.randrange(1, 1 << 20) * 8
    workers = [context.Process(target=run_task, args=(task, number + i, start, results)) for i in range(processes)]
    for worker in workers:
        worker.start()
    done = [results.get(timeout=600) for _ in workers]
    for worker in workers:
        worker.join()
    return done


def figures(task: AddTask | ClaimTask, processes: int) -> dict[str, Any]:
    """Return the rate of all processes together, and the CPU time per domain or link."""
    before = server_cpu(task.backend)
    done = in_processes(task, processes)
    after = server_cpu(task.backend)
    count = max(1, sum(one.count for one in done))
    rates: dict[str, Any] = {
        "processes": processes,
        "per_s": count / max(one.seconds for one in done),
        "each_per_s": [one.count / one.seconds for one in done],
        "count": count,
        "client_us": 1e6 * sum(one.cpu for one in done) / count,
        "load": os.getloadavg()[0],
    }
    if before is not None and after is not None:
        rates["server_us"] = 1e6 * (after - before) / count
    if isinstance(task, ClaimTask):
        bound = max(one.bound for one in done)
        return {**rates, **latencies(done), "with_requests": task.with_requests, "bound": bound}
    return {**rates, "by_page": task.by_page, "new": sum(one.new for one in done)}


def server_cpu(backend: Backend) -> float | None:
    """Return the CPU seconds of the server's processes that have ended; None if they cannot be read."""
    if isinstance(backend, Sqlite):
        return None
    time.sleep(0.5)  # the processes of closed connections end a moment later
    try:
        times = psutil.Process(asyncio.run(_postmaster(backend))).cpu_times()
    except (asyncpg.PostgresError, psutil.Error):
        return None
    return float(times.children_user + times.children_system)


async def _postmaster(backend: Postgres) -> int:
    async with backend.connected() as connection:
        return int((await connection.fetchval("SELECT pg_read_file('postmaster.pid')")).split()[0])


def _wait_at(start: Any) -> None:
    if start is not None:
        start.wait()
