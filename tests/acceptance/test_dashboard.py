"""`rove dashboard` over HTTP: what it tells, what it lets whom do, and that it never holds up a crawl."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psutil
import pytest

from rove.observe.panels import default_panels
from tests.acceptance.command import Process, crawl_options, logged, rove, started, wait_for, write_lines
from tests.acceptance.hostile_text import ANSWERS, HOST
from tests.acceptance.results import status_of
from tests.acceptance.shown import JSON, Dashboard, address_in, dashboard
from tests.acceptance.site import Reply, site
from tests.acceptance.stopping import under_way, web_and_seeds

PATHS = ["1", "2", "private/x", "gone", "picture.png"]
SMALL = {
    "calm.test/robots.txt": Reply("User-agent: *\nDisallow: /private/\nCrawl-delay: 0.02", type="text/plain"),
    "calm.test/": Reply("<title>Calm</title>" + "".join(f"<a href=/{n}>{n}</a>" for n in PATHS)),
    "calm.test/1": Reply("<title>One</title>"),
    "calm.test/2": Reply("<title>Two</title>"),
    "busy.test/": Reply("later", status=503),
}
LATE = ["late.test", "www.late.test"]
"""Hosts with URLs that are still pending when the crawl ends."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl that has ended, of the hostile site and of a few others."""
    folder = tmp_path_factory.mktemp("shown")
    first = write_lines(folder / "seeds.txt", f"http://{HOST}/", "http://calm.test/", "http://busy.test/")
    with site(ANSWERS | SMALL) as served:
        done = rove("crawl", first, *crawl_options(folder / "data", delay=0.01), *served.reach)
    assert done.returncode == 0, done.stderr
    more = write_lines(folder / "more.txt", *(f"http://{host}/{n}" for host in LATE for n in range(3)))
    assert rove("seeds", "add", more, "--data-dir", folder / "data").returncode == 0
    with site({}) as served:  # loads the new seeds and requests none
        rove("pause", "--data-dir", folder / "data")
        loading = ["crawl", "--resume", "--data-dir", folder / "data", *served.reach]
        with logged(*loading) as (process, _):
            wait_for(lambda: status_of(folder / "data")["urls"]["pending"] >= 6)
            process.send_signal(signal.SIGINT)
            process.wait(60)
        rove("unpause", "--data-dir", folder / "data")
    return folder / "data"


@pytest.fixture(scope="module")
def on_sqlite(data: Path) -> Path:
    """A copy of the crawl, which the tests change."""
    return Path(shutil.copytree(data, data.parent / "on-sqlite"))


@pytest.fixture(scope="module")
def on_postgres(data: Path, postgres_url: str) -> Path:
    """A copy of the crawl in PostgreSQL."""
    copy = Path(shutil.copytree(data, data.parent / "on-postgres"))
    moved = rove("move", "--to", postgres_url, "--crawl-name", f"shown_{os.getpid()}", "--data-dir", copy)
    assert moved.returncode == 0, moved.stderr
    return copy


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def shown(request: pytest.FixtureRequest) -> Iterator[Dashboard]:
    """A dashboard of the crawl, on each database in turn."""
    folder = request.getfixturevalue(f"on_{request.param}")
    with dashboard("--data-dir", folder) as running:
        yield running


@pytest.fixture(scope="module")
def guarded(data: Path) -> Iterator[Dashboard]:
    """A dashboard on SQLite, which no test changes."""
    with dashboard("--data-dir", data, "--allow-host", "crawler.example") as running:
        yield running


def test_the_front_page_has_all_numbers(shown: Dashboard) -> None:
    overview = shown.get("overview")
    status = overview["status"]
    assert not status["running"] and status["pages"] >= 5 and status["urls"]["pending"] >= 6
    stages = {stage["name"]: stage for stage in overview["funnel"]}
    assert stages["stored"]["count"] == status["urls"]["done"]
    assert {"reason": "robots.txt", "count": status["blocked"]["robots.txt"]} in stages["decided"]["reasons"]
    assert [machine["state"] for machine in overview["machines"]] == ["left"]


def test_the_last_requests_are_listed_with_hostile_titles_as_they_are(shown: Dashboard) -> None:
    found = shown.get("requests")
    assert {row["kind"] for row in found["requests"]} == {"page", "robots"}
    titles = [row["title"] for row in found["requests"] if row["url"] == f"http://{HOST}/"]
    assert titles and all("\u202e" in title for title in titles), titles
    assert found["answers"]["statuses"]["200"] >= 5
    raw = shown.send("GET", "/api/requests").body
    assert b"\x1b" not in raw and "\u202e".encode() not in raw, "a terminal would obey it"


