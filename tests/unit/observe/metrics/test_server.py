"""The server of the metrics, over real sockets, with clients that are slow, greedy, many or confused."""

from __future__ import annotations

import asyncio
import logging
import resource
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus

import pytest

from rove.observe.listening import parse_listen
from rove.observe.metrics import server as server_module
from rove.observe.metrics.http import Request, Response
from rove.observe.metrics.server import PageServer, ServerLimits

pytestmark = pytest.mark.system

GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
BODY = b"the metrics"
ENDLESS = 3600.0
"""Seconds that no test waits for."""


@asynccontextmanager
async def serving(
    limits: ServerLimits | None = None, respond: Callable[[Request], Response] = lambda _: Response(HTTPStatus.OK, BODY)
) -> AsyncIterator[int]:
    """Serve on a free port of loopback; return the port."""

    async def answer(request: Request) -> Response:
        return respond(request)

    listener = parse_listen("0").listening()
    port: int = listener.getsockname()[1]
    server = asyncio.create_task(PageServer(listener, answer, limits=limits or ServerLimits(pause=0.0)).run())
    try:
        yield port
        assert not server.done(), "nothing that a client does ends the server"
    finally:
        server.cancel()
        await asyncio.wait([server])


async def exchange(port: int, sent: bytes) -> bytes:
    """Send bytes on a connection of its own; return all that comes back until the server closes it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    received = b""
    try:
        with suppress(ConnectionError):
            writer.write(sent)
            await writer.drain()
            while block := await reader.read(65_536):
                received += block
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
    return received


async def test_get_brings_the_page_and_head_its_headers() -> None:
    async with serving() as port:
        answer = await exchange(port, GET)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n") and b"\r\nContent-Length: 11" in head and body == BODY
        assert await exchange(port, GET.replace(b"GET", b"HEAD")) == head + b"\r\n\r\n"


async def test_garbage_costs_nothing_but_its_connection() -> None:
    async with serving() as port:
        for garbage in (b"\x16\x03\x01\n\n", b"\0" * 9000, b"POST / HTTP/1.1\r\n\r\n", b"\n\n", b"GET  HTTP\r\n\r\n"):
            assert (await exchange(port, garbage)).startswith((b"HTTP/1.1 4", b"")), garbage
        assert (await exchange(port, GET)).endswith(BODY)


async def test_ten_megabytes_of_header_are_not_read() -> None:
    async with serving() as port:
        await exchange(port, b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 1_700_000)
        assert (await exchange(port, GET)).endswith(BODY)


async def test_a_client_that_sends_nothing_is_closed_after_a_time() -> None:
    async with serving(ServerLimits(pause=0.0, seconds=0.05)) as port:
        assert await exchange(port, b"GET /met") == b""


async def test_a_client_that_does_not_read_is_closed_after_a_time() -> None:
    huge = Response(HTTPStatus.OK, bytes(50_000_000))
    async with serving(ServerLimits(pause=0.0, seconds=0.2), lambda _: huge) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET)
        await asyncio.sleep(0.4)
        received = 0
        with suppress(ConnectionError):
            while block := await reader.read(1_000_000):
                received += len(block)
        assert received < len(huge.body)
        writer.close()


async def test_idle_connections_do_not_lock_out_others() -> None:
    async with serving(ServerLimits(pause=0.0, connections=4, seconds=ENDLESS)) as port:
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(50)]
        for _, writer in idle:
            writer.write(b"GET / HT")
        assert (await exchange(port, GET)).endswith(BODY)
        for _, writer in idle:
            writer.close()


async def test_thousands_of_connections_leave_room_for_one_that_asks() -> None:
    async with serving() as port:
        for _ in range(10):
            idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(200)]
            assert (await exchange(port, GET)).endswith(BODY)
            for _, writer in idle:
                writer.close()


async def test_connections_are_accepted_one_after_the_other() -> None:
    async with serving(ServerLimits(pause=ENDLESS)) as port:
        assert (await exchange(port, GET)).endswith(BODY)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await exchange(port, GET)


async def test_a_page_that_cannot_be_made_is_an_error_of_the_server(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: Request) -> Response:
        raise ZeroDivisionError("a bug")

    async with serving(respond=fail) as port:
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                assert (await exchange(port, GET)).startswith(b"HTTP/1.1 500 ")
    assert [record.getMessage() for record in caplog.records] == ["could not answer a request: a bug"]


class Warned(logging.Handler):
    """Waits for a warning."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.event = asyncio.Event()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()
        self.event.set()


async def test_a_process_without_free_files_accepts_later() -> None:
    async def answer(_: Request) -> Response:
        return Response(HTTPStatus.OK, BODY)

    listener = parse_listen("0").listening()
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1])
    writer.write(GET)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (writer.get_extra_info("socket").fileno() + 1, hard))
    warned = Warned()
    logging.getLogger(server_module.__name__).addHandler(warned)
    try:
        server = asyncio.create_task(PageServer(listener, answer, limits=ServerLimits(retry=0.01)).run())
        await warned.event.wait()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        logging.getLogger(server_module.__name__).removeHandler(warned)
    assert (await reader.read(-1)).endswith(BODY)
    assert warned.text.startswith("could not accept a connection")
    writer.close()
    server.cancel()
    await asyncio.wait([server])
