"""kill -9 at random moments, resume, and compare with a crawl that nothing disturbed."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import pytest

from rove.crawl import GROUP
from rove.demo.log import judge
from tests.acceptance.web import EMAIL, ServedWeb, kill_hard, rove, served, start

HOSTS = 60
DELAY = 0.3
CONCURRENCY = 40
KNOBS = ["crawl_delay=0.5"]
IN_FLIGHT_AND_GROUP = CONCURRENCY + CONCURRENCY // 4 + GROUP


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


def crawl_through_kills(web: ServedWeb, folder: Path, seed: int) -> int:
    """Crawl to exhaustion, killed three to five times on the way; how often it was killed."""
    chance = random.Random(seed)
    data = folder / "data"
    arguments: list[object] = ["crawl", web.write_seeds(folder / "seeds.txt"), *options(web, data)]
    kills = 0
    for _ in range(chance.randint(3, 5)):
        process = start(*arguments)
        time.sleep(chance.uniform(0.4, 2.5))
        if process.poll() is not None:
            kill_hard_is_not_needed = process.communicate()[0]
            assert process.returncode == 0, kill_hard_is_not_needed
            return kills
        kill_hard(process)
        kills += 1
        if (data / "frontier.sqlite").exists():
            arguments = ["crawl", "--resume", "--data-dir", data]
    result = rove(*arguments)
    assert result.returncode == 0, result.stderr
    assert "exhausted" in result.stderr
    return kills


def check_round(folder: Path, seed: int) -> None:
    with served(folder, hosts=HOSTS, profile="calm", seed=seed, knobs=KNOBS) as web:
        kills = crawl_through_kills(web, folder, seed)
    expected = {url for host in web.web.all_hosts() for url in web.web.expected_pages(host)}
    pages = exported(folder / "data")
    assert len(pages) == len(set(pages)), "a page is in the export twice"
    assert set(pages) == expected
    verdict = judge(web.web, web.requests(), DELAY, allowed_refetches=kills * IN_FLIGHT_AND_GROUP)
    assert verdict.polite, f"seed {seed}: {verdict}"
    assert verdict.refetches <= kills * IN_FLIGHT_AND_GROUP


@pytest.mark.parametrize("seed", range(10))
def test_a_killed_crawl_ends_with_the_pages_of_an_undisturbed_one(
    tmp_path: Path, seed: int
) -> None:
    check_round(tmp_path, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 100 + int(os.environ.get("ROVE_KILL_ROUNDS", "60"))))
def test_more_kills(tmp_path: Path, seed: int) -> None:
    check_round(tmp_path, seed)
