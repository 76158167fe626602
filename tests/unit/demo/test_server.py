"""The small web over real sockets, and its log."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest
import uvloop

from rove.demo.log import LoggedRequest, LogKind, read_log
from rove.demo.profile import CALM, EntryKind, Profile, RobotsKind, SiteShape
from rove.demo.server import SmallWebServer
from rove.demo.web import SmallWeb

pytestmark = pytest.mark.system

TIDY = replace(
    CALM,
    entries={EntryKind.PAGE: 1},
    robots={RobotsKind.PRIVATE: 1},
    shapes={SiteShape.BARE: 1},
    encoded=0.0,
    chunked=0.0,
)
TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + b"\x00" * 60


class Client:
    """One connection, used with raw bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, server: SmallWebServer) -> Client:
        return cls(*await asyncio.open_connection("127.0.0.1", server.port))

    def ask(self, host: str, path: str, *headers: str, line: str = "GET {} HTTP/1.1") -> None:
        lines = [line.format(path), f"Host: {host}", "User-Agent: tester/1", *headers]
        self.writer.write("\r\n".join([*lines, "", ""]).encode())

    async def head(self) -> tuple[int, dict[str, str]]:
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = [line.partition(": ") for line in lines[1:] if line]
        return int(lines[0].split(" ")[1]), {name.lower(): value for name, _, value in fields}

    async def body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return await self.reader.readexactly(int(headers["content-length"]))
        parts = []
        while size := int(await self.reader.readline(), 16):
            parts.append(await self.reader.readexactly(size))
            assert await self.reader.readexactly(2) == b"\r\n"
        assert await self.reader.readexactly(2) == b"\r\n"
        return b"".join(parts)

    async def response(self) -> tuple[int, dict[str, str], bytes]:
        status, headers = await self.head()
        return status, headers, await self.body(headers)

    async def rest(self) -> bytes:
        """Read until the server closes the connection."""
        return await self.reader.read()

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


class Departures(set[object]):
    """The connections of a server, with an event for the end of one."""

    @classmethod
    def watched(cls, server: SmallWebServer) -> asyncio.Event:
        watch = cls(server.connections)
        watch.left = asyncio.Event()
        server.connections = watch  # type: ignore[assignment]
        return watch.left

    left: asyncio.Event

    def discard(self, connection: object) -> None:
        super().discard(connection)
        self.left.set()


Story = Callable[[SmallWebServer], Awaitable[None]]


class Teller(Protocol):
    """Runs a story against a server and returns the log."""

    def __call__(self, story: Story, log: Path, profile: Profile = ...) -> list[LoggedRequest]: ...


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def told(request: pytest.FixtureRequest) -> Teller:
    def tell(story: Story, log: Path, profile: Profile = TIDY) -> list[LoggedRequest]:
        async def run() -> None:
            async with SmallWebServer(SmallWeb(1, 5, profile), log=log) as server:
                await story(server)

        request.param(run())
        return read_log(log)

    return tell


def test_requests_of_one_connection_are_answered_and_logged_in_turn(told: Teller, tmp_path: Path) -> None:
    before = time.monotonic()

    async def story(server: SmallWebServer) -> None:
        client = await Client.connect(server)
        host = server.web.host_name(0)
        for path in ["/robots.txt", "/", "/none"]:
            client.ask(host, path)
            status, headers, body = await client.response()
            expected = server.web.respond(host, path)
            assert (status, body) == (expected.status, expected.body)
            assert headers["connection"] == "keep-alive"
            assert ("content-type", headers["content-type"]) in {
                (name.lower(), value) for name, value in expected.headers
            }
        await client.close()

    log = told(story, tmp_path / "log")
    assert [(r.path, r.status, r.complete) for r in log] == [
        ("/robots.txt", 200, True),
        ("/", 200, True),
        ("/none", 404, True),
    ]
    assert [r.connected for r in log] == [True, False, False], "the first made the connection"
    assert {r.host for r in log} == {SmallWeb(1, 5, TIDY).host_name(0)}
    assert {r.agent for r in log} == {"tester/1"}
    times = [moment for r in log for moment in (r.start, r.end)]
    assert times == sorted(times)
    assert before <= times[0]
    assert times[-1] <= time.monotonic()
    assert all(r.size > 0 for r in log)


