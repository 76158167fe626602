"""Domains that never answer, and many domains on one address, hold up nobody: the servers' logs are the judges."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from rove.frontier.address_groups import MAX_ADDRESSES
from tests.acceptance.command import crawl_options, rove, started, wait_for, write_lines
from tests.acceptance.results import check_books, frontier_rows, status_of
from tests.acceptance.scenarios import Outcomes, Scenarios
from tests.acceptance.site import Reply, site
from tests.zoo.floods import Crowd, Seen, Server, name_server, serving

DELAY = 0.1
SLOTS = 16
HEALTHY = 6
PAGES = 10
scenario = Scenarios()


@scenario
def domains_that_never_answer(tmp_path: Path) -> None:
    """A page links to 300 silent names and 300 addresses of a silent /64, among sites that answer."""
    data = tmp_path / "data"
    names = [f"http://silent{number}.test/" for number in range(300)]
    addresses = [f"http://[2001:db8:0:1::{number:x}]/" for number in range(1, 301)]
    healthy = [f"http://healthy{number}.test/" for number in range(HEALTHY)]

    def answer(host: str, path: str) -> Reply:
        if path == "/robots.txt":
            return Reply(status=404)
        if host == "attacker.test":
            return Reply("".join(f'<a href="{url}">x</a>' for url in (*names, *addresses)))
        number = int(path.strip("/") or 0)
        return Reply(f'<title>{host}{path}</title><a href="/{number + 1}">x</a>' if number < PAGES else "")

    silent_names, silent_network = Server(), Server()
    with ExitStack() as stack:
        web = stack.enter_context(site(answer))
        stack.enter_context(serving(silent_names))
        stack.enter_context(serving(silent_network))
        reach = ["--connect-to", f"silent*.test=127.0.0.1:{silent_names.port}"]
        reach += ["--connect-to", f"2001:db8:*=127.0.0.1:{silent_network.port}", *web.reach]
        seeds = write_lines(tmp_path / "seeds.txt", "http://attacker.test/", *healthy)
        options = [*crawl_options(data, delay=DELAY, concurrency=SLOTS), "--timeout", 3]
        crawl = stack.enter_context(started("crawl", seeds, *options, *reach))
        wait_for(lambda: len(silent_names.requests) > SLOTS + 12 and len(web.pages) >= HEALTHY * PAGES)
        crawl.terminate()
        crawl.communicate(timeout=60)
    # Nobody can know that the first ones are silent. Later ones are kept from taking all slots again.
    later = silent_names.requests[SLOTS:]
    assert max(seen.at_once for seen in later) <= SLOTS // 2, [seen.at_once for seen in later]
    assert silent_network.most_at_once <= SLOTS // 8
    assert len({seen.host for seen in silent_network.requests}) <= MAX_ADDRESSES
    assert status_of(data)["not_accepted"] == {"address-group": 300 - MAX_ADDRESSES}
    check_books(data, [*web.urls, *(f"http://{s.host}{s.path}" for s in _requests(silent_names, silent_network))])


def _requests(*servers: Server) -> list[Seen]:
    return [seen for server in servers for seen in server.requests]


@scenario
def many_domains_on_one_address(tmp_path: Path) -> None:
    """An address gets a few visits at a time and per second; all domains are visited, and nothing counts as failed."""
    data = tmp_path / "data"
    hosts = [f"host{number}.test" for number in range(60)]
    crowd = Crowd(seconds=0.02)
    with serving(crowd), name_server(lambda _: "127.0.0.1") as names:
        seeds = write_lines(tmp_path / "seeds.txt", *(f"http://{host}:{crowd.port}/" for host in hosts))
        options = crawl_options(data, delay=60, concurrency=30)
        options += ["--dns-server", names, "--allow-private-addresses", "--per-ip", 3, "--per-ip-rate", 20]
        options += ["--max-pages", len(hosts)]
        result = rove("crawl", seeds, *options)
    assert result.returncode == 0, result.stderr
    assert {seen.host for seen in crowd.visits} == set(hosts)
    assert crowd.most_at_once <= 3
    times = [seen.at for seen in crowd.visits]
    assert times[-1] - times[0] > 0.9 * (len(hosts) - 20) / 20
    status = status_of(data)
    assert status["leases_without_request"]["no-room"] > 0
    assert frontier_rows(data, "SELECT count(*) FROM request WHERE error NOT IN ('', 'status-404')") == [(0,)]
    assert frontier_rows(data, "SELECT sum(attempts), sum(state = 3) FROM url") == [(0, 0)]
    check_books(data, [f"http://{seen.host}:{crowd.port}{seen.path}" for seen in crowd.requests])


@scenario
def addresses_that_the_user_named(tmp_path: Path) -> None:
    """The limits do not apply to addresses of --connect-to."""
    data = tmp_path / "data"
    crowd = Crowd(seconds=0.3)
    with serving(crowd):
        seeds = write_lines(tmp_path / "seeds.txt", *(f"http://host{number}.test/" for number in range(40)))
        options = [*crawl_options(data, delay=60, concurrency=40), "--per-ip", 1, "--per-ip-rate", 0.1]
        reach = ["--connect-to", f"*=127.0.0.1:{crowd.port}"]
        result = rove("crawl", seeds, *options, "--max-pages", 40, *reach)
    assert result.returncode == 0, result.stderr
    assert crowd.most_at_once > 4
    assert "no-room" not in status_of(data)["leases_without_request"]


@pytest.mark.parametrize("scenario", scenario.names)
def test_floods(scenario: str, outcomes: Outcomes) -> None:
    outcomes[scenario].result()
