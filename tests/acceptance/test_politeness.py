"""Hundreds of hosts at once: what their server saw of the crawler's manners."""

from __future__ import annotations

import signal
import time
from collections import defaultdict
from pathlib import Path

from rove.demo.log import LoggedRequest
from tests.acceptance.command import crawl_options, logged, wait_for
from tests.acceptance.small_web import ServedWeb, served
from tests.judge import judge
from tests.oracle import all_hosts, allowed

HOSTS = 300
DELAY = 2.0
KNOBS = ["entries.stalled=0", "crawl_delay=3"]
LINE_SECONDS = 10
"""Without a terminal, a crawl prints a status line this often."""


def pages_by_host(requests: list[LoggedRequest]) -> dict[str, set[str]]:
    pages: dict[str, set[str]] = defaultdict(set)
    for request in requests:
        if not request.for_robots:
            pages[request.host].add(request.path)
    return pages


def open_hosts(web: ServedWeb) -> set[str]:
    """Return the hosts whose robots.txt allows their home page."""
    return {host for host in all_hosts(web.web) if allowed(web.web, host, "/")}


def test_every_host_is_visited_and_none_impolitely(tmp_path: Path) -> None:
    with served(tmp_path, hosts=HOSTS, profile="full", knobs=KNOBS) as web:
        expected = open_hosts(web)
        assert len(expected) > HOSTS
        closed = set(all_hosts(web.web)) - expected
        assert closed, "no host is closed, so the test shows nothing"

        def all_visited() -> bool:
            pages = pages_by_host(web.requests())
            return all("/" in pages[host] for host in expected)

        seeds = web.write_seeds(tmp_path / "seeds.txt")
        options = crawl_options(tmp_path / "data", delay=DELAY, concurrency=300, processes=2)
        began = time.monotonic()
        with logged("crawl", seeds, *options, *web.reach) as (crawl, output):
            wait_for(all_visited, seconds=200, pause=0.5)
            wait_for(lambda: "of what politeness allows" in output())
            crawl.send_signal(signal.SIGINT)
            assert crawl.wait(60) == 130, output()
            lines = output().count("of what politeness allows")
        assert lines <= (time.monotonic() - began) / LINE_SECONDS, "status lines come too often"
        requests = web.requests()

    verdict = judge(web.web, requests, DELAY)
    assert verdict.polite, verdict
    assert verdict.domains == HOSTS, "a robots.txt was never requested"
    assert verdict.smallest_margin < 1.0, "no domain was visited as soon as its delay had passed"
    pages = pages_by_host(requests)
    assert not {host for host in closed if pages[host]}, "a page of a closed host was requested"
