"""The metrics of crawls that run, over real sockets."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rove.observe.metrics.formats import Format
from tests.acceptance.command import crawl_options, logged, rove, wait_for, write_lines
from tests.acceptance.results import check_audit, status_of
from tests.acceptance.scenarios import Outcomes, Scenarios
from tests.acceptance.scraping import OPENMETRICS, get, hostile_clients, port_in, scraped, value
from tests.acceptance.site import Reply, site
from tests.promtool import promtool
from tests.queries import Query, alert_queries, dashboard_queries, unresolved

DELAY = 0.5
SITES = [f"site{number}.test" for number in range(30)]


def endless_web(host: str, path: str) -> Reply:
    """Answer for sites without an end, so that no crawl ends before it has been looked at."""
    if path == "/robots.txt":
        return Reply("User-agent: *\nDisallow: /private", type="text/plain")
    number = int(path.removeprefix("/") or 0)
    if number % 5 == 4:
        return Reply("There is no such page.", status=404)
    links = "".join(f"<a href={link}>a link</a>" for link in (f"/{number + 1}", f"/{number + 2}", "/private", "/a.jpg"))
    return Reply(f"<title>Page {number} of {host}</title>{links}")


scenario = Scenarios()
_shared: dict[str, str] = {}
"""The URL of the database server. Scenarios run in threads and cannot use fixtures."""


@pytest.fixture(scope="module", autouse=True)
def database(postgres_url: str) -> None:
    _shared["url"] = postgres_url


def port_of(output: Callable[[], str]) -> int:
    """Wait until a crawl has said where its metrics are; return the port."""
    wait_for(lambda: port_in(output()))
    port = port_in(output())
    assert port is not None
    return port


def wait_until_resolved(port: int, queries: list[Query]) -> None:
    """Wait until every query finds its metrics; say what is missing if that never happens."""
    try:
        wait_for(lambda: not unresolved(queries, scraped(port)))
    except AssertionError:
        raise AssertionError(unresolved(queries, scraped(port))) from None


def pages(port: int) -> float:
    return value(scraped(port), "rove_pages_total") or 0.0


@scenario
def every_query_finds_its_metrics_and_no_client_disturbs_the_crawl(tmp_path: Path) -> None:
    data, seeds = tmp_path / "data", write_lines(tmp_path / "seeds.txt", *(f"http://{name}" for name in SITES))
    queries = [*dashboard_queries(), *alert_queries()]
    with (
        site(endless_web) as web,
        logged("crawl", seeds, *web.reach, *crawl_options(data, delay=DELAY, processes=2), "--metrics", 0) as crawl,
    ):
        process, output = crawl
        port = port_of(output)
        wait_for(lambda: pages(port))
        wait_until_resolved(port, queries)
        check_formats(port)
        rove("pause", "--data-dir", data)
        wait_for(lambda: pages(port) == status_of(data)["pages"])
        wait_for(lambda: value(scraped(port), "rove_paused", cause="operator") == 1.0)
        check_values(port)
        before = pages(port)
        with hostile_clients(port):
            rove("unpause", "--data-dir", data)
            wait_for(lambda: pages(port) > before)
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 128 + signal.SIGINT, output()
        assert "died" not in output() and "bug" not in output(), output()
    check_audit(data)


def check_values(port: int) -> None:
    """Check that the metrics of a crawl of two processes fit together."""
    families = scraped(port)
    for process in ("supervisor", "1", "2"):
        assert value(families, "rove_process_up", process=process) == 1.0
        assert (value(families, "rove_memory_bytes", process=process) or 0) > 10e6
        assert (value(families, "rove_cpu_seconds_total", process=process) or 0) > 0
        assert (value(families, "rove_open_files", process=process) or 0) > 3
    stored = value(families, "rove_pages_total")
    requests = value(families, "rove_requests_total", kind="page")
    assert stored and requests and stored <= requests
    assert value(families, "rove_request_duration_seconds_count", kind="page") == requests
    assert value(families, "rove_page_size_bytes_count") == stored
    assert (value(families, "rove_frontier_urls", state="done") or 0) == stored
    assert (value(families, "rove_politeness_smallest_margin_seconds") or 0) >= 0
    assert value(families, "rove_limiting_factor") == 1.0, "exactly one factor"


def check_formats(port: int) -> None:
    """Check the two formats, the hint at `/`, and what else a client may ask for."""
    response, old = get(port)
    assert response.getheader("Content-Type") == Format.PROMETHEUS.media_type
    promtool("check", "metrics", input=old.encode())
    response, modern = get(port, accept=OPENMETRICS)
    assert response.getheader("Content-Type") == Format.OPENMETRICS.media_type and modern.endswith("# EOF\n")
    response, nothing = get(port, method="HEAD")
    assert response.status == 200 and nothing == "" and int(response.getheader("Content-Length") or 0) > 1_000
    assert "/metrics" in get(port, "/")[1]
    assert get(port, "/etc/passwd")[0].status == 404
    assert get(port, method="POST")[0].status == 405


@scenario
def two_machines_of_one_crawl_are_scraped_at_once(tmp_path: Path) -> None:
    url, name = _shared["url"], f"metrics_{os.getpid()}"
    here, there = tmp_path / "here", tmp_path / "there"
    seeds = write_lines(tmp_path / "seeds.txt", *(f"http://{name}" for name in SITES))
    with site(endless_web) as web, ThreadPoolExecutor() as threads:
        words = ["crawl", seeds, *web.reach, *crawl_options(here, delay=DELAY, concurrency=5)]
        frontier = ["--frontier", url, "--crawl-name", name]
        with logged(*words, *frontier, "--metrics", 0) as (first, first_output):
            wait_for(lambda: pages(port_of(first_output)))
            words = ["join", url, "--crawl-name", name, "--data-dir", there, "--processes", 1, "--concurrency", 5]
            with logged(*words, "--metrics", 0) as (second, second_output):
                ports = [port_of(first_output), port_of(second_output)]
                wait_for(lambda: min(threads.map(pages, ports)) > 0)
                rove("pause", *frontier)
                wait_for(lambda: sum(threads.map(pages, ports)) == status_of(here)["pages"])
                both = list(threads.map(scraped, ports))
                for families in both:
                    assert value(families, "rove_database_up") == 1.0
                    assert (value(families, "rove_database_connections") or 0) > 0
                    assert value(families, "rove_process_up", process="1") == 1.0
                    assert value(families, "rove_frontier_urls", state="pending")
                for process in (first, second):
                    process.send_signal(signal.SIGINT)
                for process in (first, second):
                    assert process.wait(120) == 128 + signal.SIGINT


@scenario
def a_port_that_is_taken_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    data = tmp_path / "data"
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("example.test\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = rove("crawl", seeds, *crawl_options(data), "--metrics", port)
    assert done.returncode == 2 and not data.exists()
    assert (
        done.stderr == f"rove: cannot listen on 127.0.0.1:{port}: another program uses this port; choose another one\n"
    )


@pytest.mark.parametrize("scenario", scenario.names)
def test_metrics(scenario: str, outcomes: Outcomes) -> None:
    outcomes[scenario].result()