def test_examples_are_found_for_every_number(shown: Dashboard) -> None:
    status = shown.get("overview")["status"]
    for error in status["errors"]:
        assert shown.get(f"examples?of=error&value={quote(error)}")["requests"], error
    assert shown.get("examples?of=status&value=200")["requests"]
    assert shown.get("examples?of=type&value=text/html")["requests"]
    failed = shown.get("examples?of=failed&value=status-503")["urls"]
    assert [row["url"] for row in failed] == ["http://busy.test/"]
    blocked = shown.get("examples?of=blocked&value=robots.txt")["urls"]
    assert "http://calm.test/private/x" in [row["url"] for row in blocked]
    skipped = shown.get("examples?of=skipped&value=file-type")["urls"]
    assert ("http://calm.test/picture.png", "http://calm.test/") in [(row["url"], row["from"]) for row in skipped]
    assert shown.send("GET", "/api/examples?of=moon&value=1").status == 400


def test_plots_have_the_panels_of_rove_plot(shown: Dashboard) -> None:
    plot = shown.get("plots?seconds=3600")
    assert [panel["name"] for panel in plot["panels"]] == [panel.name for panel in default_panels()]
    assert plot["count"] * plot["step"] >= 120 and len(plot["machines"]) == 1
    pages = next(line for panel in plot["panels"] for line in panel["lines"] if line["label"] == "pages")
    assert len(pages["values"]) == plot["count"] and any(pages["values"])
    assert [panel["name"] for panel in shown.get("plots?panels=lag,disk")["panels"]] == ["lag", "disk"]
    assert shown.send("GET", "/api/plots?panels=moon").status == 400
    for wrong in ("x", "-1", "1e99", "nan"):
        assert shown.send("GET", f"/api/plots?seconds={wrong}").status == 400


def test_a_url_is_explained(shown: Dashboard) -> None:
    found = shown.get("explain?url=http://calm.test/private/x")
    assert "robots.txt" in found["sentence"] and found["answer"]["verdict"]
    assert {"robots.txt", "delay", "history"} <= {part["name"] for part in found["parts"]}
    assert "is not a URL" in shown.send("GET", "/api/explain?url=%00").error


def test_domains_are_sorted_searched_and_paged(shown: Dashboard) -> None:
    by_pending = shown.get("domains")
    assert by_pending["domains"][0]["domain"] == "late.test" and by_pending["matching"] >= 4
    assert [row["domain"] for row in shown.get("domains?search=CAL")["domains"]] == ["calm.test"]
    by_pages = [row["pages"] for row in shown.get("domains?by=pages&reverse=yes")["domains"]]
    assert by_pages == sorted(by_pages) and by_pages[-1] >= 3
    assert shown.send("GET", "/api/domains?by=beauty").status == 400
    assert shown.send("GET", "/api/domains?after=x").status == 400


def test_one_domain_has_a_page_a_queue_a_robots_txt_and_a_report(shown: Dashboard) -> None:
    found = shown.get("domains/www.calm.test")
    assert found["name"] == "calm.test" and "Disallow: /private/" in found["robots"][0]["text"]
    assert len(found["requests"]) >= 4
    assert len(shown.get("domains/late.test")["queue"]) == 6
    report = shown.get("domains/calm.test/report")
    assert [section["title"] for section in report["sections"]] == ["Who runs the crawl", "Summary"]
    file = shown.send("GET", "/api/domains/calm.test/report.html")
    assert file.headers["content-disposition"] == 'attachment; filename="report-calm.test.html"'
    assert b"<h1>Requests by rove to calm.test</h1>" in file.body
    unknown = shown.send("GET", "/api/domains/clam.test")
    assert unknown.status == 404 and "did you mean" in unknown.error


def test_domains_are_excluded_after_a_preview_and_included_again(shown: Dashboard) -> None:
    given = {"domains": ["https://late.test/path", ""], "reason": "asked by e-mail"}
    preview = shown.act("preview", **given).json
    assert preview["domains"] == [{"name": "late.test", "pending": 6, "whole": True}] and preview["pending"] == 6
    assert preview["covers"] == ["late.test and all its subdomains (all pages, not only /path)"]
    assert not shown.get("exclusions")["exclusions"], "a preview changes nothing"
    done = shown.act("exclude", **given).json
    assert done["urls"] == 6 and "6 URLs left the queue" in done["says"]
    (exclusion,) = shown.get("exclusions")["exclusions"]
    assert exclusion["pattern"] == "late.test" and exclusion["reason"] == "asked by e-mail" and exclusion["who"]
    assert shown.get("domains/late.test")["excluded_by"] == "late.test"
    assert shown.act("include", domains=["late.test"]).json["urls"] == 6
    assert "not excluded" in shown.act("include", domains=["late.test"]).error


