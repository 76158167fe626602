"""Processes that die: only what they were reading is suspect, and it is tried alone before it fails."""

from __future__ import annotations

import itertools
import re
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.command import (
    crawl_options,
    kill_hard,
    logged,
    rove,
    rove_alone,
    start,
    started,
    wait_for,
    write_lines,
)
from tests.acceptance.deadly import DEADLY_PAGES, DEADLY_TEXT
from tests.acceptance.interruption import environment_with
from tests.acceptance.results import check_books, exported_urls, frontier_rows
from tests.acceptance.scenarios import Outcomes, Scenarios
from tests.acceptance.site import Reply, Site, site
from tests.acceptance.test_processes import workers_of

DELAY = 0.2
SLOW_HOSTS = [f"http://slow{number}.test/" for number in range(12)]
POISON = "http://deadly.test/poison"
INNOCENT = {
    "http://deadly.test/",
    "http://deadly.test/good",
    *(f"http://calm{number}.test/{page}" for number in range(4) for page in ("", "a", "b")),
}

scenario = Scenarios()


def slow(host: str, path: str) -> Reply:
    return Reply(status=404) if path == "/robots.txt" else Reply("slow", held=True)


def deadly(host: str, path: str) -> Reply:
    if path == "/robots.txt":
        return Reply(status=404)
    if path == "/poison":
        return Reply(DEADLY_TEXT)
    links = ["/poison", "/good"] if host == "deadly.test" else ["/a", "/b"]
    return Reply(f"{host}{path}" + "".join(f'<a href="{link}">{link}</a>' for link in links))


def wait_for_rounds(web: Site, rounds: int) -> None:
    """Wait until every slow host was asked once more."""
    wait_for(lambda: len(web.pages) == rounds * len(SLOW_HOSTS))


def wait_for_restarts(output: Callable[[], str], count: int) -> None:
    wait_for(lambda: output().count("restarting it in") == count)


def failed_urls(data: Path) -> list[tuple[str, str]]:
    return frontier_rows(data, "SELECT url, reason FROM url WHERE state = 3")


def check_poison(data: Path, web: Site, output: str) -> None:
    """Check that the poison was given up, alone, after three deaths, and that everything else was fetched politely."""
    assert failed_urls(data) == [(POISON, "kills the process that reads it")]
    assert exported_urls(data) == INNOCENT
    visits = web.requests_to("deadly.test", "/poison")
    assert len(visits) == 3, "once among others, and twice alone"
    pages = [request for request in web.requests_to("deadly.test") if request.path != "/robots.txt"]
    gaps = [later.at - earlier.ended for earlier, later in itertools.pairwise(pages)]
    assert min(gaps) >= DELAY - 0.001, gaps
    assert f"a process died while it read {POISON}; rove tries that URL again in a process of its own" in output
    assert f"a process that read nothing but {POISON} died; rove tries that URL once more" in output
    assert f"gave up {POISON}: it killed 2 processes that had nothing else to read" in output
    assert f"suspect url={POISON} deaths_alone=2 failed=True" in (data / "rove.log").read_text()
    check_books(data, web.urls)


