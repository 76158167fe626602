"""A crawl whose PostgreSQL primary is killed, with a standby that is promoted: two real servers and a real web."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from tests.acceptance.command import crawl_options, logged, rove_each, wait_for
from tests.acceptance.interruption import environment_with
from tests.acceptance.small_web import ServedWeb, served
from tests.judge import LogVerdict, judge
from tests.postgres import NoServer, PostgresServer, own_server

NAME = "failover"
PROMOTED = "was promoted from a standby"
_LEASE = re.compile(r" lease process=\d+ domain=(\S+) visit=(\d+) ")
START_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How the crawl and the failover go."""

    is_synchronous: bool = False
    lag_requests: int = 0
    """Requests that the web gets while the standby is cut off, before the primary is killed."""
    lag_seconds: float = 0.0
    """For how long the standby is cut off at least."""
    hosts: int = 16
    delay: float = 0.3
    budget: float = 4.0
    """Stands in for the three minutes that a visit may take, so that the rest is short."""
    requests_before: int = 20


@dataclass(frozen=True, kw_only=True)
class Result:
    """What the web and the crawl saw of a failover."""

    verdict: LogVerdict
    given_twice: int
    """Visit numbers that were given out for two visits."""
    lost_urls: int
    """URLs that the primary had and the promoted standby did not."""
    missing: int
    """Pages that the crawl should have stored and has not."""
    audit: str
    """What `rove audit` prints."""
    away: float
    """Seconds from the kill to the message that the database is away."""
    pause: float
    """Seconds from the kill to the next visit."""
    output: str
    refusal: str
    """What rove says about the former primary."""


@contextmanager
def pair(*, is_synchronous: bool) -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """Start a primary and its standby."""
    with own_server() as primary, own_server(standby_of=primary) as standby:
        if is_synchronous:
            run(primary.url, "ALTER SYSTEM SET synchronous_standby_names = '*'")
            run(primary.url, "SELECT pg_reload_conf()")
        wait_for(lambda: run(primary.url, "SELECT FROM pg_stat_replication WHERE state = 'streaming'"))
        yield primary, standby


def run(url: str, sql: str) -> list[Any]:
    """Run one statement."""

    async def work() -> list[Any]:
        connection = await asyncpg.connect(url, server_settings={"search_path": NAME})
        try:
            rows: list[Any] = await connection.fetch(sql)
            return rows
        finally:
            await connection.close()

    return asyncio.run(work())


def url_of(*servers: PostgresServer) -> str:
    """Return a URL that names several servers, of which rove uses the primary."""
    hosts = ",".join(server.url.partition("@")[2].partition("/")[0] for server in servers)
    return f"postgresql://rove@{hosts}/postgres?target_session_attrs=read-write"


def fail_over(plan: Plan, folder: Path) -> Result:
    """Crawl, kill the primary, promote the standby, bring the old primary back, and crawl to the end."""
    data = folder / "data"
    budget = f"import rove.policy.constants as constants\nconstants.VISIT_BUDGET = {plan.budget}\n"
    env = environment_with(folder / "short visits", budget)
    with (
        pair(is_synchronous=plan.is_synchronous) as (primary, standby),
        served(folder, hosts=plan.hosts, profile="calm", knobs=["crawl_delay=0.5"]) as web,
    ):
        seeds = web.write_seeds(folder / "seeds.txt")
        both = ["--frontier", url_of(primary, standby), "--crawl-name", NAME]
        options = [
            *crawl_options(data, delay=plan.delay, processes=2, concurrency=12),
            "--log-level",
            "debug",
            "--timeout",
            plan.budget / 2,
        ]
        with logged("crawl", seeds, *options, *web.reach, *both, env=env) as (crawl, output):

            def wait_for_requests(count: int) -> None:
                # Not often, because each look reads the whole log.
                wait_for(lambda: crawl.poll() is not None or len(web.requests()) > count, pause=0.2)
                assert crawl.poll() is None, output()

            wait_for_requests(plan.requests_before)
            if plan.lag_requests:
                cut_off(standby)
                since = time.monotonic()
                wait_for_requests(len(web.requests()) + plan.lag_requests)
                wait_for(lambda: time.monotonic() >= since + plan.lag_seconds)
            known = urls_in(primary)
            primary.stop(signal.SIGKILL)
            killed_at = time.monotonic()
            wait_for(lambda: "the database is away" in output())
            away = time.monotonic() - killed_at
            standby.promote()
            lost = known - urls_in(standby)
            start_again(primary)
            crawl.wait(300)
            said = output()
            assert crawl.returncode == 0, said
        given = Counter(visit for domain, visit in leases_in(data))
        commands = [["audit"], ["export"], ["crawl", "--resume", "--frontier", url_of(primary)]]
        audit, export, refusal = rove_each([[*words, "--data-dir", data] for words in commands])
        assert audit.returncode in (0, 1) and audit.stdout, audit.stderr
        assert refusal.returncode == 2, refusal.stderr
        pages = {json.loads(line)["url"] for line in export.stdout.splitlines()}
        return Result(
            verdict=judge(web.web, web.requests(), plan.delay, allowed_refetches=10**6),
            given_twice=sum(count > 1 for count in given.values()),
            lost_urls=len(lost),
            missing=len(web.expected() - pages),
            audit=audit.stdout,
            away=away,
            pause=first_visit_after(web, killed_at, plan),
            output=said,
            refusal=refusal.stderr,
        )


def cut_off(standby: PostgresServer) -> None:
    """Let the standby follow its primary no longer."""
    run(standby.url, "ALTER SYSTEM SET primary_conninfo = ''")
    run(standby.url, "SELECT pg_reload_conf()")
    wait_for(lambda: not run(standby.url, "SELECT FROM pg_stat_wal_receiver"))


def start_again(server: PostgresServer) -> None:
    """Start a server that was killed. Its old processes may linger for a moment."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            return server.start()
        except NoServer:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def urls_in(server: PostgresServer) -> set[str]:
    """Return the URLs that a server knows."""
    return {row[0] for row in run(server.url, "SELECT url FROM url")}


def leases_in(data: Path) -> list[tuple[str, str]]:
    """Return the domain and the visit number of every lease in the logs."""
    return [found for log in data.glob("rove-*.log") for found in _LEASE.findall(log.read_text())]


def first_visit_after(web: ServedWeb, killed_at: float, plan: Plan) -> float:
    """Return how long after the kill the first visit of a new claim began."""
    held = killed_at + plan.budget  # visits that were claimed before may still begin
    return min((request.start for request in web.requests() if request.start > held), default=held) - killed_at