def test_a_preview_names_domains_in_part_and_by_pattern(shown: Dashboard) -> None:
    part = shown.act("preview", domains=["=www.late.test"]).json
    assert part["domains"] == [{"name": "late.test", "pending": 6, "whole": False}]
    wide = shown.act("preview", domains=["*a*e.test"]).json
    assert {row["name"] for row in wide["domains"]} == {"late.test"} and wide["note"]
    suffix = shown.act("preview", domains=["co.uk"])
    assert suffix.status == 400 and "public suffix" in suffix.error
    assert shown.act("preview", domains=["co.uk"], suffixes=True).json["domains"] == []
    assert "no domain" in shown.act("preview", domains=[" "]).error


def test_failed_urls_are_tried_again(shown: Dashboard) -> None:
    assert shown.act("retry", error="status-503", domain="busy.test").json["urls"] == 1
    wait_for(lambda: shown.get("overview")["status"]["retries"])
    assert shown.act("retry", domain="not a domain").status == 400


def test_a_crawl_that_does_not_run_is_paused_and_unpaused(shown: Dashboard) -> None:
    assert "not running" in shown.act("pause").json["says"]
    wait_for(lambda: shown.get("overview")["status"]["paused"])
    assert "not running" in shown.act("unpause").json["says"]
    assert "not running" in shown.act("stop").json["says"]


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/api/overview", "/api/actions/pause", "/nothing"])
def test_a_foreign_host_header_is_refused(guarded: Dashboard, path: str) -> None:
    for method in ("GET", "POST"):
        reply = guarded.send(method, path, {"Host": "evil.example"}, token=True)
        assert reply.status == 403 and "--allow-host evil.example" in reply.error
    assert guarded.send("GET", "/", {"Host": "crawler.example:80"}).status == 200
    assert guarded.send("GET", "/", {"Host": f"localhost:{guarded.port + 1}"}).status == 200, "an SSH tunnel"


def test_actions_need_the_token_and_a_request_of_the_page_itself(guarded: Dashboard) -> None:
    body = json.dumps({"domains": ["late.test"]}).encode()
    act = "/api/actions/exclude"

    def status(headers: dict[str, str], *, token: bool = True, body: bytes = body) -> int:
        return guarded.send("POST", act, headers, body=body, token=token).status

    assert status(JSON, token=False) == 401
    assert status(JSON | {"X-Rove-Token": guarded.token[:-1]}, token=False) == 401
    assert status(JSON | {"Origin": "http://evil.example"}) == 403
    assert status(JSON | {"Sec-Fetch-Site": "cross-site"}) == 403
    assert status({"Content-Type": "text/plain"}) == 415
    assert status(JSON, body=b"{}") == status(JSON, body=b'{"domains": [], "x": 1}') == 400
    assert guarded.send("GET", act, token=True).status == 405
    assert not guarded.get("exclusions")["exclusions"]


def test_every_answer_has_the_security_headers(guarded: Dashboard) -> None:
    for path in ("/", "/static/dashboard.css", "/api/overview", "/nothing", "/api/explain"):
        headers = guarded.send("GET", path).headers
        assert "default-src 'none'" in headers["content-security-policy"], path
        assert "unsafe" not in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers
    preflight = guarded.send("OPTIONS", "/api/actions/exclude", {"Origin": "http://evil.example"}, token=True)
    assert preflight.status == 403


def test_requests_have_limits(guarded: Dashboard) -> None:
    long = guarded.send("GET", f"/api/explain?url={'x' * 20_000}")
    assert long.status == 414
    body = b'{"domains": ["' + b"x" * 300_000 + b'"]}'
    assert guarded.act("exclude").status == 400
    too_long = guarded.send("POST", "/api/actions/exclude", JSON, body=body, token=True)
    assert too_long.status == 413
    for name in ("../access.py", "%2e%2e/access.py", "page.html", ""):
        assert guarded.send("GET", f"/static/{name}").status == 404, name
    with socket.create_connection(("127.0.0.1", guarded.port)) as silent:
        silent.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 10_000)
        assert guarded.get("overview"), "a slow client holds up nobody"


def test_the_page_names_the_crawl_and_loads_nothing_from_other_hosts(guarded: Dashboard, data: Path) -> None:
    page = guarded.send("GET", "/").body.decode()
    assert f"rove: {data}</title>" in page
    assert "://" not in page.replace("http://www.w3.org", "")
    assert "<script>" not in page and "onclick" not in page and "style=" not in page


def test_another_address_demands_the_token_for_reading_too(data: Path) -> None:
    with dashboard("--data-dir", data, "--listen", "0.0.0.0:0") as running:
        assert running.send("GET", "/").status == 200
        reply = running.send("GET", "/api/overview")
        assert reply.status == 401 and "token" in reply.error
        assert running.send("GET", "/api/overview", token=True).status == 200
        assert running.send("GET", "/api/overview", {"Host": "evil.example"}, token=True).status == 403
        assert running.send("GET", "/", {"Host": socket.gethostname()}).status == 200, "the address that was printed"


