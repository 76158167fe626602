"""A page uses the connection of its robots.txt, if the server leaves it open, and closes it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from rove.fetch.address import AddressGuard
from rove.fetch.contract import Request
from rove.fetch.http import CurlFetcher
from rove.fetch.limits import FetchLimits
from rove.fetch.visit_connection import VisitConnection
from rove.model.outcomes import Failed, FailureKind, Fetched, Outcome, Redirected, Refused
from tests.unit.fetch import certificates
from tests.unit.fetch.server import FakeResolver, failure, fetching, on_loop, page, parsed, reset

pytestmark = pytest.mark.system

ROBOTS, PAGE = "/robots.txt", "/page"
RULES = page(b"User-agent: *")
HELLO = page(b"hello")
BOTH = [[ROBOTS, PAGE]]
EACH = [[ROBOTS], [PAGE]]


class Cut:
    """Close the connection instead of answering."""


class Reset(Cut):
    """Reset the connection instead of answering."""


ScriptedResponse = bytes | Cut | Sequence[bytes]
"""The pieces of a list are sent half a second apart."""


@dataclass(kw_only=True)
class KeepingServer:
    """A server that responses any number of requests per connection."""

    responses: Mapping[str, ScriptedResponse]
    ends_after: str = ""
    """The server closes the connection after answering this path."""
    port: int = 0
    connections: list[list[str]] = field(default_factory=list)
    """The paths that were requested over each connection."""
    _open: set[asyncio.StreamWriter] = field(default_factory=set)
    _left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while no connection is open."""

    @property
    def open(self) -> int:
        """The number of open connections."""
        return len(self._open)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requested: list[str] = []
        self.connections.append(requested)
        self._open.add(writer)
        self._left.clear()
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._answer(reader, writer, requested):
                pass
        writer.close()
        self._open.discard(writer)
        if not self._open:
            self._left.set()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, requested: list[str]) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split()[1].decode()
        requested.append(path)
        response = self.responses[path]
        if isinstance(response, Reset):
            reset(writer)
        if isinstance(response, Cut):
            return False
        for number, piece in enumerate([response] if isinstance(response, bytes) else response):
            await asyncio.sleep(0.5 if number else 0)
            if writer.is_closing():
                return False
            writer.write(piece)
            await writer.drain()
        return path != self.ends_after

    async def wait_until_closed(self) -> None:
        """Wait until no connection is open."""
        if self._open:
            async with asyncio.timeout(5):
                await self._left.wait()

    async def stop(self) -> None:
        """Close all connections."""
        for writer in self._open:
            writer.transport.abort()
        await self.wait_until_closed()


