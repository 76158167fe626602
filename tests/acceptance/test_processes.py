"""Several processes on one SQLite file: one dies, the supervisor dies, and limits count for all together."""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from rove.datadir import DataDir
from tests.acceptance.command import Process, crawl_options, rove, started, wait_for
from tests.acceptance.results import (
    exported_urls,
    files_with_secret,
    leased_domains,
    secret_of,
    shows_secret,
    status_of,
)
from tests.acceptance.scenarios import Outcomes, Scenarios
from tests.acceptance.site import Reply, site
from tests.acceptance.small_web import served
from tests.judge import judge

DELAY = 0.3
KNOBS = ["crawl_delay=0.5"]
PAGES_PER_VISIT = 4

EVENT = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z [A-Z]+ +rove[\w.]*: ([a-z-]+)(?= \w+=)", re.MULTILINE)

scenario = Scenarios()


def workers_of(process: Process) -> list[psutil.Process]:
    """Return the worker processes of a supervisor."""
    try:
        return [child for child in psutil.Process(process.pid).children() if "rove.app.worker" in child.cmdline()]
    except psutil.NoSuchProcess:
        return []


def is_alive(process: psutil.Process) -> bool:
    """Tell whether a process still runs. A zombie does not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def has_claimed(data: Path, worker: int) -> bool:
    """Tell from its log whether a worker is past its start. The other one may be much quicker on a busy machine."""
    log = data / f"rove-{worker}.log"
    return log.exists() and ": claim " in log.read_text()


@scenario
def a_process_that_is_killed_is_started_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with served(tmp_path, hosts=60, profile="calm", knobs=KNOBS) as web:
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        options = crawl_options(data, delay=DELAY, concurrency=16, processes=2)
        with started("crawl", seeds, *options, *web.reach, "--log-level", "debug") as crawl:
            wait_for(lambda: len(web.requests()) > 60 and all(has_claimed(data, worker) for worker in (1, 2)))
            first = workers_of(crawl)
            assert len(first) == 2
            victim = first[0]
            # The server must have read what the victim sent: it would log requests of a dead client too late.
            victim.suspend()
            web.requests()
            victim.send_signal(signal.SIGSEGV)
            victim.resume()
            victim.wait()
            killed_at = time.monotonic()
            wait_for(lambda: len({w.pid for w in workers_of(crawl)} - {victim.pid}) == 2)
            output, _ = crawl.communicate(timeout=150)
        assert crawl.returncode == 0, output
        assert re.search(
            # The memory is that of the last report. On a busy machine there may not have been one yet.
            r"process \d died \(killed by SIGSEGV( with \d+\.\d MiB of memory)?; see rove-\d\.log\); "
            "restarting it in 1 s",
            output,
        ), output
        (pages,) = re.findall(r"^exhausted: (\d+) pages, ", output, re.MULTILINE)
        assert int(pages) == status_of(data)["pages"], "the pages of the dead process count, reported or not"
    assert exported_urls(data) == web.expected()
    verdict = judge(web.web, web.requests(), DELAY, allowed_refetches=16 * PAGES_PER_VISIT, killed_at=[killed_at])
    assert verdict.polite, verdict
    # The process may have been reading a page, which is then tried alone.
    owners = {path.name.split("-")[1] for path in (data / "warc").iterdir()}
    assert {"1", "2"} <= owners <= {"1", "2", "trial"}, "each process has files of its own"
    check_logs(data)
    secret = secret_of(data)
    assert files_with_secret(data, secret) <= {"frontier.sqlite", "frontier.sqlite-wal"}
    assert not shows_secret(output.encode(), secret)


def check_logs(data: Path) -> None:
    """Check that the logs tell the story of a crawl with two processes, one of which crashed."""
    logs = {name: (data / f"{name}.log").read_text() for name in ("rove", "rove-1", "rove-2")}
    assert sum("Fatal Python error: Segmentation fault" in text for text in logs.values()) == 1
    events = {name: Counter(EVENT.findall(text)) for name, text in logs.items()}
    assert events["rove"]["setting"] > 10 and events["rove"]["death"] == 1
    assert all(count["start"] and count["minute"] and count["query"] and count["end"] for count in events.values())
    for name in ("rove-1", "rove-2"):
        for event in ("claim", "lease", "robots", "fetch", "settle"):
            lines = re.findall(rf"DEBUG   [\w.]+: {event} (.*)", logs[name])
            assert lines, event
            keys = r"process=\d+ wanted" if event == "claim" else r"process=\d+ domain=[\w.-]+\.test visit=\d+ "
            assert all(re.match(keys, line) for line in lines), event
    (minute, *_) = re.findall(r": minute (.*)", logs["rove-1"])
    figures = dict(pair.split("=", 1) for pair in minute.split())
    assert {"pages", "pages_per_s", "errors", "in_flight", "ready", "waiting", "pending"} <= figures.keys()
    assert int(figures["rss_mib"]) > 10 and int(figures["open_files"]) > 5
    assert re.search(r"INFO    [\w.]+: query name=commit times=\d+ total_s=\S+ p50_ms=\S+ p95_ms=\S+", logs["rove-1"])


@scenario
def a_silent_site_does_not_hold_up_the_last_pages(tmp_path: Path) -> None:
    data, held = tmp_path / "data", set[str]()
    (tmp_path / "seeds.txt").write_text("".join(f"http://host{i}.test/\n" for i in range(6)))

    def answer(host: str, path: str) -> Reply:
        if path == "/robots.txt":
            return Reply(status=404)
        held.update([host] if len(held) < 2 else [])
        return Reply("<p>A page.", held=host in held and len(web.requests_to(host, "/")) == 1)

    with site(answer) as web:
        options = [*crawl_options(data, processes=2), *web.reach, "--max-pages", 5]
        crawl = rove("crawl", tmp_path / "seeds.txt", *options)
    assert crawl.returncode == 0 and "page limit reached: 5 pages" in crawl.stderr, crawl.stderr
    status = status_of(data)
    assert status["pages"] == 5 and leased_domains(data) == 0
    assert set(status["errors"]) == {"aborted"}, "no request has run into its timeout"


@scenario
def processes_whose_supervisor_is_killed_stop_and_a_new_start_waits_for_them(
    tmp_path: Path,
) -> None:
    data, seeds = tmp_path / "data", tmp_path / "seeds.txt"
    seeds.write_text("".join(f"http://host{i}.test/\n" for i in range(30)))

    def never(host: str, path: str) -> Reply:
        return Reply(status=404) if path == "/robots.txt" else Reply(held=True)

    with site(never) as web:
        options = crawl_options(data, delay=60, concurrency=8, processes=2)
        with started("crawl", seeds, *options, *web.reach) as crawl:
            wait_for(lambda: len(web.pages) == 8)
            workers = workers_of(crawl)
            os.kill(crawl.pid, signal.SIGKILL)
            crawl.wait()
            assert DataDir(data).in_use(), "its processes are still there"
            with started("crawl", "--resume", "--data-dir", data, "--processes", 2) as again:
                wait_for(lambda: len(web.pages) == 16)
                assert len(workers) == 2 and not any(map(is_alive, workers))
                again.send_signal(signal.SIGINT)
                output, _ = again.communicate(timeout=20)
        assert "waiting for the processes of an earlier start" in output
        assert len(web.pages) == len(set(web.pages)), "a domain was asked again before its delay"
    assert leased_domains(data) == 0


@scenario
def a_limit_of_pages_counts_over_all_processes(tmp_path: Path) -> None:
    data, limit = tmp_path / "data", 60
    with served(tmp_path, hosts=40, profile="calm") as web:
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        options = crawl_options(data, delay=0.05, concurrency=10, processes=2)
        result = rove("crawl", seeds, *options, *web.reach, "--max-pages", limit, "--quiet")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), "it is quiet"
    assert 'ending="page limit reached"' in (data / "rove.log").read_text()
    assert status_of(data)["pages"] == limit


@scenario
def one_signal_stops_all_processes_in_good_order(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with served(tmp_path, hosts=60, profile="calm") as web:
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        options = crawl_options(data, delay=DELAY, concurrency=16, processes=3)
        with started("crawl", seeds, *options, *web.reach) as crawl:
            wait_for(lambda: len(web.requests()) > 60)
            workers = workers_of(crawl)
            assert len(workers) == 3
            os.killpg(crawl.pid, signal.SIGINT)  # as a terminal does
            begun = time.monotonic()
            output, _ = crawl.communicate(timeout=30)
            assert time.monotonic() - begun < 10
        assert crawl.returncode == 130, output
        assert not any(map(is_alive, workers))
    assert leased_domains(data) == 0, "leases were not given back"
    assert "Traceback" not in output


@scenario
def nobody_ever_reads_that_the_database_is_locked(tmp_path: Path) -> None:
    """Four processes write all the time while `rove status` reads."""
    data = tmp_path / "data"
    with served(tmp_path, hosts=300, profile="calm", knobs=["crawl_delay=0.02"]) as web:
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        options = crawl_options(data, delay=0.01, concurrency=100, processes=4)
        with started("crawl", seeds, *options, *web.reach) as crawl:
            wait_for(lambda: (data / "rove-4.log").exists())
            while crawl.poll() is None:
                result = rove("status", "--data-dir", data)
                assert result.returncode == 0, result.stderr
            output = crawl.communicate()[0]
        assert crawl.returncode == 0, output
    assert exported_urls(data) == web.expected()
    for log in data.glob("rove*.log"):
        assert "is locked" not in log.read_text()


@pytest.mark.parametrize("scenario", scenario.names)
def test_processes(scenario: str, outcomes: Outcomes) -> None:
    outcomes[scenario].result()
