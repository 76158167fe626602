"""What limits a crawl: real runs, each limited by something else, ask `rove status` and the log."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.command import crawl_options, rove, started, wait_for, write_lines
from tests.acceptance.scenarios import Outcomes, Scenarios
from tests.acceptance.site import Reply, site
from tests.acceptance.stopping import MAX_SECONDS

scenario = Scenarios()
HOSTS = [f"h{number}.test" for number in range(12)]
CLOSED_PORT = ["--connect-to", "*.test=127.0.0.1:1", "--allow-private-addresses"]


def limited_by(data: Path) -> dict[str, Any] | None:
    done = rove("status", "--json", "--data-dir", data)
    found: dict[str, Any] | None = json.loads(done.stdout)["limited_by"] if done.returncode == 0 else None
    return found


def wait_for_limit(data: Path, factor: str) -> str:
    """Wait until status and log name the factor; return the sentence of status."""
    wait_for(lambda: (limited_by(data) or {}).get("factor") == factor, pause=0.2)
    wait_for(lambda: f" limit factor={factor} " in (data / "rove.log").read_text())
    lines = rove("status", "--data-dir", data).stdout.splitlines()
    (line,) = [line for line in lines if line.startswith("limited by ")]
    return line


def reply(host: str, path: str) -> Reply:
    return Reply(status=404) if path == "/robots.txt" else Reply('<title>A page</title><a href="/more"></a>')


def slow(host: str, path: str) -> Reply:
    return Reply(status=404) if path == "/robots.txt" else Reply("<title>Late</title>", held=True)


def seeds_in(folder: Path, hosts: Sequence[str] = HOSTS) -> Path:
    return write_lines(folder / "seeds.txt", *(f"http://{host}/" for host in hosts))


@scenario
def politeness_and_a_pause(folder: Path) -> None:
    data = folder / "data"
    with (
        site(reply) as web,
        started("crawl", seeds_in(folder), *web.reach, *crawl_options(data, delay=600.0)) as process,
    ):
        wait_for(lambda: len(web.pages) == len(HOSTS))
        line = wait_for_limit(data, "politeness")
        assert line.startswith("limited by politeness: 12 domains, all waiting; the next is due in 9 min ")
        assert "More domains would help" in line
        assert rove("pause", "--data-dir", data).returncode == 0
        line = wait_for_limit(data, "pause")
        assert line.startswith("limited by pause: by ") and line.endswith(". Continue with 'rove unpause'")
        process.send_signal(signal.SIGINT)
        assert process.wait(MAX_SECONDS) == 128 + signal.SIGINT
    assert limited_by(data) is None, "it does not run any more"


@scenario
def one_fetch_at_a_time(folder: Path) -> None:
    data = folder / "data"
    options = crawl_options(data, concurrency=1)
    with site(slow) as web, started("crawl", seeds_in(folder), *web.reach, *options) as process:
        wait_for(lambda: web.pages)
        line = wait_for_limit(data, "concurrency")
        assert "domains are ready, 1 fetch in flight of at most 1. A higher --concurrency would help" in line
        process.send_signal(signal.SIGINT)
        web.release.set()
        process.wait(MAX_SECONDS)


@scenario
def seeds_that_all_fail(folder: Path) -> None:
    data = folder / "data"
    options = crawl_options(data, delay=600.0, processes=2)
    with started("crawl", seeds_in(folder, HOSTS[:3]), *CLOSED_PORT, *options) as process:
        line = wait_for_limit(data, "sites")
        assert line.startswith("limited by sites: ") and " of " in line and " requests failed (connect " in line
        process.send_signal(signal.SIGINT)
        process.wait(MAX_SECONDS)


@pytest.mark.parametrize("scenario", scenario.names)
def test_limiting(scenario: str, outcomes: Outcomes) -> None:
    outcomes[scenario].result()