def test_the_connection_is_closed_if_the_client_asks_for_it(told: Teller, tmp_path: Path) -> None:
    async def story(server: SmallWebServer) -> None:
        host = server.web.host_name(0)
        for line, header in [
            ("GET {} HTTP/1.1", "Connection: close"),
            ("GET {} HTTP/1.1", "connection: Close"),
            ("GET {} HTTP/1.0", "X: y"),
        ]:
            client = await Client.connect(server)
            client.ask(host, "/", header, line=line)
            status, headers, _ = await client.response()
            assert (status, headers["connection"]) == (200, "close")
            assert await client.rest() == b""
            await client.close()

    assert len(told(story, tmp_path / "log")) == 3


def test_requests_sent_at_once_are_answered_in_turn(told: Teller, tmp_path: Path) -> None:
    async def story(server: SmallWebServer) -> None:
        client = await Client.connect(server)
        for number in range(1_500):
            client.ask(server.web.host_name(0), f"/none-{number}")
        for _ in range(1_500):
            assert (await client.response())[0] == 404
        await client.close()

    paths = [request.path for request in told(story, tmp_path / "log")]
    assert paths == [f"/none-{number}" for number in range(1_500)]


def test_a_request_in_pieces_starts_with_the_first_piece(told: Teller, tmp_path: Path) -> None:
    moments: list[float] = []

    async def story(server: SmallWebServer) -> None:
        client = await Client.connect(server)
        request = f"GET / HTTP/1.1\r\nHost: {server.web.host_name(0)}\r\n\r\n".encode()
        client.writer.write(request[:20])
        # The response on another connection proves that the first piece has been read.
        other = await Client.connect(server)
        other.ask("nobody.test", "/first")
        await other.response()
        await other.close()
        moments.append(time.monotonic())
        client.writer.write(request[20:])
        assert (await client.response())[0] == 200
        await client.close()

    (request,) = [r for r in told(story, tmp_path / "log") if r.path == "/"]
    assert request.start < moments[0] < request.end


def test_chunked_responses(told: Teller, tmp_path: Path) -> None:
    chunked = replace(TIDY, chunked=1.0, page_bytes=(3_000, 3_000))

    async def story(server: SmallWebServer) -> None:
        host = server.web.host_name(0)
        client = await Client.connect(server)
        client.ask(host, "/")
        _, headers, body = await client.response()
        assert headers["transfer-encoding"] == "chunked"
        assert "content-length" not in headers
        assert body == server.web.respond(host, "/").body
        client.ask(host, "/", line="GET {} HTTP/1.0")
        _, headers, body = await client.response()
        assert "transfer-encoding" not in headers
        assert body == server.web.respond(host, "/").body
        await client.close()

    told(story, tmp_path / "log", chunked)


def test_the_host_header_selects_the_host_in_any_spelling(told: Teller, tmp_path: Path) -> None:
    async def story(server: SmallWebServer) -> None:
        host = server.web.host_name(1)
        client = await Client.connect(server)
        for spelling in [host.upper(), f"{host}:8080", host + "."]:
            client.ask(spelling, "/")
            assert (await client.response())[2] == server.web.respond(host, "/").body
        client.ask("unknown.test", "/")
        assert (await client.response())[0] == 404
        await client.close()

    hosts = [request.host for request in told(story, tmp_path / "log")]
    assert hosts == [SmallWeb(1, 5, TIDY).host_name(1)] * 3 + ["unknown.test"]


def test_other_methods_are_refused(told: Teller, tmp_path: Path) -> None:
    async def story(server: SmallWebServer) -> None:
        host = server.web.host_name(0)
        client = await Client.connect(server)
        client.ask(host, "/", line="HEAD {} HTTP/1.1")
        status, headers = await client.head()
        assert (status, headers["content-length"]) == (200, str(len(server.web.respond(host, "/").body)))
        client.ask(host, "/", line="POST {} HTTP/1.1")
        assert (await client.response())[0] == 405
        assert await client.rest() == b""
        await client.close()

    assert [r.status for r in told(story, tmp_path / "log")] == [200, 405]


@pytest.mark.parametrize(
    "garbage",
    [TLS_HELLO, b"\x00", b"hello\r\n\r\n", b"GET nowhere HTTP/1.1\r\n\r\n", b"A" * 70_000],
    ids=["tls", "zero", "words", "no path", "endless"],
)
def test_bytes_that_are_not_http_close_the_connection_and_are_logged(
    told: Teller, garbage: bytes, tmp_path: Path
) -> None:
    async def story(server: SmallWebServer) -> None:
        client = await Client.connect(server)
        client.writer.write(garbage)
        with contextlib.suppress(ConnectionResetError):  # if some of it was not read
            assert await client.rest() == b""
        client.writer.close()

    (entry,) = told(story, tmp_path / "log")
    assert entry.kind is LogKind.NOT_HTTP
    assert (entry.host, entry.path, entry.status) == ("", "", 0)