@scenario
def killing_everything_convicts_nobody(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with site(slow) as web:
        seeds = write_lines(tmp_path / "seeds.txt", *SLOW_HOSTS)
        crawl = ["crawl", seeds, *crawl_options(data, delay=DELAY, concurrency=24, processes=2), *web.reach]
        for number in range(1, 4):
            process = start(*crawl)
            wait_for_rounds(web, number)
            kill_hard(process)
            crawl = ["crawl", "--resume", "--data-dir", data]
        web.release.set()
        result = rove(*crawl)
    assert result.returncode == 0, result.stderr
    assert failed_urls(data) == []
    assert exported_urls(data) == set(SLOW_HOSTS)


@scenario
def a_page_that_kills_its_process_is_given_up_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    environment = environment_with(tmp_path / "code", DEADLY_PAGES)
    with site(deadly) as web:
        fronts = [url for url in INNOCENT if url.endswith(".test/")]
        seeds = write_lines(tmp_path / "seeds.txt", *fronts)
        options = crawl_options(data, delay=DELAY, processes=2)
        result = rove_alone("crawl", seeds, *options, *web.reach, env=environment)
        assert result.returncode == 0, result.stderr
        assert "exhausted" in result.stderr
        check_poison(data, web, result.stderr)
    shown = rove("explain", POISON, "--data-dir", data)
    assert "kills the process that reads it" in shown.stdout, shown.stdout + shown.stderr


@scenario
def a_page_that_kills_the_only_process_is_given_up_by_the_next_start(tmp_path: Path) -> None:
    data = tmp_path / "data"
    environment = environment_with(tmp_path / "code", DEADLY_PAGES)
    with site(deadly) as web:
        seeds = write_lines(tmp_path / "seeds.txt", *(url for url in INNOCENT if url.endswith(".test/")))
        options = crawl_options(data, delay=DELAY, processes=1)
        first = rove_alone("crawl", seeds, *options, *web.reach, env=environment)
        assert first.returncode == -signal.SIGSEGV, first.stderr
        second = rove_alone("crawl", "--resume", "--data-dir", data, env=environment)
        assert second.returncode == 0, second.stderr
        check_poison(data, web, second.stderr)


@scenario
def deaths_without_a_suspect_convict_nobody_and_slow_down_the_restarts(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with site(slow) as web:
        seeds = write_lines(tmp_path / "seeds.txt", *SLOW_HOSTS)
        options = crawl_options(data, delay=DELAY, concurrency=24, processes=2)
        with logged("crawl", seeds, *options, *web.reach) as (crawl, output):
            for deaths in range(1, 4):
                wait_for_rounds(web, deaths)
                for worker in workers_of(crawl):
                    worker.kill()
                wait_for_restarts(output, 2 * deaths)
            web.release.set()
            crawl.wait(100)
            printed = output()
    assert crawl.returncode == 0, printed
    for number in (1, 2):
        assert re.findall(rf"process {number} died .*; restarting it in (\d+) s", printed) == ["1", "2", "4"]
    assert failed_urls(data) == []
    assert exported_urls(data) == set(SLOW_HOSTS)


@scenario
def the_time_limit_holds_while_workers_wait_to_be_restarted(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with site(slow) as web:
        seeds = write_lines(tmp_path / "seeds.txt", *SLOW_HOSTS)
        options = crawl_options(data, delay=DELAY, concurrency=24, processes=2)
        with started("crawl", seeds, *options, *web.reach, "--max-duration", "3s") as crawl:
            while crawl.poll() is None:
                for worker in workers_of(crawl):
                    worker.kill()
            printed = crawl.communicate()[0]
    assert crawl.returncode == 0 and "time limit reached" in printed, printed
    assert failed_urls(data) == []


@scenario
def a_damaged_row_does_not_stop_a_crawl(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with site(slow) as web:
        seeds = write_lines(tmp_path / "seeds.txt", *SLOW_HOSTS)
        process = start("crawl", seeds, *crawl_options(data, delay=DELAY), *web.reach)
        wait_for_rounds(web, 1)
        kill_hard(process)
        with closing(sqlite3.connect(data / "frontier.sqlite")) as connection:
            connection.execute("UPDATE url SET url = CAST(x'68747470ff' AS TEXT) WHERE url = ?", (SLOW_HOSTS[3],))
            connection.commit()
        web.release.set()
        result = rove("crawl", "--resume", "--data-dir", data)
    assert result.returncode == 0, result.stderr
    assert exported_urls(data) == {*SLOW_HOSTS} - {SLOW_HOSTS[3]}
    assert frontier_rows(data, "SELECT reason FROM url WHERE state = 3") == [("damaged",)]
    assert rove("status", "--data-dir", data).returncode == 0


@pytest.mark.parametrize("scenario", scenario.names)
def test_suspects(scenario: str, outcomes: Outcomes) -> None:
    outcomes[scenario].result()
