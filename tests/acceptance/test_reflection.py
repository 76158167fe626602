"""Robots.txt redirects cannot send requests to a third site: its own log is the judge."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.acceptance.command import crawl_options, rove, started, wait_for, write_lines
from tests.acceptance.results import check_books
from tests.acceptance.scenarios import Outcomes, Scenarios
from tests.acceptance.site import Site
from tests.zoo.reflection import VICTIM, Reflection, attacking, shortest_gap

DELAY = 0.3
scenario = Scenarios()


def crawl(folder: Path, reflection: Reflection, web: Site, *options: object) -> Path:
    """Crawl the hosts and the victim's pages to the end; return the data directory."""
    data = folder / "data"
    seeds = write_lines(folder / "seeds.txt", *reflection.seeds)
    result = rove("crawl", seeds, *crawl_options(data, delay=DELAY, concurrency=100), *options, *web.reach)
    assert result.returncode == 0, result.stderr
    check_books(data, web.urls)
    return data


@scenario
def a_site_with_pages_of_its_own(tmp_path: Path) -> None:
    """Eighty hosts cause no request that the victim's own pages would not have caused."""
    reflection = Reflection(hosts=80)
    with attacking(reflection) as web:
        crawl(tmp_path, reflection, web)
    seen = [request.path for request in web.requests_to(VICTIM)]
    assert sorted(seen) == sorted(["/robots.txt", "/0", "/1", "/2"])
    assert shortest_gap(web, VICTIM) >= DELAY
    for host in reflection.choosing:
        pages = {request.path for request in web.requests_to(host)}
        assert pages == {"/robots.txt", "/", "/private"}, "a page for everything means no rules"
    for host in reflection.honest:
        pages = {request.path for request in web.requests_to(host)}
        assert pages == {"/robots.txt", "/"}, "the victim's rules apply"


@scenario
def a_site_that_is_not_crawled(tmp_path: Path) -> None:
    """Of a site out of scope only its robots.txt is requested, once."""
    reflection = Reflection(hosts=40, pages=0)
    with attacking(reflection) as web:
        crawl(tmp_path, reflection, web, "--scope", "domain", "--sitemaps")
    assert [request.path for request in web.requests_to(VICTIM)] == ["/robots.txt"]
    assert all({"/", "/robots.txt"} <= {r.path for r in web.requests_to(host)} for host in reflection.honest)


@scenario
def a_site_that_is_busy(tmp_path: Path) -> None:
    """A Retry-After counts for all hosts that point to the victim."""
    reflection = Reflection(hosts=40, is_busy=True)
    data = tmp_path / "data"
    seeds = write_lines(tmp_path / "seeds.txt", *reflection.seeds)
    with attacking(reflection) as web:
        options = crawl_options(data, delay=DELAY, concurrency=100)
        with started("crawl", seeds, *options, *web.reach) as crawling:
            # A host that is visited after the victim is not requested again before the Retry-After has passed.
            wait_for(lambda: all(web.requests_to(host) for host in (VICTIM, *reflection.honest)))
            wait_for(lambda: all(len(web.requests_to(host)) == 3 for host in reflection.choosing))
            crawling.send_signal(signal.SIGINT)
            crawling.communicate(timeout=60)
    check_books(data, web.urls)
    assert [request.path for request in web.requests_to(VICTIM)] == ["/robots.txt"]
    for host in reflection.honest:
        assert {request.path for request in web.requests_to(host)} == {"/robots.txt"}, "nothing is allowed without it"


@pytest.mark.parametrize("scenario", scenario.names)
def test_reflection(scenario: str, outcomes: Outcomes) -> None:
    outcomes[scenario].result()
