"""Kill crawls with SIGKILL at random points, resume them, and compare them with an undisturbed crawl."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.acceptance.command import crawl_options, rove, started
from tests.acceptance.results import (
    check_audit,
    check_ledger,
    exported_urls,
    frontier_rows,
    leased_domains,
    ledger_entries,
)
from tests.acceptance.small_web import ServedWeb, served
from tests.judge import judge

HOSTS = 40
DELAY = 0.2
CONCURRENCY = 15
KNOBS = ["crawl_delay=0.3"]
PAGES_PER_VISIT = 4
"""A page and three redirect hops."""
ROUNDS = 4
MOST_SETTLED = 80
"""URLs that are settled at most between two kills."""


def settled(data: Path) -> int:
    """Count the URLs that have been visited."""
    return len(frontier_rows(data, "SELECT 1 FROM url WHERE state <> 0"))


def crawl_through_kills(web: ServedWeb, folder: Path, seed: int) -> int:
    """Crawl to the end through three to five kills, and return how many visits they cut off.

    Each crawl is killed when it has settled a random number of URLs, so the kills fall on the same stages of a crawl
    however fast the machine is. A kill may even come before there is a crawl.
    """
    chance = random.Random(seed)
    data = folder / "data"
    options = crawl_options(data, delay=DELAY, concurrency=CONCURRENCY)
    crawl = ["crawl", web.write_seeds(folder / "seeds.txt"), *options, *web.reach]
    cut_off = 0
    for _ in range(chance.randint(3, 5)):
        target = settled(data) + chance.randint(0, MOST_SETTLED)
        with started(*crawl) as process:
            while process.poll() is None and settled(data) < target:
                time.sleep(0.01)
            if process.poll() is not None:
                assert process.returncode == 0, process.communicate()[0]
                return cut_off
        if settled(data) or rove("status", "--data-dir", data).returncode == 0:
            cut_off += leased_domains(data)
            crawl = ["crawl", "--resume", "--data-dir", data]
    result = rove(*crawl)
    assert result.returncode == 0, result.stderr
    assert "exhausted" in result.stderr
    return cut_off


def check_round(folder: Path, seed: int) -> None:
    with served(folder, hosts=HOSTS, profile="calm", seed=seed, knobs=KNOBS) as web:
        cut_off = crawl_through_kills(web, folder, seed)
    assert exported_urls(folder / "data") == web.expected()
    verdict = judge(web.web, web.requests(), DELAY, allowed_refetches=cut_off * PAGES_PER_VISIT)
    assert verdict.polite, f"seed {seed}: {verdict}"
    check_audit(folder / "data")
    check_ledger(ledger_entries(folder / "data"), web.requested_urls())


def check_rounds(folder: Path, seeds: Iterable[int]) -> None:
    """Run the rounds side by side, because most of a round is waiting for delays."""
    with ThreadPoolExecutor(max_workers=4) as threads:
        rounds = []
        for seed in seeds:
            own_folder = folder / str(seed)
            own_folder.mkdir()
            rounds.append(threads.submit(check_round, own_folder, seed))
        for finished in rounds:
            finished.result()


def test_killed_crawls_end_with_the_pages_of_an_undisturbed_one(tmp_path: Path) -> None:
    check_rounds(tmp_path, range(ROUNDS))


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_killed_crawls(tmp_path: Path) -> None:
    check_rounds(tmp_path, range(100, 100 + int(os.environ.get("ROVE_KILL_ROUNDS", "100"))))
