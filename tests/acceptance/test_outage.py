"""The web or the name server goes away for a while, or was never there.

The crawl is the real command. Only its patience is shorter, so that a test takes seconds; `python -m benchmarks.outage`
runs the same with a minute of silence, three minutes of outage and 200 sites.
"""

from __future__ import annotations

import re
import signal
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.command import Process, crawl_options, logged, rove, wait_for, write_lines
from tests.acceptance.fragile_web import FragileWeb, fragile_web, name_server, shortest_pause
from tests.acceptance.results import check_audit, frontier_rows, status_of
from tests.acceptance.scenarios import Outcomes, Scenarios
from tests.acceptance.site import Reply, site, unreachable
from tests.acceptance.test_machines import OnPostgres

SITES = 12
DELAY = 0.4
NOTICED = "No site has answered for 2 s: is this machine online? Waiting."
BACK = "Sites answer again after"
RULES = {"silence": 2.0, "first_probe": 0.1, "longest_probe": 0.3, "patience": 4.0}
AGAINST_DOMAINS = (
    "SELECT name FROM domain WHERE failures > 0 OR failing <> {no}",
    "SELECT url FROM url WHERE attempts > 0 OR state = 3",
    "SELECT origin FROM origin WHERE failures > 0",
)
"""What counts against a domain, a URL or a robots.txt."""

scenario = Scenarios()
_shared: dict[str, str] = {}


def impatient(*arguments: object) -> AbstractContextManager[tuple[Process, Callable[[], str]]]:
    """Run rove with short patience; yield the process and a function that returns what it has printed."""
    return logged(*arguments, outage_rules=RULES)


def wait_out(
    web: FragileWeb,
    crawl: Process,
    said: Callable[[], str],
    go_away: Callable[[], None],
    come_back: Callable[[], None],
    *,
    logs: Sequence[Path] = (),
) -> None:
    """Let something go away while the crawl runs, come back after the crawl has noticed, and stop the crawl.

    Each process judges by its own requests, so all those with a log have to notice.
    """
    wait_for(lambda: len(web.requests) > 5 * SITES)
    go_away()
    wait_for(lambda: NOTICED in said() and all(NOTICED in log.read_text() for log in logs))
    assert crawl.poll() is None, "the crawl goes on"
    before = len(web.requests)
    come_back()
    wait_for(lambda: BACK in said())
    wait_for(lambda: len(web.requests) > before + 4 * SITES)
    crawl.send_signal(signal.SIGTERM)
    assert crawl.wait(60) == 128 + signal.SIGTERM, said()
    assert said().count("No site has answered") == 1, said()


def worker_logs(data: Path) -> list[Path]:
    return [data / "rove-1.log", data / "rove-2.log"]


def check(data: Path, web: FragileWeb, rows: Callable[[str], list[Any]], no: str) -> None:
    """Check that nothing was counted against a domain and that no delay was broken."""
    for query in AGAINST_DOMAINS:
        assert rows(query.format(no=no)) == []
    assert rows("SELECT 1 FROM request WHERE settlement = 'offline'"), "the probes are in the ledger"
    assert shortest_pause(web.requests) >= DELAY
    check_audit(data)


@scenario
def a_web_that_goes_away_and_comes_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with fragile_web(SITES, pages=200) as web:
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        reach = ["--connect-to", f"*=127.0.0.1:{web.port}", "--allow-private-addresses"]
        with impatient("crawl", seeds, *crawl_options(data, delay=DELAY), *reach) as (crawl, said):
            wait_out(web, crawl, said, web.go_away, web.come_up)
        check(data, web, lambda query: frontier_rows(data, query), no="1 - 1")


@scenario
def a_name_server_that_dies_and_comes_back(tmp_path: Path) -> None:
    """Two processes, each of which notices."""
    data = tmp_path / "data"
    with fragile_web(SITES, pages=200) as web, name_server() as names:
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        options = ["--dns-server", names.address, "--allow-private-addresses", "--per-ip", 0, "--per-ip-rate", 0]
        with impatient("crawl", seeds, *crawl_options(data, delay=DELAY, processes=2), *options) as (crawl, said):
            wait_out(web, crawl, said, names.die, names.come_up, logs=worker_logs(data))
        check(data, web, lambda query: frontier_rows(data, query), no="1 - 1")


