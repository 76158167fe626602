"""Requests as servers see them, and how a crawl treats answers of every kind."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import brotli
import pytest

from rove import __version__
from rove.demo.log import LogKind
from tests.acceptance.command import EMAIL, crawl_options, rove, rove_each, write_lines
from tests.acceptance.results import exported, frontier_rows, status_of
from tests.acceptance.scenarios import Outcomes, Scenarios
from tests.acceptance.site import Reply, site, unreachable
from tests.acceptance.small_web import served
from tests.judge import judge
from tests.oracle import allowed
from tests.unit.fetch import certificates
from tests.unit.fetch.server import blocking_server

KNOBS = ["crawl_delay=0.2"]
scenario = Scenarios()


STATES = ("pending", "done", "blocked", "failed", "redirected")


def states_of(data: Path) -> dict[str, tuple[str, str]]:
    """Return the state of every URL and its reason."""
    rows = frontier_rows(data, "SELECT url, state, reason FROM url")
    return {url: (STATES[state], reason) for url, state, reason in rows}


@scenario
def a_bare_domain_is_asked_over_http_in_the_same_visit(tmp_path: Path) -> None:
    """The small web speaks no TLS, so https cannot be reached."""
    data = tmp_path / "data"
    with served(tmp_path, hosts=10, profile="calm", knobs=KNOBS) as web:
        seeds = web.write_seeds(tmp_path / "seeds.txt", assume_https=True)
        result = rove("crawl", seeds, *crawl_options(data, delay=0.3), *web.reach)
    assert result.returncode == 0 and "exhausted" in result.stderr, result.stderr
    assert {page["url"] for page in exported(data)} == web.expected()

    states = states_of(data)
    for host in web.web.seeds():
        assert states[f"https://{host}/"] == ("redirected", f"http://{host}/")
        assert states[f"http://{host}/"][0] != "pending"
    visits = dict(frontier_rows(data, "SELECT url, visit FROM url"))
    for host in web.web.seeds():
        visit = visits[f"https://{host}/"]
        asked = frontier_rows(data, f"SELECT kind, url, error FROM request WHERE visit = {visit} ORDER BY seq")
        assert asked[0][:2] == ("robots", f"https://{host}/robots.txt") and asked[0][2]
        assert asked[1][:2] == ("robots", f"http://{host}/robots.txt")
        if allowed(web.web, host, "/"):
            assert visits[f"http://{host}/"] == visit
            assert ("page", f"http://{host}/", "") in asked
    attempts = [entry for entry in web.requests() if entry.kind is LogKind.NOT_HTTP]
    assert len(attempts) == web.web.hosts, "https was tried once for each domain"
    verdict = judge(web.web, web.requests(), 0.3)
    assert verdict.polite, verdict


@scenario
def a_bare_domain_that_answers_nowhere_stays_one_url(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with unreachable() as reach:
        seeds = write_lines(tmp_path / "seeds.txt", "silent.test", "http://deaf.test/")
        result = rove("crawl", seeds, *crawl_options(data, delay=0.01), *reach)
    assert result.returncode == 3, result.stderr
    assert "No seed could be reached (connect " in result.stderr and "2 URLs are pending" in result.stderr
    assert states_of(data) == {
        "https://silent.test/": ("pending", "robots.txt: connect"),
        "http://deaf.test/": ("pending", "robots.txt: connect"),
    }
    status = status_of(data)
    assert status["errors"]["connect"] >= 9 and status["pages"] == 0
    assert status["errors_by_kind"]["robots"] == status["errors"] and status["requests_by_kind"]["page"] == 0
    listed = [json.loads(line) for line in rove("pages", "--json", "--data-dir", data).stdout.splitlines()]
    assert {(page["kind"], page["error"]) for page in listed} == {("robots", "connect")}
    assert "http://deaf.test/robots.txt" in {page["url"] for page in listed}
    explained = rove("explain", "http://deaf.test/", "--data-dir", data).stdout
    assert re.search(r"^site +requested \d+ times, no answer \(connect \d+\)$", explained, re.MULTILINE), explained


@scenario
def rules_that_cannot_be_had_close_their_origin(tmp_path: Path) -> None:
    """A 5xx forbids everything and a 4xx nothing. Another origin of the domain is not affected."""
    page = Reply("<title>a page</title>")
    pages = {
        "broken.test/robots.txt": Reply("User-agent: *\nAllow: /", status=500),
        "broken.test/": page,
        "www.broken.test/": page,
        "busy.test/robots.txt": Reply("wait", status=503),
        "busy.test/": page,
        "secret.test/robots.txt": Reply("no", status=403),
        "secret.test/": page,
        "gone.test/robots.txt": Reply("no", status=410),
        "gone.test/": page,
    }
    data = tmp_path / "data"
    hosts = [name.removesuffix("/") for name in pages if name.endswith("/")]
    with site(pages) as web:
        seeds = write_lines(tmp_path / "seeds.txt", *(f"http://{host}/" for host in hosts))
        result = rove("crawl", seeds, *crawl_options(data, delay=0.01), *web.reach)
    assert result.returncode == 0, result.stderr
    assert set(web.pages) == {
        "http://www.broken.test/",
        "http://secret.test/",
        "http://gone.test/",
    }
    assert status_of(data)["urls"] == {
        "pending": 2,
        "done": 3,
        "blocked": 0,
        "failed": 0,
        "redirected": 0,
        "read": 0,
    }


@scenario
def private_addresses_are_refused_save_those_of_connect_to(tmp_path: Path) -> None:
    """A --connect-to rule names the address on purpose; a page that links to such an address does not reach it."""
    data = tmp_path / "data"
    pages: dict[str, Reply] = {}
    with site(pages) as web:
        port = web.port
        private = [
            f"http://127.0.0.1:{port}/",
            f"http://127.1:{port}/again",
            f"http://0x7f000002:{port}/",
            f"http://[::1]:{port}/",
            f"http://[::ffff:127.0.0.1]:{port}/",
            f"http://0.0.0.0:{port}/",
        ]
        links = "".join(f'<a href="{url}linked">x</a>' for url in private)
        pages["named.test/"] = Reply(links)
        seeds = write_lines(tmp_path / "seeds.txt", *private, "http://named.test/")
        reach = ["--connect-to", f"*.test=127.0.0.1:{port}"]
        result = rove("crawl", seeds, *crawl_options(data, delay=0.01), *reach)
    assert result.returncode == 0 and "exhausted" in result.stderr, result.stderr
    assert set(web.urls) == {"http://named.test/robots.txt", "http://named.test/"}
    assert web.connections == 2, "a private address was connected to"
    states = states_of(data)
    assert states.pop("http://named.test/") == ("done", "")
    assert len(states) == 6
    assert set(states.values()) == {("failed", "address-refused")}
    status = status_of(data)
    assert status["errors"]["address-refused"] == 5, "two of them are of one origin"
    assert status["not_accepted"] == {"port": 6}, "no link leads to such a port"


@scenario
def every_request_says_who_asks_and_carries_nothing_else(tmp_path: Path) -> None:
    """Requests carry no cookies and no credentials, and ignore proxies set in the environment."""
    cookie = {"Set-Cookie": "id=1; Path=/"}
    pages = {
        "a.test/robots.txt": Reply("User-agent: *\nDisallow:\n", type="text/plain", headers=cookie),
        "a.test/": Reply('<a href="/b">b</a><a href="http://me:word@a.test/c">c</a>', headers=cookie),
        "a.test/b": Reply(status=302, headers={**cookie, "Location": "/c"}),
        "a.test/c": Reply("<title>c</title>", headers=cookie),
    }
    info = "https://example.org/about-our-crawl"
    with site({}) as proxy, site(pages) as web:
        seeds = write_lines(tmp_path / "seeds.txt", "http://a.test/")
        trap = f"http://127.0.0.1:{proxy.port}"
        names = ["http_proxy", "https_proxy", "all_proxy", "ftp_proxy"]
        settings = dict.fromkeys([*names, *(name.upper() for name in names)], trap)
        options = [*web.reach, "--allow-short-delay", "--delay", 0.01, "--email", EMAIL]
        words = ["crawl", seeds, *options, "--data-dir"]
        results = rove_each(
            [[*words, tmp_path / "plain"], [*words, tmp_path / "informed", "--info-url", info]],
            env={**os.environ, **settings, "no_proxy": "", "NO_PROXY": ""},
        )
    assert [result.returncode for result in results] == [0, 0], results
    assert proxy.connections == 0, "a proxy of the environment was used"
    assert all(result.stderr.count("http_proxy and https_proxy in the environment: ignored") == 1 for result in results)
    assert set(web.urls) == {f"http://{name}" for name in pages}
    agents = {asked.headers["user-agent"] for asked in web.requests}
    assert agents == {
        f"rove/{__version__} (mailto:{EMAIL})",
        f"rove/{__version__} (+{info}; mailto:{EMAIL})",
    }
    for asked in web.requests:
        assert set(asked.headers) <= {"host", "user-agent", "accept", "accept-encoding"}


@scenario
def codings_are_undone_and_other_types_left_alone(tmp_path: Path) -> None:
    text = "<title>Straße</title><p>Grüße aus dem Süden</p>"
    plain = text.encode()
    pages = {
        "a.test/": Reply(
            "".join(
                f'<a href="/{name}">x</a>'
                for name in [
                    "gzip",
                    "deflate",
                    "br",
                    "xhtml",
                    "text",
                    "pdf",
                    "json",
                    "picture.png",
                    "css",
                    "none",
                    "film.mp4",
                    "endless",
                ]
            )
        ),
        "a.test/gzip": Reply(gzip.compress(plain), headers={"Content-Encoding": "gzip"}),
        "a.test/deflate": Reply(zlib.compress(plain), headers={"Content-Encoding": "deflate"}),
        "a.test/br": Reply(brotli.compress(plain), headers={"Content-Encoding": "br"}),
        "a.test/xhtml": Reply(text, type="application/xhtml+xml; charset=utf-8"),
        "a.test/text": Reply("Grüße aus dem Süden", type="text/plain; charset=utf-8"),
        "a.test/pdf": Reply("%PDF", type="application/pdf"),
        "a.test/json": Reply("{}", type="application/json"),
        "a.test/picture.png": Reply("PNG", type="image/png"),
        "a.test/css": Reply("p {}", type="text/css"),
        "a.test/none": Reply("p", type="application/octet-stream"),
        "a.test/film.mp4": Reply("film " * 20_000, type="video/mp4", endless=True),
        "a.test/endless": Reply("<p>word</p>" * 20_000, endless=True),
    }
    data = tmp_path / "data"
    with site(pages) as web:
        seeds = write_lines(tmp_path / "seeds.txt", "http://a.test/")
        result = rove("crawl", seeds, *crawl_options(data, delay=0.01), *web.reach, "--file-types", "visit")
    assert result.returncode == 0, result.stderr
    assert set(web.pages) == {f"http://{name}" for name in pages}
    found = {page["url"].removeprefix("http://a.test/"): page for page in exported(data)}
    assert set(found) == {"", "gzip", "deflate", "br", "xhtml", "text", "endless"}
    for name in ("gzip", "deflate", "br", "xhtml", "text"):
        assert "Grüße aus dem Süden" in found[name]["text"], name
        assert found[name]["title"] == (None if name == "text" else "Straße")
        assert found[name]["truncated"] is False
    assert found["endless"]["truncated"] is True
    assert found["endless"]["bytes"] == 5 * 1024 * 1024
    assert web.sent["http://a.test/film.mp4"] < 8_000_000, "a body was read that is not wanted"
    states = states_of(data)
    assert states["http://a.test/pdf"] == ("failed", "type application/pdf")
    status = status_of(data)
    assert status["without_content_by_kind"]["page"] == {"other-type": 6} and "wrong-type" not in status["errors"]


@scenario
def no_redirect_leads_to_an_excluded_host(tmp_path: Path) -> None:
    """Neither a redirect of a page nor one of a robots.txt."""
    pages = {
        "a.test/robots.txt": Reply(status=301, headers={"Location": "http://never.test/robots.txt"}),
        "a.test/": Reply("<title>rules unknown</title>"),
        "b.test/": Reply('<a href="http://never.test/">x</a><a href="/away">y</a>'),
        "b.test/away": Reply(status=302, headers={"Location": "http://www.never.test/"}),
    }
    data = tmp_path / "data"
    with site(pages) as web:
        seeds = write_lines(tmp_path / "seeds.txt", "http://a.test/", "http://b.test/")
        exclude = write_lines(tmp_path / "exclude.txt", "never.test")
        options = [*crawl_options(data, delay=0.01), *web.reach, "--exclude", exclude]
        result = rove("crawl", seeds, *options)
    assert result.returncode == 0, result.stderr
    assert {asked.host for asked in web.requests} == {"a.test", "b.test"}
    assert set(web.pages) == {"http://b.test/", "http://b.test/away"}


@scenario
def a_concurrency_that_does_not_fit_is_lowered(tmp_path: Path) -> None:
    limited = (
        "import os, resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (100, 200));"
        "os.execv(sys.executable, [sys.executable, '-m', 'rove', *sys.argv[1:]])"
    )
    hosts = [f"http://host{i}.test/" for i in range(300)]
    with site(lambda host, path: Reply(status=404)) as web:
        seeds = write_lines(tmp_path / "seeds.txt", *hosts)
        options = crawl_options(tmp_path / "data", delay=0.01, concurrency=400)
        command = [sys.executable, "-c", limited, "crawl", seeds, *options, *web.reach]
        words = list(map(str, command))
        result = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert result.returncode == 3, result.stderr
    assert "No page could be stored (status-404 300)." in result.stderr
    assert re.search(r"only 200 files .*--concurrency .* from 400 to \d+\b", result.stderr)
    assert sorted(web.pages) == sorted(hosts), "a fetch failed for want of files"
    assert not set(status_of(tmp_path / "data")["errors"]) - {"status-404"}


@scenario
def a_page_that_fails_for_a_while_is_tried_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    counts: dict[str, int] = {}

    def answer(host: str, path: str) -> Reply:
        counts[host + path] = counts.get(host + path, 0) + 1
        if path == "/robots.txt":
            return Reply(status=404)
        if host == "down.test" or counts[host + path] < 3:
            return Reply("not now", status=503)
        return Reply("<title>at last</title>")

    with site(answer) as web:
        seeds = write_lines(tmp_path / "seeds.txt", "http://down.test/", "http://up.test/")
        result = rove("crawl", seeds, *crawl_options(data, delay=0.01), *web.reach)
    assert result.returncode == 0, result.stderr
    assert counts == {
        "down.test/robots.txt": 1,
        "down.test/": 4,
        "up.test/robots.txt": 1,
        "up.test/": 3,
    }
    assert states_of(data) == {
        "http://down.test/": ("failed", "status 503"),
        "http://up.test/": ("done", ""),
    }
    result = rove("pages", "--data-dir", data, "--status", 503, "--json")
    assert len([json.loads(line) for line in result.stdout.splitlines()]) == 6


@contextlib.contextmanager
def name_server() -> Iterator[str]:
    """Run a name server that resolves every name to loopback, and yield its address."""
    loopback = b"\xc0\x0c\0\1\0\1\0\0\1\0\0\4\x7f\0\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.bind(("127.0.0.1", 0))

        def answer() -> None:
            while True:
                query, peer = here.recvfrom(512)
                if not query:
                    return
                question = query[12 : query.index(b"\0", 12) + 5]
                head = query[:2] + b"\x81\x80\0\1\0\1\0\0\0\0"
                here.sendto(head + question + loopback, peer)

        thread = threading.Thread(target=answer)
        thread.start()
        host, port = here.getsockname()
        try:
            yield f"{host}:{port}"
        finally:
            here.sendto(b"", (host, port))
            thread.join()


@scenario
def a_doubtful_certificate_is_marked_or_refused(tmp_path: Path) -> None:
    """The address comes from the given name server, and the port from the seed."""
    file = write_lines(tmp_path / "server.pem", certificates.SELF_SIGNED)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(file)
    lax, strict = tmp_path / "lax", tmp_path / "strict"
    with blocking_server(tls) as server, name_server() as names:
        url = f"https://page.test:{server.port}/"
        seeds = write_lines(tmp_path / "seeds.txt", url)
        options = ["--dns-server", names, "--allow-private-addresses"]
        results = rove_each(
            [
                ["crawl", seeds, *crawl_options(lax, delay=0.01), *options],
                ["crawl", seeds, *crawl_options(strict, delay=0.01), *options, "--strict-tls"],
            ]
        )
    assert [result.returncode for result in results] == [0, 3], results
    assert status_of(lax)["marks"] == {"tls-self-signed": 2}, "robots.txt and the page"
    assert states_of(lax) == {url: ("done", "")}
    assert exported(strict) == []
    refused = frontier_rows(strict, "SELECT DISTINCT error, marks, status FROM request")
    assert refused == [("tls", "tls-self-signed", 0)]


@pytest.mark.parametrize("scenario", scenario.names)
def test_fetching(scenario: str, outcomes: Outcomes) -> None:
    outcomes[scenario].result()
