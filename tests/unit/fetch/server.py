"""A server on loopback that sends scripted bytes, and a fetcher whose names lead there."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import functools
import math
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ParamSpec

import uvloop

from rove.fetch.address import AddressGuard
from rove.fetch.connect_to import ConnectRule
from rove.fetch.contract import Request
from rove.fetch.dns import Resolver
from rove.fetch.http import CurlFetcher
from rove.fetch.limits import FetchLimits
from rove.model.outcomes import Failed, FailureKind, Outcome
from rove.urls.canonical import CrawlUrl
from tests.urls import canonical

AGENT = "rove-test/1.0 (+mailto:someone@crawler.test)"
HTML = frozenset({"text/html", "text/plain"})
P = ParamSpec("P")


def on_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test in its own event loop."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        uvloop.run(test(*args, **kwargs))

    return run


class Act(enum.Enum):
    """A step of a script other than sending bytes."""

    HOLD = "send nothing more until the client disconnects"
    RESET = "break the connection"


Step = bytes | Act
Script = Sequence[Step]


@dataclass(kw_only=True)
class Server:
    """A running server and the requests that it received."""

    host: str
    port: int
    requests: list[bytes] = field(default_factory=list)
    requested: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    """Released for each request."""
    left: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    """Released each time a client disconnects while the script holds."""

    async def wait_for_request(self) -> None:
        """Wait for one more request."""
        async with asyncio.timeout(5):
            await self.requested.acquire()

    async def wait_for_disconnect(self) -> None:
        """Wait until one more client disconnects."""
        async with asyncio.timeout(5):
            await self.left.acquire()


@contextlib.asynccontextmanager
async def serve(
    script: Script | Callable[[bytes], Script],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: ssl.SSLContext | None = None,
    silent: bool = False,
) -> AsyncIterator[Server]:
    """Answer each connection with a script, or with one made from the request; `silent` reads no request."""
    writers: set[asyncio.StreamWriter] = set()
    tasks: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = b"" if silent else await reader.readuntil(b"\r\n\r\n")
        server.requests.append(request)
        server.requested.release()
        for step in script(request) if callable(script) else script:
            if isinstance(step, bytes):
                writer.write(step)
            elif step is Act.RESET:
                await writer.drain()
                reset(writer)
                return
            else:
                with contextlib.suppress(ConnectionError):
                    while await reader.read(65_536):
                        pass
                server.left.release()
        writer.close()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await answer(reader, writer)
        tasks.discard(task)

    listening = await asyncio.start_server(handle, host, port, ssl=tls, backlog=1_024)
    server = Server(host=host, port=listening.sockets[0].getsockname()[1])
    try:
        yield server
    finally:
        listening.close()
        for _ in range(3):  # the last connections may not be in `writers` yet
            await asyncio.sleep(0)
        for writer in writers:
            writer.transport.abort()
        if tasks:
            await asyncio.wait(tasks)


@contextlib.contextmanager
def blocking_server(tls: ssl.SSLContext) -> Iterator[Server]:
    """Run a server in a thread, because asyncio closes a failed handshake without sending a TLS alert."""
    listening = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), tls.wrap_socket(connection, server_side=True) as peer:
                peer.recv(65_536)
                peer.sendall(page(b"hello"))

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield Server(host="127.0.0.1", port=listening.getsockname()[1])
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
        listening.close()


def reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection with a TCP reset."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class FakeResolver:
    """Resolves names from a table, and every other name to 127.0.0.1."""

    def __init__(self, table: Mapping[str, Sequence[str] | Failed] | None = None) -> None:
        self._table = table or {}
        self.looked_up: list[str] = []
        self.within: list[float] = []
        self.answered_from = -math.inf
        self.looked_ahead: list[str] = []

    def look_ahead(self, host: str) -> None:
        self.looked_ahead.append(host)

    def forget_failures(self) -> None:
        """Do nothing: nothing is remembered."""

    async def resolve(self, host: str, within: float) -> Sequence[str] | Failed:
        self.looked_up.append(host)
        self.within.append(within)
        return self._table.get(host, ("127.0.0.1",))

    async def close(self) -> None:
        pass


@contextlib.asynccontextmanager
async def fetching(
    *,
    resolver: Resolver | None = None,
    guard: AddressGuard | None = None,
    connect_to: Sequence[ConnectRule] = (),
    limits: FetchLimits | None = None,
    **options: Any,
) -> AsyncIterator[CurlFetcher]:
    """Make a fetcher that may connect to loopback."""
    fetcher = CurlFetcher(
        user_agent=AGENT,
        resolver=resolver or FakeResolver(),
        guard=guard or AddressGuard(allow_private=True),
        connect_to=connect_to,
        limits=limits or FetchLimits(connect=5, first_byte=5, total=10),
        **options,
    )
    try:
        yield fetcher
    finally:
        await fetcher.close()


def parsed(url: str) -> CrawlUrl:
    """Parse a URL that a test knows to be valid."""
    parsed_url = canonical(url)
    assert parsed_url is not None, url
    return parsed_url


def request_to(
    server: Server,
    path: str = "/",
    *,
    scheme: str = "http",
    max_bytes: int = 1_000_000,
    accept_types: frozenset[str] | None = HTML,
    timeout: float = 60.0,
) -> Request:
    """Make a request to a name that leads to the server."""
    return Request(
        url=parsed(f"{scheme}://page.test:{server.port}{path}"),
        max_bytes=max_bytes,
        accept_types=accept_types,
        timeout=timeout,
    )


async def outcome_of(script: Script, **options: Any) -> Outcome:
    """Make one request to a server with this script and return its outcome."""
    async with serve(script) as server, fetching() as fetcher:
        return await fetcher.fetch(request_to(server, **options))


def failure(outcome: Outcome) -> FailureKind:
    """Return the kind of a failure; fail the test for any other outcome."""
    assert isinstance(outcome, Failed), outcome
    return outcome.kind


def page(body: bytes, *headers: bytes) -> bytes:
    """Make a complete 200 response in HTML with a Content-Length."""
    lines = [b"HTTP/1.1 200 OK", b"Content-Type: text/html", *headers]
    lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
