"""The web of the benchmarks: cheap pages, TLS, latency, links to few hosts, several processes on one port."""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pytest
import uvloop
from benchmarks.plain_web import BENCH, PlainWeb
from benchmarks.secured import Secured, server_context
from benchmarks.web import WebPlan, served

from rove.demo.log import read_log
from rove.demo.profile import adjusted
from rove.demo.server import SmallWebServer
from rove.errors import UsageError
from tests.oracle import all_hosts, expected_pages
from tests.unit.demo.test_oracle import crawl
from tests.unit.fetch.test_transport import CERTIFICATE

pytestmark = pytest.mark.system

SMALL = replace(BENCH, pages_per_host=(50, 50), page_bytes=(240_000, 240_000))


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    file = tmp_path / "server.pem"
    file.write_text(CERTIFICATE)
    return file


def secured(certificate: Path) -> Callable[[asyncio.Protocol], asyncio.Protocol]:
    return partial(Secured, context=server_context(certificate))


def client_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_pages_are_served_over_tls_and_logged(run: object, tmp_path: Path, certificate: Path) -> None:
    log = tmp_path / "log"

    async def story() -> None:
        web = PlainWeb(1, 5, replace(SMALL, secure=True))
        host = web.host_name(0)
        async with SmallWebServer(web, log=log, secured=secured(certificate)) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=client_context())
            # Two TLS records in one segment.
            writer.write(b"GET / HTTP/1.1\r\n")
            writer.write(f"Host: {host}\r\nConnection: close\r\n\r\n".encode())
            received = await reader.read()
            writer.close()
            assert received.partition(b"\r\n\r\n")[2] == web.respond(host, "/").body
            assert b'href="https://' in received and b'href="http://' not in received

    run(story())  # type: ignore[operator]
    (request,) = read_log(log)
    assert (request.path, request.status, request.complete) == ("/", 200, True)


def test_bytes_that_are_not_tls_close_the_connection(certificate: Path) -> None:
    async def story() -> None:
        async with SmallWebServer(PlainWeb(1, 5, SMALL), secured=secured(certificate)) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: plain.test\r\n\r\n")
            assert b"HTTP" not in await reader.read()
            writer.close()

    asyncio.run(story())


def test_responses_have_the_latency_of_the_profile() -> None:
    async def story() -> None:
        web = PlainWeb(1, 5, replace(SMALL, latency=(0.1, 0.2)))
        host = web.host_name(0)
        async with SmallWebServer(web) as server:
            for path in ("/", "/robots.txt"):
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                before = time.monotonic()
                head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
                writer.write(head.encode())
                assert b"200 OK" in await reader.read()
                assert time.monotonic() - before >= web.latency(host, path) >= 0.1
                writer.close()

    asyncio.run(story())


def test_all_links_may_lead_to_few_hosts() -> None:
    web = PlainWeb(1, 50, replace(SMALL, linked_hosts=3))
    few = {web.host_name(index) for index in range(3)}
    all_links: set[tuple[str, str]] = set()
    for index in (0, 10, 49):
        body = web.respond(web.host_name(index), "/").body.decode()
        links = re.findall(r'href="http://([^/"]+)(/[^"]*)"', body)
        assert len(links) == body.count("<a ") == 60
        all_links.update(links)
    assert {host for host, _ in all_links} == few
    assert all(web.respond(host, path).status == 200 for host, path in list(all_links)[:5])


@pytest.mark.parametrize("links", [1, 60])
def test_every_page_of_a_plain_web_can_be_reached(links: int) -> None:
    small = replace(BENCH, pages_per_host=(70, 90), page_bytes=(9, 9), links_per_page=(links, links))
    web = PlainWeb(1, 5, small)
    expected = {url for host in all_hosts(web) for url in expected_pages(web, host)}
    stored, _ = crawl(web)
    assert stored == expected
    assert 5 * 70 <= len(stored) <= 5 * 90


def test_plain_pages_are_large_and_distinct() -> None:
    web = PlainWeb(1, 1_000, BENCH)
    pages = [web.respond(web.host_name(index), path) for index in range(20) for path in ("/", "/page-199")]
    assert all(response.status == 200 and response.headers == _PLAIN for response in pages)
    assert all(response.body.count(b"<a href=") == 60 for response in pages)
    assert all(40_000 * 0.95 < len(response.body) < 40_000 * 1.1 for response in pages)
    assert len({response.body for response in pages}) == len(pages)
    assert web.respond(web.host_name(0), "/page-200").status == 404


_PLAIN = (("Content-Type", "text/html; charset=utf-8"),)


@pytest.mark.parametrize("links", [0, 1, 2, 500])
def test_plain_pages_of_tiny_hosts(links: int) -> None:
    web = PlainWeb(1, 3, replace(BENCH, pages_per_host=(1, 3), links_per_page=(links, links)))
    for host in all_hosts(web):
        assert web.respond(host, "/").status == 200


def test_secure_is_true_or_false() -> None:
    assert adjusted(BENCH, ["secure=true"]) == replace(BENCH, secure=True)
    with pytest.raises(UsageError, match="secure=1"):
        adjusted(BENCH, ["secure=1"])


def test_all_processes_end_with_the_first_one(tmp_path: Path) -> None:
    with served(WebPlan(hosts=20, processes=3), tmp_path) as web:
        children = psutil.Process(web.process).children()
        assert len(children) == 2
        psutil.Process(web.process).kill()
        _, left_behind = psutil.wait_procs(children, timeout=20)
        assert not left_behind


def test_all_processes_log_their_requests(tmp_path: Path) -> None:
    async def ask(port: int, host: str, number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /none-{number} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        assert b"404" in await reader.readline()
        writer.close()

    async def story(port: int, host: str) -> None:
        await asyncio.gather(*(ask(port, host, number) for number in range(20)))

    with served(WebPlan(hosts=20, processes=2), tmp_path) as web:
        asyncio.run(story(web.port, web.plan.web.host_name(7)))
        web.stop()
        assert {request.path for request in web.requests()} == {f"/none-{number}" for number in range(20)}
