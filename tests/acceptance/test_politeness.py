"""Two thousand hosts for a minute and a half: what their server saw of the crawler's manners."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from rove.demo.judge import judge
from rove.demo.log import LoggedRequest
from tests.acceptance.web import ServedWeb, crawl_options, rove, served

HOSTS = 2_000
DELAY = 2.0
SECONDS = 90
KNOBS = ["entries.stalled=0", "crawl_delay=3"]


def pages_by_host(requests: list[LoggedRequest]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for request in requests:
        if not request.for_robots:
            found[request.host].add(request.path)
    return found


def reachable_hosts(web: ServedWeb) -> set[str]:
    """The hosts whose home page must be asked for: seeds, and what the home pages of seeds link to."""
    return {host for host in web.web.all_hosts() if web.web.allowed(host, "/")}


def test_two_thousand_hosts_are_all_visited_and_all_politely(tmp_path: Path) -> None:
    with served(tmp_path, hosts=HOSTS, profile="full", knobs=KNOBS) as web:
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        options = crawl_options(tmp_path / "data", delay=DELAY, concurrency=300, processes=2)
        result = rove("crawl", seeds, *options, *web.reach, "--max-duration", f"{SECONDS}s")
    assert result.returncode == 0, result.stderr
    assert "time limit reached" in result.stderr
    plain_lines = [line for line in result.stderr.splitlines() if "politeness ceiling" in line]
    assert SECONDS / 10 - 3 <= len(plain_lines) <= SECONDS / 10, "not a line every ten seconds"

    requests = web.requests()
    verdict = judge(web.web, requests, DELAY)
    assert verdict.polite, verdict
    assert verdict.domains == HOSTS, "a domain was not even asked for its rules"
    assert verdict.smallest_margin < 1.0, "no domain was ever visited as soon as it might be"

    asked = pages_by_host(requests)
    open_hosts = reachable_hosts(web)
    assert len(open_hosts) > HOSTS
    missed = {host for host in open_hosts if "/" not in asked[host]}
    assert not missed, f"{len(missed)} hosts were not reached: {sorted(missed)[:5]}"
    shut_hosts = set(web.web.all_hosts()) - open_hosts
    assert shut_hosts, "no host is closed: nothing would be shown"
    assert not {host for host in shut_hosts if asked[host]}, "a closed host was asked for a page"
