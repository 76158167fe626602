"""An endless site: a crawl takes only as many of its URLs as it has time to visit, and loses none that it has taken."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from rove.policy.budget import MULTIPLE
from rove.policy.constants import LEAST_DELAY
from tests.acceptance.command import crawl_options, rove, rove_each
from tests.acceptance.results import frontier_rows
from tests.acceptance.site import Reply, site

SECONDS = 2.0
LINKS = 300
PENDING = 0

Rows = Callable[[str], list[Any]]


def endless() -> Callable[[str, str], Reply]:
    """Return a site whose pages all have new links."""
    number = count()

    def answer(host: str, path: str) -> Reply:
        if path == "/robots.txt":
            return Reply(status=404)
        links = "".join(f'<a href="/page/{next(number)}">x</a>' for _ in range(LINKS))
        return Reply(f"<title>{path}</title>{path} {links}")

    return answer


@pytest.mark.system
def test_what_cannot_be_visited_in_time_is_not_taken_and_what_is_taken_stays(tmp_path: Path, postgres_url: str) -> None:
    """The same on both databases: a short crawl, a longer one, and again a short one."""
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("http://endless.test/\n")
    here, there, schema = tmp_path / "sqlite", tmp_path / "postgres", f"budget_{os.getpid()}"
    crawls: dict[Path, Rows] = {
        here: lambda sql: frontier_rows(here, sql),
        there: lambda sql: asyncio.run(fetched(postgres_url, schema, sql)),
    }
    starts = [crawl_options(data, delay=0.05) for data in crawls]
    starts[1] += ["--frontier", postgres_url, "--crawl-name", schema]
    room = MULTIPLE * round(SECONDS / LEAST_DELAY)
    with site(endless()) as web:
        run([["crawl", seeds, *options, *web.reach, "--max-duration", f"{SECONDS:g}s"] for options in starts])
        numbers = {data: numbers_of(rows) for data, rows in crawls.items()}
        for pending, refused, _ in numbers.values():
            assert 0 < pending <= room
            assert refused >= LINKS - room
        pending, refused, evicted = numbers[here]
        said = rove("status", "--data-dir", here).stdout
        assert f" {pending:,} pending" in said and f"not taken  budget {refused:,}" in said
        assert f"evicted    {evicted:,} URL" in said or not evicted

        resume = ["crawl", "--resume", "--processes", 1, "--max-pages", 3]
        run([[*resume, "--max-duration", "1h", "--data-dir", data] for data in crawls])
        for data, (pending, refused, _) in numbers.items():
            pending_now, refused_now, _ = numbers_of(crawls[data])
            assert pending_now >= pending + LINKS > room
            assert refused_now == refused, "there is room for all of it"

        before = {data: states(rows) for data, rows in crawls.items()}
        run([[*resume, "--max-duration", "10s", "--data-dir", data] for data in crawls])
        for data, rows in crawls.items():
            after = states(rows)
            assert not before[data].keys() - after.keys(), "a URL that was accepted is gone"
            pending_now, _, evicted = numbers_of(rows)
            waiting = [url for url, state in before[data].items() if state == PENDING]
            visited = [url for url in waiting if after[url] != PENDING]
            found = [url for url in after.keys() - before[data].keys() if after[url] == PENDING]
            assert visited and found, "nothing happened"
            assert pending_now == len(waiting) - len(visited) + len(found)
            assert evicted == numbers[data][2], "a URL that was accepted was evicted"


def run(commands: list[list[object]]) -> None:
    for result in rove_each(commands):
        assert result.returncode == 0, result.stderr


async def fetched(url: str, schema: str, sql: str) -> list[Any]:
    connection = await asyncpg.connect(url, server_settings={"search_path": schema})
    try:
        rows: list[Any] = await connection.fetch(sql)
        return rows
    finally:
        await connection.close()


def states(rows: Rows) -> dict[str, int]:
    """Return the state of every URL."""
    return {row[0]: row[1] for row in rows("SELECT url, state FROM url")}


def numbers_of(rows: Rows) -> tuple[int, int, int]:
    """Return the numbers of pending URLs, of URLs dropped for lack of room, and of those that were pending before."""
    counters: Counter[str] = Counter()
    for row in rows("SELECT name, value FROM counter"):
        counters[row[0]] += row[1]
    return counters["urls.pending"], counters["not_accepted.budget"], counters["evicted"]