def test_a_flaky_page_fails_once(told: Teller, tmp_path: Path) -> None:
    flaky = replace(TIDY, entries={EntryKind.FLAKY: 1}, restricted=0.0)

    async def story(server: SmallWebServer) -> None:
        host = server.web.plan.bare_host(0)
        path = server.web.plan.entry(host, 1).path
        client = await Client.connect(server)
        statuses = []
        for _ in range(3):
            client.ask(host.name, path)
            statuses.append((await client.response())[0])
        assert statuses == [503, 200, 200]
        await client.close()

    assert [r.status for r in told(story, tmp_path / "log", flaky)] == [503, 200, 200]


def test_a_cut_page_is_logged_as_incomplete(told: Teller, tmp_path: Path) -> None:
    cut = replace(TIDY, entries={EntryKind.CUT: 1}, restricted=0.0)

    async def story(server: SmallWebServer) -> None:
        host = server.web.plan.bare_host(0)
        client = await Client.connect(server)
        client.ask(host.name, server.web.plan.entry(host, 1).path)
        _, headers = await client.head()
        assert len(await client.rest()) == int(headers["content-length"]) // 2
        await client.close()

    (entry,) = told(story, tmp_path / "log", cut)
    assert (entry.status, entry.complete) == (200, False)


def test_a_slow_response_ends_when_it_is_sent(told: Teller, tmp_path: Path) -> None:
    slow = replace(TIDY, entries={EntryKind.SLOW: 1}, restricted=0.0, slow_seconds=(0.05, 0.05))

    async def story(server: SmallWebServer) -> None:
        host = server.web.plan.bare_host(0)
        client = await Client.connect(server)
        client.ask(host.name, server.web.plan.entry(host, 1).path)
        assert (await client.response())[0] == 200
        await client.close()

    (entry,) = told(story, tmp_path / "log", slow)
    assert entry.end - entry.start >= 0.05


@pytest.mark.parametrize("leaves", [True, False], ids=["client leaves", "server stops"])
def test_a_request_that_the_client_gave_up_is_incomplete(told: Teller, leaves: bool, tmp_path: Path) -> None:
    stalled = replace(TIDY, entries={EntryKind.STALLED: 1}, restricted=0.0)

    async def story(server: SmallWebServer) -> None:
        host = server.web.plan.bare_host(0)
        client = await Client.connect(server)
        client.ask(host.name, server.web.plan.entry(host, 1).path)
        other = await Client.connect(server)
        other.ask(host.name, "/")
        await other.response()
        await other.close()
        if leaves:
            gone = Departures.watched(server)
            await client.close()
            await gone.wait()
        else:
            await server.close()
            await client.close()

    log = told(story, tmp_path / "log", stalled)
    (entry,) = [r for r in log if r.path != "/"]
    assert (entry.status, entry.size, entry.complete) == (0, 0, False)


def test_a_large_response_ends_when_the_kernel_has_taken_it(told: Teller, tmp_path: Path) -> None:
    large = replace(TIDY, page_bytes=(20_000_000, 20_000_000))
    moments: list[float] = []

    async def story(server: SmallWebServer) -> None:
        client = await Client.connect(server)
        client.ask(server.web.host_name(0), "/", "Connection: close")
        _, headers = await client.head()
        moments.append(time.monotonic())
        assert len(await client.body(headers)) == int(headers["content-length"])
        await client.close()
        other = await Client.connect(server)
        other.ask(server.web.host_name(0), "/")
        await other.head()
        gone = Departures.watched(server)
        other.writer.transport.abort()
        await gone.wait()

    whole, given_up = told(story, tmp_path / "log", large)
    assert whole.complete
    assert whole.end > moments[0]
    assert not given_up.complete


def test_without_a_log_nothing_is_written(tmp_path: Path) -> None:
    async def run() -> None:
        async with SmallWebServer(SmallWeb(1, 5, TIDY)) as server:
            client = await Client.connect(server)
            client.ask(server.web.host_name(0), "/")
            assert (await client.response())[0] == 200
            await client.close()
            garbage = await Client.connect(server)
            garbage.writer.write(TLS_HELLO)
            assert await garbage.rest() == b""
            await garbage.close()

    asyncio.run(run())