@scenario
def a_web_that_goes_away_while_two_processes_crawl_on_postgresql(tmp_path: Path) -> None:
    data, database = tmp_path / "data", OnPostgres(_shared["url"], "outage")
    with fragile_web(SITES, pages=200) as web:
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        reach = ["--connect-to", f"*=127.0.0.1:{web.port}", "--allow-private-addresses", *database.options]
        with impatient("crawl", seeds, *crawl_options(data, delay=DELAY, processes=2), *reach) as (crawl, said):
            wait_out(web, crawl, said, web.go_away, web.come_up, logs=worker_logs(data))
        check(data, web, database.rows, no="false")


@scenario
def three_dead_seeds_end_with_their_own_exit_code(tmp_path: Path) -> None:
    data = tmp_path / "data"
    seeds = write_lines(tmp_path / "seeds.txt", "http://a.test/", "http://b.test/", "http://c.test/")
    with unreachable() as reach:
        result = rove("crawl", seeds, *crawl_options(data, delay=0.01), *reach)
    assert result.returncode == 3, result.stderr
    assert "No seed could be reached (connect 9)." in result.stderr
    assert "3 URLs are pending; continue with: rove crawl --resume" in result.stderr


@scenario
def many_dead_seeds_are_waited_for_and_then_end_with_it_too(tmp_path: Path) -> None:
    data = tmp_path / "data"
    seeds = write_lines(tmp_path / "seeds.txt", *[f"http://dead{number}.test/" for number in range(500)])
    with (
        unreachable() as reach,
        impatient("crawl", seeds, *crawl_options(data, delay=0.01, processes=2), *reach) as (crawl, said),
    ):
        assert crawl.wait(120) == 3, said()
        output = said()
    assert NOTICED in output and "no site answered: 0 pages" in output, output
    assert "No seed could be reached (connect " in output and "500 URLs are pending" in output
    for query in AGAINST_DOMAINS:
        assert frontier_rows(data, query.format(no="1 - 1")) == []


@scenario
def sites_that_are_forbidden_are_no_failure_but_failing_ones_are_unless_a_page_was_stored(tmp_path: Path) -> None:
    page = Reply("<title>a page</title>")
    answers = {
        "shut.test/robots.txt": Reply("User-agent: *\nDisallow: /"),
        "broken.test/robots.txt": Reply("wait", status=500),
        "fine.test/": page,
    }
    results = []
    with site(answers) as web:
        for name, hosts in {"shut": ["shut"], "broken": ["broken"], "both": ["fine", "broken"]}.items():
            seeds = write_lines(tmp_path / f"{name}.txt", *[f"http://{host}.test/" for host in hosts])
            results.append(rove("crawl", seeds, *crawl_options(tmp_path / name, delay=0.01), *web.reach))
    assert [result.returncode for result in results] == [0, 3, 0], results
    assert results[0].stderr.splitlines()[-1].startswith("exhausted: 0 pages"), "nothing to complain about"
    for result in results[1:]:
        assert "Nothing is left but 1 site that keeps failing (status-500 1)." in result.stderr
        assert "Next tries: broken.test at 20" in result.stderr


@scenario
def a_resume_waits_an_hour_for_a_site_that_kept_failing_but_not_longer(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with fragile_web(sites=1, pages=1) as web:
        seeds = web.write_seeds(tmp_path / "seeds.txt")
        reach = ["--connect-to", f"*=127.0.0.1:{web.port}", "--allow-private-addresses"]
        web.go_away()
        assert rove("crawl", seeds, *crawl_options(data, delay=0.01), *reach).returncode == 3
        web.come_up()
        set_due(data, minutes=61)
        too_long = rove("crawl", "--resume", "--data-dir", data)
        assert too_long.returncode == 3 and not web.requests, too_long.stderr
        assert re.search(r"Next tries: h0\.test at 20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ\.", too_long.stderr), (
            too_long.stderr
        )
        set_due(data, minutes=0.15)
        result = rove("crawl", "--resume", "--data-dir", data)
    assert result.returncode == 0, result.stderr
    assert status_of(data)["pages"] == 1


def set_due(data: Path, *, minutes: float) -> None:
    """Let the back-off of the only site end this long after now."""
    with closing(sqlite3.connect(data / "frontier.sqlite")) as connection, connection:
        (now,) = connection.execute("SELECT max(seen) FROM process").fetchone()
        connection.execute("UPDATE domain SET ready_at = ?", (now + round(60_000 * minutes),))
        connection.execute("UPDATE url SET position = ?", (now,))


@pytest.fixture(scope="module", autouse=True)
def database_server(postgres_url: str) -> None:
    _shared["url"] = postgres_url


@pytest.mark.parametrize("scenario", scenario.names)
def test_outage(scenario: str, outcomes: Outcomes) -> None:
    outcomes[scenario].result()
