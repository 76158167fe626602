"""Answers that are too slow, endless, or grow when decompressed are ended at their limit, with a reason."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import zlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import brotli
import pytest

from rove.fetch.body import MAX_RATIO, RATIO_FREE
from rove.fetch.limits import FetchLimits
from rove.fetch.rate_guard import RateGuard
from rove.model.outcomes import Failed, FailureKind, Fetched
from tests.unit.fetch.server import Server, failure, fetching, on_loop, outcome_of, page, request_to

pytestmark = pytest.mark.system

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
LIMITS = FetchLimits(window=20.0, min_rate=256.0)
Send = Callable[[bytes], Coroutine[Any, Any, None]]


def judged(*steps: tuple[float, int]) -> FailureKind | None:
    """Return the failure of an response that reaches these sizes after these seconds."""
    guard = RateGuard(LIMITS, sent_at=99.0)
    guard.check(now=100.0, size=1, received=None)
    for seconds, size in steps:
        trouble = guard.check(now=100.0 + seconds, size=1 + size, received=None)
        if trouble is not None:
            return trouble[0]
    return None


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([(19.9, 0)], None),
        ([(20.0, 5_119)], FailureKind.TOO_SLOW),
        ([(20.0, 5_120)], None),
        ([(10.0, 5_119), (20.0, 5_119)], FailureKind.TOO_SLOW),
        ([(20.0, 1_000_000), (39.0, 1_000_000)], None),
        ([(20.0, 1_000_000), (40.0, 1_000_000)], FailureKind.TOO_SLOW),
        ([(20.0, 5_120), (40.0, 10_240), (60.0, 15_360)], None),
        ([(30.0, 5_120)], FailureKind.TOO_SLOW),
    ],
)
def test_the_rate_is_measured_over_a_window(steps: list[tuple[float, int]], expected: FailureKind | None) -> None:
    assert judged(*steps) is expected


def test_a_connection_may_not_receive_much_more_than_the_answer() -> None:
    guard = RateGuard(FetchLimits(max_overhead=500), sent_at=99.0, earlier=300)
    guard.check(now=100.0, size=1, received=None)
    for received, expected in ((2_500, None), (2_501, FailureKind.PROTOCOL)):
        trouble = guard.check(now=101.0, size=700, received=received)
        assert (trouble and trouble[0]) is expected


@contextlib.asynccontextmanager
async def dripping(script: Callable[[Send], Coroutine[Any, Any, None]]) -> AsyncIterator[Server]:
    """Run a server whose script sends until the client disconnects."""
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def send(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with contextlib.suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            await script(send)
        writer.close()

    listening = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with listening:
        yield Server(host="127.0.0.1", port=listening.sockets[0].getsockname()[1])
        if tasks:
            await asyncio.wait(tasks, timeout=5)


@pytest.mark.parametrize(
    ("start", "drop"),
    [
        pytest.param(OK + b"Content-Length: 1000000\r\n\r\n", b"x", id="body"),
        pytest.param(OK, b"X", id="one-line-of-a-head"),
        pytest.param(OK, b"X: y\r\n", id="head"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 C\r\n\r\n", id="interim"),
        pytest.param(CHUNKED, b"1\r\nx\r\n", id="chunks"),
        pytest.param(CHUNKED + b"1;", b"x" * 100, id="chunk-extension"),
    ],
)
@on_loop
async def test_a_slow_answer_is_ended(start: bytes, drop: bytes) -> None:
    async def script(send: Send) -> None:
        await send(start)
        while True:
            await send(drop)
            await asyncio.sleep(0.02)

    limits = FetchLimits(window=0.4, min_rate=10_000, total=30)
    async with dripping(script) as server, fetching(limits=limits) as fetcher:
        outcome = await fetcher.fetch(request_to(server))
    assert failure(outcome) is FailureKind.TOO_SLOW
    assert isinstance(outcome, Failed) and outcome.address == "127.0.0.1"


@on_loop
async def test_an_unfinished_first_line_does_not_count() -> None:
    async def script(send: Send) -> None:
        for letter in b"HTTP/1.1 200 " + b"O" * 1_000:
            await send(bytes([letter]))
            await asyncio.sleep(0.02)

    async with dripping(script) as server, fetching(limits=FetchLimits(first_byte=0.3)) as fetcher:
        outcome = await fetcher.fetch(request_to(server))
    assert failure(outcome) is FailureKind.TIMEOUT_FIRST_BYTE


@pytest.mark.parametrize(
    ("start", "more"),
    [
        pytest.param(CHUNKED + b"5;", b"x" * 65_536, id="endless-extension"),
        pytest.param(CHUNKED, (b"1;" + b"e" * 8_000 + b"\r\nx\r\n") * 8, id="extensions"),
    ],
)
@on_loop
async def test_an_answer_of_chunk_extensions_is_ended(start: bytes, more: bytes) -> None:
    """libcurl drops them silently, at any rate."""

    async def script(send: Send) -> None:
        await send(start)
        while True:
            await send(more)

    limits = FetchLimits(check_interval=0.1)
    async with dripping(script) as server, fetching(limits=limits) as fetcher:
        outcome = await fetcher.fetch(request_to(server))
    assert failure(outcome) is FailureKind.PROTOCOL
    assert isinstance(outcome, Failed) and "bytes were sent" in outcome.detail


BOMB = bytes(20 * RATIO_FREE)


def brotlied(data: bytes) -> bytes:
    return bytes(brotli.compress(data, quality=3))


@pytest.mark.parametrize(
    ("coding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("br", brotlied)]
)
@on_loop
async def test_a_decompression_bomb_is_cut_and_marked(coding: str, compress: Callable[[bytes], bytes]) -> None:
    wire = compress(BOMB)
    response = page(wire, b"Content-Encoding: " + coding.encode())
    outcome = await outcome_of([response], max_bytes=100 * RATIO_FREE)
    assert isinstance(outcome, Fetched)
    assert (outcome.truncated, outcome.response.marks) == (True, ("decompression-cut",))
    assert len(outcome.body) == max(RATIO_FREE, MAX_RATIO * len(wire)) < len(BOMB)


@on_loop
async def test_a_bomb_in_a_bomb_is_measured_by_its_size_on_the_wire() -> None:
    wire = gzip.compress(gzip.compress(BOMB))
    response = page(wire, b"Content-Encoding: gzip, gzip")
    outcome = await outcome_of([response], max_bytes=100 * RATIO_FREE)
    assert isinstance(outcome, Fetched)
    assert (len(outcome.body), outcome.response.marks) == (RATIO_FREE, ("decompression-cut",))


@pytest.mark.parametrize(
    ("body", "cap", "marks"),
    [
        (bytes(RATIO_FREE), 2 * RATIO_FREE, ()),
        (bytes(RATIO_FREE), RATIO_FREE - 1, ("body-cut",)),
        (bytes(RATIO_FREE + 1), 2 * RATIO_FREE, ("decompression-cut",)),
        (bytes(RATIO_FREE + 1), RATIO_FREE, ("body-cut",)),
        (bytes(3 * RATIO_FREE), 2 * RATIO_FREE, ("decompression-cut",)),
    ],
)
@on_loop
async def test_the_mark_names_the_limit_that_was_met(body: bytes, cap: int, marks: tuple[str, ...]) -> None:
    wire = gzip.compress(body)
    outcome = await outcome_of([page(wire, b"Content-Encoding: gzip")], max_bytes=cap)
    assert isinstance(outcome, Fetched) and outcome.response.marks == marks


@on_loop
async def test_a_plain_body_that_is_cut_is_marked() -> None:
    outcome = await outcome_of([page(b"hello")], max_bytes=3)
    assert isinstance(outcome, Fetched) and outcome.response.marks == ("body-cut",)
    outcome = await outcome_of([page(b"hello")], max_bytes=5)
    assert isinstance(outcome, Fetched) and outcome.response.marks == ()
