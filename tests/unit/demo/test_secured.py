"""Features for benchmarks: TLS, latency, and links to few hosts."""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from dataclasses import replace
from pathlib import Path

import pytest
import uvloop

from rove.demo.log import read_log
from rove.demo.profile import BENCH
from rove.demo.secured import server_context
from rove.demo.server import SmallWebServer
from rove.demo.web import SmallWeb
from rove.errors import UsageError
from tests.unit.fetch.test_transport import CERTIFICATE

pytestmark = pytest.mark.system

SMALL = replace(BENCH, pages_per_host=(50, 50), page_bytes=(240_000, 240_000))


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    file = tmp_path / "server.pem"
    file.write_text(CERTIFICATE)
    return file


def client_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_pages_are_served_over_tls_and_logged(run: object, tmp_path: Path, certificate: Path) -> None:
    log = tmp_path / "log"

    async def story() -> None:
        web = SmallWeb(1, 5, replace(SMALL, secure=True))
        host = web.host_name(0)
        async with SmallWebServer(web, log=log, tls=server_context(certificate)) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=client_context())
            # Two TLS records in one segment.
            writer.write(b"GET / HTTP/1.1\r\n")
            writer.write(f"Host: {host}\r\nConnection: close\r\n\r\n".encode())
            received = await reader.read()
            writer.close()
            assert received.partition(b"\r\n\r\n")[2] == web.answer(host, "/").body
            assert b'href="https://' in received and b'href="http://' not in received

    run(story())  # type: ignore[operator]
    (request,) = read_log(log)
    assert (request.path, request.status, request.complete) == ("/", 200, True)


def test_bytes_that_are_not_tls_close_the_connection(certificate: Path) -> None:
    async def story() -> None:
        tls = server_context(certificate)
        async with SmallWebServer(SmallWeb(1, 5, SMALL), tls=tls) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: plain.test\r\n\r\n")
            assert b"HTTP" not in await reader.read()
            writer.close()

    asyncio.run(story())


def test_a_certificate_without_a_key_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "nothing.pem"
    file.write_text("nothing")
    with pytest.raises(UsageError, match=r"nothing\.pem"):
        server_context(file)


def test_responses_have_the_latency_of_the_profile() -> None:
    async def story() -> None:
        web = SmallWeb(1, 5, replace(SMALL, latency=(0.1, 0.2)))
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
    web = SmallWeb(1, 50, replace(SMALL, linked_hosts=3))
    few = {web.host_name(index) for index in range(3)}
    all_links: set[tuple[str, str]] = set()
    for index in (0, 10, 49):
        body = web.answer(web.host_name(index), "/").body.decode()
        links = re.findall(r'href="http://([^/"]+)(/[^"]*)"', body)
        assert len(links) == body.count("<a ") == 60
        all_links.update(links)
    assert {host for host, _ in all_links} == few
    assert all(web.answer(host, path).status == 200 for host, path in list(all_links)[:5])