def test_a_crawl_is_shown_by_its_database_alone(on_postgres: Path, postgres_url: str, tmp_path: Path) -> None:
    words = ["--frontier", postgres_url, "--crawl-name", f"shown_{os.getpid()}", "--data-dir", tmp_path / "none"]
    with dashboard(*words) as running:
        assert running.get("overview")["status"]["pages"] >= 5
        assert running.act("preview", domains=["calm.test"]).json["domains"]
        assert running.act("exclude", domains=["other.test"]).json["new"] == ["other.test"]
        assert "not running" in running.act("pause", all_machines=True).json["says"]
        assert "not running" in running.act("unpause").json["says"]
    assert not (tmp_path / "none").exists()


def test_it_ends_cleanly_and_says_when_its_port_is_taken(data: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        with dashboard("--data-dir", data) as running:
            assert running.process is not None
            taken = rove("dashboard", "--data-dir", data, "--listen", str(running.port))
            assert taken.returncode == 2 and f"127.0.0.1:{running.port}" in taken.stderr, taken
            with socket.create_connection(("127.0.0.1", running.port)):  # a browser that keeps its connection
                running.process.send_signal(number)
                assert running.process.wait(60) == 0


def test_what_cannot_be_shown_is_refused_at_the_start(tmp_path: Path) -> None:
    nothing = rove("dashboard", "--data-dir", tmp_path / "none")
    assert nothing.returncode == 2 and "holds no crawl" in nothing.stderr
    for listen in ("moon", "127.0.0.1:99999", "192.0.2.1:0"):
        refused = rove("dashboard", "--data-dir", tmp_path / "none", "--listen", listen)
        assert refused.returncode == 2, listen


def test_a_crawl_has_its_dashboard_beside_it_and_outlives_its_crash(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with web_and_seeds(tmp_path) as (web, words):
        options = [*crawl_options(data, delay=0.05), "--dashboard=0"]
        with logged(*words, *options) as (process, output):
            wait_for(lambda: "#token=" in output())
            shown = Dashboard(*address_in(output()))
            under_way(web)
            assert shown.get("overview")["status"]["running"]
            newest = shown.get("requests")["requests"][0]["visit"]
            wait_for(lambda: shown.get("requests")["requests"][0]["visit"] > newest)
            (child,) = dashboards_of(process)
            assert child.nice() > psutil.Process(process.pid).nice()
            child.kill()
            wait_for(lambda: "the dashboard has ended" in output())
            before = len(web.requests)
            under_way(web, before + 20)
            process.send_signal(signal.SIGINT)
            process.wait(60)
            assert shown.token not in (data / "rove.log").read_text()


def test_a_dashboard_beside_a_crawl_stops_the_crawl_and_ends_with_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with web_and_seeds(tmp_path) as (web, words):
        options = crawl_options(data, delay=0.05)
        with logged(*words, *options, "--dashboard=0") as (process, output):
            wait_for(lambda: "#token=" in output())
            shown = Dashboard(*address_in(output()))
            under_way(web)
            assert "no new visit starts" in shown.act("pause").json["says"]
            assert "visits start again" in shown.act("unpause").json["says"]
            (child,) = dashboards_of(process)
            stopped = shown.act("stop")
            assert stopped.status == 200 and stopped.json["says"].startswith(("stopped", "told")), stopped
            assert process.wait(60) == 0 and "stopped by rove stop" in output()
            assert not child.is_running()
        again = ["crawl", "--resume", "--data-dir", data, *web.reach, "--dashboard"]
        with socket.socket() as taken, logged(*again, _held(taken)) as (process, output):
            wait_for(lambda: "another program uses this port" in output())
            before = len(web.requests)
            under_way(web, before + 20)


def _held(taken: socket.socket) -> str:
    """Take a port; return its address."""
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    return f"127.0.0.1:{taken.getsockname()[1]}"


def test_a_killed_crawl_leaves_no_dashboard_behind(tmp_path: Path) -> None:
    options = [*crawl_options(tmp_path / "data", delay=0.05), "--dashboard=0"]
    with web_and_seeds(tmp_path) as (_, words), started(*words, *options) as process:
        wait_for(lambda: dashboards_of(process))
        (child,) = dashboards_of(process)
        process.kill()
        process.wait()
        psutil.wait_procs([child], timeout=60)
        assert not child.is_running()


def dashboards_of(crawl: Process) -> list[psutil.Process]:
    """Return the dashboard that a crawl has started, if it is there."""
    return [child for child in psutil.Process(crawl.pid).children() if "dashboard" in child.cmdline()]
