"""Transfers pause while there is no memory for their body, until the deadline of the visit at most."""

from __future__ import annotations

import asyncio
import gzip

import pytest
from msgspec.structs import replace

from rove.fetch.limits import FetchLimits
from rove.model.outcomes import FailureKind, Fetched
from rove.resources.memory import Memory, Share
from tests.unit.fetch.server import Act, failure, fetching, on_loop, page, request_to, serve

pytestmark = pytest.mark.system

KiB = 1 << 10
BODY = bytes(range(256)) * 1_200
"""About 300 KiB."""
NOISE = b"".join(hash((i, "noise")).to_bytes(8, "big", signed=True) for i in range(40_000))


def filled(memory: Memory) -> Share:
    share = Share(memory)
    share.keep(memory.room)
    return share


async def wait_until_paused(memory: Memory) -> None:
    async with asyncio.timeout(5):
        while not memory.waiting:  # noqa: ASYNC110 - Memory has no event for this
            await asyncio.sleep(0.001)


@on_loop
async def test_a_body_waits_for_memory_and_arrives_complete() -> None:
    memory = Memory(800 * KiB)
    full = filled(memory)
    async with serve([page(BODY)]) as server, fetching() as fetcher:
        share = Share(memory)
        fetch = asyncio.create_task(fetcher.fetch(replace(request_to(server), share=share)))
        await wait_until_paused(memory)
        await asyncio.sleep(0.1)
        full.keep(0)
        outcome = await fetch
        assert isinstance(outcome, Fetched) and outcome.body == BODY
        assert outcome.response.waited > 0.09, "the event loop rounds to milliseconds"
        assert memory.used == len(BODY) - 32 * KiB and not memory.is_short
        share.keep(0)
        assert memory.used == 0


@on_loop
async def test_a_compressed_body_and_one_of_unknown_length_wait_too() -> None:
    wire = gzip.compress(NOISE)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    for response, body in [(page(wire, b"Content-Encoding: gzip"), NOISE), (head + BODY, BODY)]:
        memory = Memory(2_000 * KiB)
        full = filled(memory)
        async with serve([response]) as server, fetching() as fetcher:
            request = replace(request_to(server), share=Share(memory))
            fetch = asyncio.create_task(fetcher.fetch(request))
            await wait_until_paused(memory)
            full.keep(0)
            outcome = await fetch
            assert isinstance(outcome, Fetched) and outcome.body == body


@on_loop
async def test_a_pause_does_not_count_as_time_of_the_server() -> None:
    memory = Memory(800 * KiB)
    full = filled(memory)
    limits = FetchLimits(connect=5, first_byte=5, total=0.3)
    async with serve([page(BODY)]) as server, fetching(limits=limits) as fetcher:
        fetch = asyncio.create_task(fetcher.fetch(replace(request_to(server), share=Share(memory))))
        await wait_until_paused(memory)
        await asyncio.sleep(0.5)
        full.keep(0)
        assert isinstance(await fetch, Fetched)


@on_loop
async def test_after_a_pause_the_server_has_its_remaining_time() -> None:
    memory = Memory(800 * KiB)
    full = filled(memory)
    limits = FetchLimits(connect=5, first_byte=5, total=0.3)
    response = page(BODY)
    async with serve([response[:-100], Act.HOLD]) as server, fetching(limits=limits) as fetcher:
        fetch = asyncio.create_task(fetcher.fetch(replace(request_to(server), share=Share(memory))))
        await wait_until_paused(memory)
        full.keep(0)
        async with asyncio.timeout(5):
            assert failure(await fetch) is FailureKind.TIMEOUT_TOTAL


@on_loop
async def test_a_pause_ends_at_the_deadline_of_the_visit() -> None:
    memory = Memory(800 * KiB)
    filled(memory)
    async with serve([page(BODY)]) as server, fetching() as fetcher:
        outcome = await fetcher.fetch(replace(request_to(server, timeout=0.3), share=Share(memory)))
        assert failure(outcome) is FailureKind.BUSY
        assert not memory.waiting


@on_loop
async def test_a_handle_that_was_cancelled_in_a_pause_works_again() -> None:
    memory = Memory(800 * KiB)
    full = filled(memory)
    async with serve([page(BODY)]) as server, fetching() as fetcher:
        share = Share(memory)
        request = replace(request_to(server), share=share)
        fetch = asyncio.create_task(fetcher.fetch(request))
        await wait_until_paused(memory)
        fetch.cancel()
        await asyncio.wait([fetch])
        assert not memory.waiting
        share.keep(0)
        full.keep(0)
        outcome = await fetcher.fetch(request)
        assert isinstance(outcome, Fetched) and outcome.body == BODY


@on_loop
async def test_many_bodies_take_turns() -> None:
    memory = Memory(1_000 * KiB)
    most = 0
    async with serve([page(BODY)]) as server, fetching() as fetcher:

        async def one() -> None:
            nonlocal most
            share = Share(memory)
            outcome = await fetcher.fetch(replace(request_to(server), share=share))
            assert isinstance(outcome, Fetched) and outcome.body == BODY
            most = max(most, memory.used)
            await asyncio.sleep(0.001)
            share.keep(0)

        async with asyncio.timeout(20):
            await asyncio.gather(*(one() for _ in range(50)))
    assert most <= memory.room and memory.used == 0
