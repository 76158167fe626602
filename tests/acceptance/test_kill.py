"""kill -9 at random moments, resume, and compare with a crawl that nothing disturbed."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from rove.demo.judge import judge
from tests.acceptance.ledger import check_audit, check_ledger, entries_of
from tests.acceptance.web import EMAIL, ServedWeb, kill_hard, rove, served, start

HOSTS = 60
DELAY = 0.3
CONCURRENCY = 15
KNOBS = ["crawl_delay=0.5"]
PAGES_PER_VISIT = 4
"""A page and three hops."""


def options(web: ServedWeb, data: Path) -> list[object]:
    return [
        *["--email", EMAIL, "--data-dir", data, "--delay", DELAY, "--allow-short-delay"],
        *["--concurrency", CONCURRENCY, *web.reach],
    ]


def exported(data: Path) -> list[str]:
    """The URLs of all pages that the crawl says it has, each with a text that can be read."""
    result = rove("export", "--data-dir", data)
    assert result.returncode == 0, result.stderr
    return [json.loads(line)["url"] for line in result.stdout.splitlines()]


def leases_out(data: Path) -> int:
    """Visits that a killed crawl had begun and not settled."""
    with closing(sqlite3.connect(data / "frontier.sqlite")) as connection:
        (count,) = connection.execute(
            "SELECT count(*) FROM domain WHERE owner IS NOT NULL"
        ).fetchone()
    return int(count)


def crawl_through_kills(web: ServedWeb, folder: Path, seed: int) -> int:
    """Crawl to exhaustion, killed three to five times on the way; how many visits were cut off or not settled."""
    chance = random.Random(seed)
    data = folder / "data"
    arguments: list[object] = ["crawl", web.write_seeds(folder / "seeds.txt"), *options(web, data)]
    cut_off = 0
    for _ in range(chance.randint(3, 5)):
        process = start(*arguments)
        time.sleep(chance.uniform(0.4, 2.5))
        if process.poll() is not None:
            said = process.communicate()[0]
            assert process.returncode == 0, said
            return cut_off
        kill_hard(process)
        if rove("status", "--data-dir", data).returncode == 0:
            cut_off += leases_out(data)
            arguments = ["crawl", "--resume", "--data-dir", data]
    result = rove(*arguments)
    assert result.returncode == 0, result.stderr
    assert "exhausted" in result.stderr
    return cut_off


def check_round(folder: Path, seed: int) -> None:
    with served(folder, hosts=HOSTS, profile="calm", seed=seed, knobs=KNOBS) as web:
        cut_off = crawl_through_kills(web, folder, seed)
    expected = {url for host in web.web.all_hosts() for url in web.web.expected_pages(host)}
    pages = exported(folder / "data")
    assert len(pages) == len(set(pages)), "a page is in the export twice"
    assert set(pages) == expected
    verdict = judge(web.web, web.requests(), DELAY, allowed_refetches=cut_off * PAGES_PER_VISIT)
    assert verdict.polite, f"seed {seed}: {verdict}"
    check_audit(folder / "data")
    check_ledger(web, entries_of(folder / "data"))


def check_rounds(folder: Path, seeds: Iterable[int]) -> None:
    """Some rounds side by side: most of a round is waiting for delays."""
    with ThreadPoolExecutor(max_workers=4) as threads:
        rounds = []
        for seed in seeds:
            place = folder / str(seed)
            place.mkdir()
            rounds.append(threads.submit(check_round, place, seed))
        for finished in rounds:
            finished.result()


def test_killed_crawls_end_with_the_pages_of_an_undisturbed_one(tmp_path: Path) -> None:
    check_rounds(tmp_path, range(10))


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_killed_crawls(tmp_path: Path) -> None:
    check_rounds(tmp_path, range(100, 100 + int(os.environ.get("ROVE_KILL_ROUNDS", "100"))))