@contextlib.asynccontextmanager
async def serving(
    robots: ScriptedResponse = RULES,
    page: ScriptedResponse = HELLO,
    *,
    tls: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    ends_after: str = "",
    more: Mapping[str, ScriptedResponse] | None = None,
) -> AsyncIterator[KeepingServer]:
    responses = {ROBOTS: robots, PAGE: page, **(more or {})}
    server = KeepingServer(responses=responses, ends_after=ends_after)
    listening = await asyncio.start_server(server, host, port, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        await server.stop()


class Visitor:
    """Makes requests as a visit does."""

    def __init__(self, fetcher: CurlFetcher, server: KeepingServer, scheme: str = "http") -> None:
        self.connection = VisitConnection()
        self._fetcher = fetcher
        self._server = server
        self._scheme = scheme

    async def robots(self, path: str = ROBOTS, *, host: str = "page.test", **changes: int) -> Outcome:
        request = self.request(path, host)
        return await self._fetcher.fetch(replace(request, keep_open=True, **changes))

    async def page(self, path: str = PAGE, *, host: str = "page.test") -> Outcome:
        return await self._fetcher.fetch(self.request(path, host))

    def request(self, path: str, host: str = "page.test") -> Request:
        url = f"{self._scheme}://{host}:{self._server.port}{path}"
        return Request(url=parsed(url), max_bytes=100_000, timeout=20.0, connection=self.connection)


def body(outcome: Outcome) -> bytes:
    assert isinstance(outcome, Fetched), outcome
    return outcome.body


def status(outcome: Outcome) -> int:
    assert isinstance(outcome, Refused | Redirected), outcome
    return outcome.response.status


def refusal(code: int, body: bytes = b"", *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 %d No" % code, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@on_loop
async def test_a_page_uses_the_connection_of_its_robots_txt() -> None:
    async with serving() as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        assert body(await visit.robots()) == b"User-agent: *"
        assert server.open == 1
        assert body(await visit.page()) == b"hello"
        await server.wait_until_closed()
        assert visit.connection.idle is None
    assert server.connections == BOTH


@on_loop
async def test_every_visit_has_a_connection_of_its_own() -> None:
    async with serving() as server, fetching() as fetcher:
        first, second = Visitor(fetcher, server), Visitor(fetcher, server)
        for visit in (first, second):
            await visit.robots()
        for visit in (first, second):
            assert body(await visit.page()) == b"hello"
        stranger = Visitor(fetcher, server)
        assert body(await stranger.page()) == b"hello"
        await server.wait_until_closed()
    assert server.connections == [*BOTH, *BOTH, [PAGE]]


@on_loop
async def test_a_page_does_not_leave_its_connection_open() -> None:
    async with serving() as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        await visit.page()
        assert visit.connection.idle is None
        await server.wait_until_closed()
        await visit.page()
    assert server.connections == [[PAGE], [PAGE]]


@on_loop
async def test_a_visit_closes_its_connection_at_its_end() -> None:
    async with serving() as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        await visit.robots()
        visit.connection.close()
        await server.wait_until_closed()
        visit.connection.close()
        await visit.page()
    assert server.connections == EACH


@on_loop
async def test_an_idle_connection_closes_after_a_while() -> None:
    limits = FetchLimits(keep_open=0.05)
    async with serving() as server, fetching(limits=limits) as fetcher:
        visit = Visitor(fetcher, server)
        await visit.robots()
        await server.wait_until_closed()
        assert body(await visit.page()) == b"hello"
        visit.connection.close()
    assert server.connections == EACH


@on_loop
async def test_closing_the_fetcher_closes_idle_connections() -> None:
    async with serving() as server:
        async with fetching() as fetcher:
            visit = Visitor(fetcher, server)
            await visit.robots()
        await server.wait_until_closed()
        assert failure(await visit.page()) is FailureKind.ABORTED
        visit.connection.close()


@on_loop
async def test_cancelling_closes_the_connection() -> None:
    async with serving(page=[b"HTTP/1.1 200 OK\r\n", HELLO, HELLO]) as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        await visit.robots()
        requester = asyncio.create_task(visit.page())
        await asyncio.sleep(0.1)
        requester.cancel()
        await server.wait_until_closed()
        assert visit.connection.idle is None
    assert server.connections == BOTH


@pytest.mark.parametrize(
    "robots",
    [
        pytest.param(page(b"rules", b"Connection: close"), id="the server says so"),
        pytest.param(RULES.replace(b"1.1", b"1.0"), id="HTTP/1.0"),
        pytest.param(refusal(404, b"", b"Connection: close"), id="a refusal that says so"),
        pytest.param(refusal(404, bytes(70_000)), id="a long refusal"),
        pytest.param(refusal(404).replace(b"Content-Length: 0\r\n", b""), id="without an end"),
        pytest.param(refusal(429, b"no"), id="too many"),
        pytest.param(refusal(503, b"no"), id="in trouble"),
        pytest.param(refusal(302, b"", b"Location: /elsewhere"), id="a redirect"),
    ],
)
@on_loop
async def test_answers_that_close_their_connection(robots: bytes) -> None:
    async with serving(robots, ends_after=ROBOTS) as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        outcome = await visit.robots()
        assert not isinstance(outcome, Failed), outcome
        assert visit.connection.idle is None
        assert body(await visit.page()) == b"hello"
    assert server.connections == EACH


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-A\r\n\r\n5\r\nrules\r\n0\r\nX-A: b\r\n\r\n"


@pytest.mark.parametrize(
    "robots",
    [
        pytest.param(CHUNKED, id="chunks and a trailer"),
        pytest.param(page(b"rules", b"Connection: keep-alive").replace(b"1.1", b"1.0"), id="HTTP/1.0"),
        pytest.param(page(b""), id="empty"),
        pytest.param(refusal(404), id="not there"),
        pytest.param(refusal(404, b"<p>not there"), id="not there, at length"),
        pytest.param(CHUNKED.replace(b"200 OK", b"404 No"), id="not there, in chunks"),
        pytest.param(refusal(401, b"who?"), id="not allowed"),
        pytest.param(b"HTTP/1.1 304 Same\r\nETag: x\r\n\r\n", id="not changed"),
        pytest.param(b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + RULES, id="after an interim head"),
    ],
)  # fmt: skip
@on_loop
async def test_answers_that_leave_their_connection_open(robots: bytes) -> None:
    async with serving(robots) as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        outcome = await visit.robots()
        assert not isinstance(outcome, Failed), outcome
        assert body(await visit.page()) == b"hello"
        await server.wait_until_closed()
    assert server.connections == BOTH


@on_loop
async def test_a_cut_body_closes_its_connection() -> None:
    async with serving(page(bytes(50_000))) as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        outcome = await visit.robots(max_bytes=1_000)
        assert isinstance(outcome, Fetched) and outcome.truncated
        assert visit.connection.idle is None
        assert body(await visit.page()) == b"hello"
    assert server.connections == EACH


@on_loop
async def test_a_slow_refusal_is_not_waited_for() -> None:
    """The status is known, but the body comes byte by byte, so the fetcher closes the connection after a second."""
    slow = [refusal(404, bytes(5)), *[b"x"] * 20]
    slow[0] = slow[0][:-5]
    async with serving(slow) as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        async with asyncio.timeout(3):
            assert status(await visit.robots()) == 404
        assert visit.connection.idle is None
        assert body(await visit.page()) == b"hello"
    assert server.connections == EACH


@on_loop
async def test_a_refusal_that_breaks_off_is_still_a_refusal() -> None:
    short = refusal(404, bytes(100))[:-50]
    async with serving(short, ends_after=ROBOTS) as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        assert status(await visit.robots()) == 404
        assert body(await visit.page()) == b"hello"
    assert server.connections == EACH


@on_loop
async def test_another_origin_has_another_connection() -> None:
    async with serving() as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        await visit.robots()
        assert body(await visit.page(host="other.test")) == b"hello"
        assert visit.connection.idle is None
        await server.wait_until_closed()
    assert server.connections == EACH


@on_loop
async def test_a_robots_txt_that_leads_to_its_own_origin() -> None:
    robots = refusal(301, b"over there", b"Location: /rules")
    async with serving(robots, more={"/rules": RULES}) as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        assert isinstance(await visit.robots(), Redirected)
        assert body(await visit.robots("/rules")) == b"User-agent: *"
        assert body(await visit.page()) == b"hello"
        await server.wait_until_closed()
    assert server.connections == [[ROBOTS], ["/rules", PAGE]]


# Every request is reported


@pytest.mark.parametrize("response", [Cut(), Reset()], ids=["ended", "reset"])
@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
@on_loop
async def test_a_request_is_never_repeated_silently(tmp_path: Path, response: Cut, secure: bool) -> None:
    """libcurl repeats a request by itself if a reused connection ends without a response."""
    tls = context(tmp_path, certificates.GOOD) if secure else None
    async with serving(page=response, tls=tls) as server, fetching() as fetcher:
        visit = Visitor(fetcher, server, "https" if secure else "http")
        await visit.robots()
        outcome = await visit.page()
        assert isinstance(outcome, Failed)
        assert (outcome.kind, outcome.address) == (FailureKind.RESET, "127.0.0.1")
        server.responses = {PAGE: HELLO}
        assert body(await visit.page()) == b"hello"
        await server.wait_until_closed()
    requested = [path for paths in server.connections for path in paths]
    assert requested == [ROBOTS, PAGE, PAGE], "one request for each outcome"


MORE_THAN_ANNOUNCED = [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", b"rules, and more\r\n"]
"""As if Content-Length counted characters and the text had more bytes."""


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
@on_loop
async def test_more_than_was_announced_does_not_spoil_the_next_answer(tmp_path: Path, secure: bool) -> None:
    """With TLS, the rest may be decrypted and invisible. Then the request fails and is worth another try."""
    tls = context(tmp_path, certificates.GOOD) if secure else None
    async with serving(MORE_THAN_ANNOUNCED, tls=tls) as server, fetching() as fetcher:
        visit = Visitor(fetcher, server, "https" if secure else "http")
        assert body(await visit.robots()) == b"rules"
        outcome = await visit.page()
        if isinstance(outcome, Failed):
            assert outcome.kind is FailureKind.RESET, outcome
            outcome = await visit.page()
        assert body(outcome) == b"hello"


@on_loop
async def test_malformed_http_over_a_new_connection_stays_a_protocol_error() -> None:
    async with serving(RULES, b"hello\r\n\r\n") as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        assert failure(await visit.page()) is FailureKind.PROTOCOL


@on_loop
async def test_a_connection_that_has_ended_is_not_used() -> None:
    async with serving(ends_after=ROBOTS) as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        await visit.robots()
        await server.wait_until_closed()
        await asyncio.sleep(0.05)
        assert body(await visit.page()) == b"hello"
    assert server.connections == EACH


# Addresses


class Changing(FakeResolver):
    """Returns other addresses each time."""

    def __init__(self, *addresses: Sequence[str]) -> None:
        super().__init__()
        self._addresses = list(addresses)

    def forget_failures(self) -> None:
        """Do nothing: nothing is remembered."""

    async def resolve(self, host: str, within: float) -> Sequence[str] | Failed:
        return self._addresses.pop(0)


class Guard(AddressGuard):
    """Forbids one loopback address and permits the others."""

    def permits(self, address: str) -> bool:
        return address != "127.0.0.3"


@on_loop
async def test_a_name_that_changes_its_address_is_fetched_from_the_new_one() -> None:
    resolver = Changing(["127.0.0.1"], ["127.0.0.2"])
    async with (
        serving() as old,
        serving(host="127.0.0.2", port=old.port) as new,
        fetching(resolver=resolver) as fetcher,
    ):
        visit = Visitor(fetcher, old)
        await visit.robots()
        outcome = await visit.page()
        assert isinstance(outcome, Fetched) and outcome.response.address == "127.0.0.2"
        await old.wait_until_closed()
    assert (old.connections, new.connections) == ([[ROBOTS]], [[PAGE]])


@on_loop
async def test_a_name_that_changes_to_a_forbidden_address_is_refused() -> None:
    resolver = Changing(["127.0.0.1"], ["127.0.0.3"])
    async with (
        serving() as server,
        serving(host="127.0.0.3", port=server.port) as inside,
        fetching(resolver=resolver, guard=Guard()) as fetcher,
    ):
        visit = Visitor(fetcher, server)
        await visit.robots()
        assert failure(await visit.page()) is FailureKind.ADDRESS_REFUSED
        visit.connection.close()
        await server.wait_until_closed()
    assert (server.connections, inside.connections) == ([[ROBOTS]], [])


@on_loop
async def test_the_connection_is_used_if_its_address_is_among_the_new_ones() -> None:
    resolver = Changing(["127.0.0.1"], ["127.0.0.2", "127.0.0.1"])
    async with serving() as server, fetching(resolver=resolver) as fetcher:
        visit = Visitor(fetcher, server)
        await visit.robots()
        assert body(await visit.page()) == b"hello"
    assert server.connections == BOTH


# TLS


def context(folder: Path, certificate: str) -> ssl.SSLContext:
    file = folder / "server.pem"
    file.write_text(certificate)
    tls_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls_context.load_cert_chain(file)
    return tls_context


@contextlib.asynccontextmanager
async def secured(
    folder: Path, certificate: str, *, strict: bool = False
) -> AsyncIterator[tuple[KeepingServer, Callable[[], Visitor]]]:
    authorities = folder / "authorities.pem"
    authorities.write_text(certificates.AUTHORITY)
    async with (
        serving(tls=context(folder, certificate)) as server,
        fetching(authorities=authorities, strict_tls=strict) as fetcher,
    ):
        yield server, lambda: Visitor(fetcher, server, "https")


@pytest.mark.parametrize("strict", [False, True])
@on_loop
async def test_one_handshake_serves_robots_txt_and_page_of_an_unknown_site(tmp_path: Path, strict: bool) -> None:
    """The robots.txt is fetched strictly. The site is known by then, so a new connection for the page would not be."""
    async with secured(tmp_path, certificates.GOOD, strict=strict) as (server, visitor):
        for _ in range(2):
            visit = visitor()
            await visit.robots()
            outcome = await visit.page()
            assert isinstance(outcome, Fetched) and outcome.response.marks == ()
        await server.wait_until_closed()
    assert server.connections == [*BOTH, *BOTH]


@on_loop
async def test_a_doubtful_site_is_marked_over_one_connection_too(tmp_path: Path) -> None:
    async with secured(tmp_path, certificates.EXPIRED) as (server, visitor):
        for _ in range(2):
            visit = visitor()
            for outcome in (await visit.robots(), await visit.page()):
                assert isinstance(outcome, Fetched)
                assert outcome.response.marks == ("tls-expired",)
    assert [paths for paths in server.connections if paths] == [*BOTH, *BOTH]


@on_loop
async def test_https_does_not_use_a_connection_of_http() -> None:
    async with serving() as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        await visit.robots()
        secure = replace(visit.request(PAGE), url=parsed(f"https://page.test:{server.port}{PAGE}"), timeout=2.0)
        assert isinstance(await fetcher.fetch(secure), Failed)
        assert visit.connection.idle is None
    assert server.connections[0] == [ROBOTS]


# Limits count for each request


@on_loop
async def test_the_first_byte_timeout_starts_with_each_request() -> None:
    limits = FetchLimits(connect=5, first_byte=0.3, total=10)
    slow = [b"", b"", HELLO]
    async with serving(page=slow) as server, fetching(limits=limits) as fetcher:
        visit = Visitor(fetcher, server)
        await visit.robots()
        assert failure(await visit.page()) is FailureKind.TIMEOUT_FIRST_BYTE
        await server.wait_until_closed()
    assert server.connections == BOTH


@on_loop
async def test_earlier_answers_do_not_count_as_overhead() -> None:
    limits = FetchLimits(window=0.4, min_rate=0, max_overhead=2_000)
    slow = [HELLO[:-4], *(HELLO[at : at + 1] for at in range(-4, -1)), HELLO[-1:]]
    async with serving(page(bytes(90_000)), slow) as server, fetching(limits=limits) as fetcher:
        visit = Visitor(fetcher, server)
        await visit.robots()
        assert body(await visit.page()) == b"hello"
    assert server.connections == BOTH
