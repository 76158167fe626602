"""A page goes over the connection of its robots.txt, where the server leaves it open; after it nothing is."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from rove.fetch import idle_connection as kept
from rove.fetch import rate_guard as flow
from rove.fetch.address import AddressGuard
from rove.fetch.contract import Request
from rove.fetch.http import CurlFetcher
from rove.fetch.limits import FetchLimits
from rove.fetch.visit_connection import VisitConnection
from rove.model.outcomes import (
    Failed,
    FailureKind,
    Fetched,
    Outcome,
    Redirected,
    Refused,
)
from tests.unit.fetch import certificates
from tests.unit.fetch.server import FakeResolver, failure, fetching, on_loop, page, reset

pytestmark = pytest.mark.system

ROBOTS, PAGE = "/robots.txt", "/page"
RULES = page(b"User-agent: *")
HELLO = page(b"hello")
BOTH = [[ROBOTS, PAGE]]
EACH = [[ROBOTS], [PAGE]]


class Cut:
    """Instead of an answer: the connection ends."""


class Reset(Cut):
    """It breaks."""


Answer = bytes | Cut | Sequence[bytes]
"""A list is sent piece by piece, half a second apart."""


@dataclass(kw_only=True)
class KeepingServer:
    """Answers one request after the other over each connection."""

    answers: Mapping[str, Answer]
    ends_after: str = ""
    """The path after whose answer the connection ends."""
    port: int = 0
    connections: list[list[str]] = field(default_factory=list)
    """The paths that each was asked for."""
    _open: set[asyncio.StreamWriter] = field(default_factory=set)
    _left: asyncio.Event = field(default_factory=asyncio.Event)
    """No connection is open."""

    @property
    def open(self) -> int:
        """How many connections are."""
        return len(self._open)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked: list[str] = []
        self.connections.append(asked)
        self._open.add(writer)
        self._left.clear()
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._answer(reader, writer, asked):
                pass
        writer.close()
        self._open.discard(writer)
        if not self._open:
            self._left.set()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: list[str]
    ) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split()[1].decode()
        asked.append(path)
        answer = self.answers[path]
        if isinstance(answer, Reset):
            reset(writer)
        if isinstance(answer, Cut):
            return False
        for number, piece in enumerate([answer] if isinstance(answer, bytes) else answer):
            await asyncio.sleep(0.5 if number else 0)
            if writer.is_closing():
                return False
            writer.write(piece)
            await writer.drain()
        return path != self.ends_after

    async def is_left(self) -> None:
        """Wait until no connection is open."""
        if self._open:
            async with asyncio.timeout(5):
                await self._left.wait()

    async def stop(self) -> None:
        """End everything."""
        for writer in self._open:
            writer.transport.abort()
        await self.is_left()


@contextlib.asynccontextmanager
async def serving(
    robots: Answer = RULES,
    page: Answer = HELLO,
    *,
    tls: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    ends_after: str = "",
    more: Mapping[str, Answer] | None = None,
) -> AsyncIterator[KeepingServer]:
    answers = {ROBOTS: robots, PAGE: page, **(more or {})}
    server = KeepingServer(answers=answers, ends_after=ends_after)
    listening = await asyncio.start_server(server, host, port, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        await server.stop()


class Visitor:
    """Asks as a visit does."""

    def __init__(self, fetcher: CurlFetcher, server: KeepingServer, scheme: str = "http") -> None:
        self.line = VisitConnection()
        self._fetcher = fetcher
        self._server = server
        self._scheme = scheme

    async def robots(
        self, path: str = ROBOTS, *, host: str = "page.test", **changes: int
    ) -> Outcome:
        request = self.request(path, host)
        return await self._fetcher.fetch(replace(request, more_follows=True, **changes))

    async def page(self, path: str = PAGE, *, host: str = "page.test") -> Outcome:
        return await self._fetcher.fetch(self.request(path, host))

    def request(self, path: str, host: str = "page.test") -> Request:
        url = f"{self._scheme}://{host}:{self._server.port}{path}"
        return Request(url=url, max_bytes=100_000, timeout=20.0, line=self.line)


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
async def test_a_page_goes_over_the_connection_of_its_robots_txt() -> None:
    async with serving() as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        assert body(await visit.robots()) == b"User-agent: *"
        assert server.open == 1
        assert body(await visit.page()) == b"hello"
        await server.is_left()
        assert visit.line.kept is None
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
        await server.is_left()
    assert server.connections == [*BOTH, *BOTH, [PAGE]]


@on_loop
async def test_what_is_not_asked_for_is_not_left_open() -> None:
    async with serving() as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        await visit.page()
        assert visit.line.kept is None
        await server.is_left()
        await visit.page()
    assert server.connections == [[PAGE], [PAGE]]


@on_loop
async def test_a_visit_leaves_nothing_open_at_its_end() -> None:
    async with serving() as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        await visit.robots()
        visit.line.close()
        await server.is_left()
        visit.line.close()
        await visit.page()
    assert server.connections == EACH


@on_loop
async def test_nothing_waits_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "KEPT_SECONDS", 0.05)
    async with serving() as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        await visit.robots()
        await server.is_left()
        assert body(await visit.page()) == b"hello"
        visit.line.close()
    assert server.connections == EACH


@on_loop
async def test_a_fetcher_that_is_closed_leaves_nothing_open() -> None:
    async with serving() as server:
        async with fetching() as fetcher:
            visit = Visitor(fetcher, server)
            await visit.robots()
        await server.is_left()
        assert failure(await visit.page()) is FailureKind.ABORTED
        visit.line.close()


@on_loop
async def test_cancelling_closes_the_connection() -> None:
    async with (
        serving(page=[b"HTTP/1.1 200 OK\r\n", HELLO, HELLO]) as server,
        fetching() as fetcher,
    ):
        visit = Visitor(fetcher, server)
        await visit.robots()
        requester = asyncio.create_task(visit.page())
        await asyncio.sleep(0.1)
        requester.cancel()
        await server.is_left()
        assert visit.line.kept is None
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
async def test_not_every_answer_leaves_its_connection_open(robots: bytes) -> None:
    async with serving(robots, ends_after=ROBOTS) as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        found = await visit.robots()
        assert not isinstance(found, Failed), found
        assert visit.line.kept is None
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
        found = await visit.robots()
        assert not isinstance(found, Failed), found
        assert body(await visit.page()) == b"hello"
        await server.is_left()
    assert server.connections == BOTH


@on_loop
async def test_a_body_that_was_cut_leaves_nothing_open() -> None:
    async with serving(page(bytes(50_000))) as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        found = await visit.robots(max_bytes=1_000)
        assert isinstance(found, Fetched) and found.truncated
        assert visit.line.kept is None
        assert body(await visit.page()) == b"hello"
    assert server.connections == EACH


@on_loop
async def test_a_refusal_is_not_waited_for() -> None:
    """Its body comes a byte at a time: what it says is known, and the connection is given up after a second."""
    slow = [refusal(404, bytes(5)), *[b"x"] * 20]
    slow[0] = slow[0][:-5]
    async with serving(slow) as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        async with asyncio.timeout(3):
            assert status(await visit.robots()) == 404
        assert visit.line.kept is None
        assert body(await visit.page()) == b"hello"
    assert server.connections == EACH


@on_loop
async def test_a_refusal_that_breaks_off_is_one() -> None:
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
        assert visit.line.kept is None
        await server.is_left()
    assert server.connections == EACH


@on_loop
async def test_a_robots_txt_that_leads_to_its_own_origin() -> None:
    robots = refusal(301, b"over there", b"Location: /rules")
    async with serving(robots, more={"/rules": RULES}) as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        assert isinstance(await visit.robots(), Redirected)
        assert body(await visit.robots("/rules")) == b"User-agent: *"
        assert body(await visit.page()) == b"hello"
        await server.is_left()
    assert server.connections == [[ROBOTS], ["/rules", PAGE]]


# What the web saw is what is told


@pytest.mark.parametrize("answer", [Cut(), Reset()], ids=["ended", "reset"])
@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
@on_loop
async def test_a_request_is_never_repeated_in_silence(
    tmp_path: Path, answer: Cut, secure: bool
) -> None:
    """libcurl asks once more where a connection that it had before ends without an answer."""
    tls = context(tmp_path, certificates.GOOD) if secure else None
    async with serving(page=answer, tls=tls) as server, fetching() as fetcher:
        visit = Visitor(fetcher, server, "https" if secure else "http")
        await visit.robots()
        found = await visit.page()
        assert isinstance(found, Failed)
        assert (found.kind, found.address) == (FailureKind.RESET, "127.0.0.1")
        server.answers = {PAGE: HELLO}
        assert body(await visit.page()) == b"hello"
        await server.is_left()
    asked = [path for paths in server.connections for path in paths]
    assert asked == [ROBOTS, PAGE, PAGE], "one request for each that was told of"


MORE_THAN_ANNOUNCED = [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", b"rules, and more\r\n"]
"""Content-Length counts characters, say, and the text has more bytes."""


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
@on_loop
async def test_more_than_was_announced_does_not_spoil_the_next_answer(
    tmp_path: Path, secure: bool
) -> None:
    """With TLS, the rest may have been received and lie where nobody sees it: the page is tried again."""
    tls = context(tmp_path, certificates.GOOD) if secure else None
    async with serving(MORE_THAN_ANNOUNCED, tls=tls) as server, fetching() as fetcher:
        visit = Visitor(fetcher, server, "https" if secure else "http")
        assert body(await visit.robots()) == b"rules"
        found = await visit.page()
        if isinstance(found, Failed):
            assert found.kind is FailureKind.RESET, found
            found = await visit.page()
        assert body(found) == b"hello"


@on_loop
async def test_what_is_no_http_over_a_connection_of_its_own_stays_so() -> None:
    async with serving(RULES, b"hello\r\n\r\n") as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        assert failure(await visit.page()) is FailureKind.PROTOCOL


@on_loop
async def test_a_connection_that_has_ended_meanwhile_is_not_used() -> None:
    async with serving(ends_after=ROBOTS) as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        await visit.robots()
        await server.is_left()
        await asyncio.sleep(0.05)
        assert body(await visit.page()) == b"hello"
    assert server.connections == EACH


# Addresses


class Changing(FakeResolver):
    """Gives one answer after the other."""

    def __init__(self, *answers: Sequence[str]) -> None:
        super().__init__()
        self._answers = list(answers)

    async def resolve(self, host: str, within: float) -> Sequence[str] | Failed:
        return self._answers.pop(0)


class Guard(AddressGuard):
    """One address of loopback is inside, the others are public."""

    def permits(self, address: str) -> bool:
        return address != "127.0.0.3"


@on_loop
async def test_a_name_that_changes_its_address_is_asked_at_the_new_one() -> None:
    resolver = Changing(["127.0.0.1"], ["127.0.0.2"])
    async with (
        serving() as old,
        serving(host="127.0.0.2", port=old.port) as new,
        fetching(resolver=resolver) as fetcher,
    ):
        visit = Visitor(fetcher, old)
        await visit.robots()
        found = await visit.page()
        assert isinstance(found, Fetched) and found.response.address == "127.0.0.2"
        await old.is_left()
    assert (old.connections, new.connections) == ([[ROBOTS]], [[PAGE]])


@on_loop
async def test_a_name_that_turns_to_a_forbidden_address_is_refused() -> None:
    resolver = Changing(["127.0.0.1"], ["127.0.0.3"])
    async with (
        serving() as server,
        serving(host="127.0.0.3", port=server.port) as inside,
        fetching(resolver=resolver, guard=Guard()) as fetcher,
    ):
        visit = Visitor(fetcher, server)
        await visit.robots()
        assert failure(await visit.page()) is FailureKind.ADDRESS_REFUSED
        visit.line.close()
        await server.is_left()
    assert (server.connections, inside.connections) == ([[ROBOTS]], [])


@on_loop
async def test_an_address_among_others_is_stayed_with() -> None:
    resolver = Changing(["127.0.0.1"], ["127.0.0.2", "127.0.0.1"])
    async with serving() as server, fetching(resolver=resolver) as fetcher:
        visit = Visitor(fetcher, server)
        await visit.robots()
        assert body(await visit.page()) == b"hello"
    assert server.connections == BOTH


@on_loop
async def test_what_is_left_open_counts_at_its_address() -> None:
    async with serving() as server, fetching(per_address=1) as fetcher:
        first, second = Visitor(fetcher, server), Visitor(fetcher, server)
        await first.robots()
        waiting = asyncio.create_task(second.page())
        await asyncio.sleep(0.1)
        assert server.connections == [[ROBOTS]], "there is no place for another one"
        assert body(await first.page()) == b"hello"
        assert body(await waiting) == b"hello"
        await first.robots()
        waiting = asyncio.create_task(second.page())
        await asyncio.sleep(0.1)
        first.line.close()
        assert body(await waiting) == b"hello"
    assert server.connections == [[ROBOTS, PAGE], [PAGE], [ROBOTS], [PAGE]]


@on_loop
async def test_another_address_does_not_wait_for_what_the_visit_itself_has_open() -> None:
    async with serving() as server, fetching(per_address=1) as fetcher:
        visit = Visitor(fetcher, server)
        await visit.robots()
        async with asyncio.timeout(2):
            assert body(await visit.robots(host="other.test")) == b"User-agent: *"
            assert body(await visit.page()) == b"hello"
    assert server.connections == [[ROBOTS], [ROBOTS], [PAGE]]


# TLS


def context(folder: Path, certificate: str) -> ssl.SSLContext:
    file = folder / "server.pem"
    file.write_text(certificate)
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    found.load_cert_chain(file)
    return found


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
async def test_one_handshake_serves_a_site_that_was_not_known(tmp_path: Path, strict: bool) -> None:
    """The robots.txt is asked for strictly; the page of a site that is known by then would not be."""
    async with secured(tmp_path, certificates.GOOD, strict=strict) as (server, visitor):
        for _ in range(2):
            visit = visitor()
            await visit.robots()
            found = await visit.page()
            assert isinstance(found, Fetched) and found.response.marks == ()
        await server.is_left()
    assert server.connections == [*BOTH, *BOTH]


@on_loop
async def test_a_doubtful_site_is_marked_over_one_connection_too(tmp_path: Path) -> None:
    async with secured(tmp_path, certificates.EXPIRED) as (server, visitor):
        for _ in range(2):
            visit = visitor()
            for found in (await visit.robots(), await visit.page()):
                assert isinstance(found, Fetched)
                assert found.response.marks == ("tls-expired",)
    assert [paths for paths in server.connections if paths] == [*BOTH, *BOTH]


@on_loop
async def test_https_does_not_use_a_connection_of_http() -> None:
    async with serving() as server, fetching() as fetcher:
        visit = Visitor(fetcher, server)
        await visit.robots()
        secure = replace(
            visit.request(PAGE), url=f"https://page.test:{server.port}{PAGE}", timeout=2.0
        )
        assert isinstance(await fetcher.fetch(secure), Failed)
        assert visit.line.kept is None
    assert server.connections[0] == [ROBOTS]


# Times and bytes are those of the request


@on_loop
async def test_the_first_byte_is_waited_for_anew() -> None:
    limits = FetchLimits(connect=5, first_byte=0.3, total=10)
    slow = [b"", b"", HELLO]
    async with serving(page=slow) as server, fetching(limits=limits) as fetcher:
        visit = Visitor(fetcher, server)
        await visit.robots()
        assert failure(await visit.page()) is FailureKind.TIMEOUT_FIRST_BYTE
        await server.is_left()
    assert server.connections == BOTH


@on_loop
async def test_what_came_before_is_not_held_against_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flow, "MAX_OVERHEAD", 2_000)
    limits = FetchLimits(connect=5, first_byte=5, total=10, window=0.4, least_rate=0)
    slow = [HELLO[:-4], *(HELLO[at : at + 1] for at in range(-4, -1)), HELLO[-1:]]
    async with serving(page(bytes(90_000)), slow) as server, fetching(limits=limits) as fetcher:
        visit = Visitor(fetcher, server)
        await visit.robots()
        assert body(await visit.page()) == b"hello"
    assert server.connections == BOTH
