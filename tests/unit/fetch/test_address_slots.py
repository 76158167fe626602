"""The limit on connections to one address, alone and in the fetcher."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest

from rove.fetch.address import AddressGuard
from rove.fetch.address_slots import AddressSlots
from rove.fetch.contract import Request
from rove.fetch.http import CurlFetcher
from rove.fetch.limits import FetchLimits
from rove.model.outcomes import Failed, FailureKind, Fetched, Outcome
from tests.unit.fetch.server import AGENT, FakeResolver, failure, on_loop, page, parsed

pytestmark = pytest.mark.system

LONG = 60.0


async def turns(count: int = 5) -> None:
    """Let every task run that can."""
    for _ in range(count):
        await asyncio.sleep(0)


def taking(slots: AddressSlots, *addresses: str, within: float = LONG) -> asyncio.Task[str | None]:
    return asyncio.create_task(slots.acquire(addresses, within))


@on_loop
async def test_slots_are_handed_out_up_to_the_limit() -> None:
    slots = AddressSlots(2)
    assert [await slots.acquire(["a"], LONG) for _ in range(2)] == ["a", "a"]
    assert await slots.acquire(["a"], 0) is None
    assert await slots.acquire(["a"], -1) is None
    assert await slots.acquire(["b"], LONG) == "b"
    slots.release("a")
    assert await slots.acquire(["a"], 0) == "a"
    for address in "aab":
        slots.release(address)
    assert len(slots) == 0


@on_loop
async def test_the_first_waiter_is_served_first() -> None:
    slots = AddressSlots(1)
    await slots.acquire(["a"], LONG)
    tasks = [taking(slots, "a") for _ in range(4)]
    for number in range(4):
        await turns()
        assert [task.done() for task in tasks] == [True] * number + [False] * (4 - number)
        slots.release("a")
    await turns()
    assert all(task.done() for task in tasks)
    slots.release("a")
    assert len(slots) == 0


@on_loop
async def test_a_newcomer_does_not_overtake_waiters() -> None:
    slots = AddressSlots(1)
    await slots.acquire(["a"], LONG)
    waiting = taking(slots, "a")
    await turns()
    slots.release("a")
    assert await slots.acquire(["a"], 0) is None, "the slot has gone to the waiter"
    assert await waiting == "a"
    slots.release("a")
    assert len(slots) == 0


@on_loop
async def test_a_free_address_is_preferred() -> None:
    slots = AddressSlots(1)
    assert await slots.acquire(["a", "b", "c"], LONG) == "a"
    assert await slots.acquire(["a", "b", "c"], LONG) == "b"
    assert await slots.acquire(["a", "b", "c"], LONG) == "c"
    waiting = taking(slots, "a", "b", "c")
    other = taking(slots, "b")
    await turns()
    slots.release("b")
    assert await waiting == "b"
    slots.release("b")
    assert await other == "b"
    for address in "abc":
        slots.release(address)
    assert len(slots) == 0


@on_loop
async def test_a_waiter_for_several_addresses_gets_one() -> None:
    """Both slots become free before any task runs."""
    slots = AddressSlots(1)
    for address in "ab":
        await slots.acquire([address], LONG)
    both, only_b = taking(slots, "a", "b"), taking(slots, "b")
    await turns()
    slots.release("a")
    slots.release("b")
    assert (await both, await only_b) == ("a", "b")
    for address in "ab":
        slots.release(address)
    assert len(slots) == 0


@on_loop
async def test_a_repeated_address_counts_once() -> None:
    slots = AddressSlots(1)
    assert await slots.acquire(["a", "a"], LONG) == "a"
    waiting = taking(slots, "a", "a")
    await turns()
    slots.release("a")
    assert await waiting == "a"
    slots.release("a")
    assert len(slots) == 0


@on_loop
async def test_a_cancelled_waiter_leaves_no_trace() -> None:
    slots = AddressSlots(1)
    for address in "ab":
        await slots.acquire([address], LONG)
    first, second, third = (taking(slots, "a", "b") for _ in range(3))
    await turns()
    first.cancel()
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    with pytest.raises(asyncio.CancelledError):
        await second
    slots.release("b")
    assert await third == "b"
    for address in "ab":
        slots.release(address)
    assert len(slots) == 0


@on_loop
async def test_a_waiter_that_is_cancelled_with_a_slot_passes_it_on() -> None:
    slots = AddressSlots(1)
    await slots.acquire(["a"], LONG)
    first, second = taking(slots, "a"), taking(slots, "a")
    await turns()
    slots.release("a")
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert await second == "a"
    slots.release("a")
    assert len(slots) == 0


@on_loop
async def test_a_waiter_that_times_out_leaves_no_trace() -> None:
    slots = AddressSlots(1)
    await slots.acquire(["a"], LONG)
    assert await asyncio.gather(*(slots.acquire(["a", "a"], 0.01) for _ in range(5))) == [None] * 5
    slots.release("a")
    assert len(slots) == 0


@on_loop
async def test_the_limit_holds_whatever_happens() -> None:
    chance = random.Random(7)
    slots = AddressSlots(3)
    taken = dict.fromkeys("abcd", 0)
    most = 0

    async def use() -> None:
        nonlocal most
        addresses = chance.sample("abcd", chance.randint(1, 3))
        address = await slots.acquire(addresses, chance.choice([0.0, 0.001, LONG]))
        if address is None:
            return
        assert address in addresses
        taken[address] += 1
        most = max(most, *taken.values())
        try:
            await turns(chance.randint(0, 5))
        finally:
            taken[address] -= 1
            slots.release(address)

    tasks = []
    for _ in range(2_000):
        tasks.append(asyncio.create_task(use()))
        if not chance.randrange(4):
            chance.choice(tasks).cancel()
        if not chance.randrange(10):
            await asyncio.sleep(0)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert not [task for task in tasks if not task.cancelled() and task.exception()]
    assert most == 3
    assert len(slots) == 0


# In the fetcher


@dataclass(kw_only=True)
class Counting:
    """A server that answers when it is told to, and counts the connections without an answer."""

    port: int = 0
    open: int = 0
    most: int = 0
    served: list[str] = field(default_factory=list)
    came: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    go: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        self.most = max(self.most, self.open)
        counted = True
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.served.append(head.split()[1].decode())
            self.came.release()
            left = asyncio.create_task(reader.read())
            told = asyncio.create_task(self.go.acquire())
            await asyncio.wait((left, told), return_when=asyncio.FIRST_COMPLETED)
            if told.done():
                # Count it no longer before the client can see its answer.
                self.open, counted = self.open - 1, False
                writer.write(page(b"hello"))
            told.cancel()
            await left
        finally:
            self.open -= counted
            writer.close()

    async def wait_for_requests(self, connections: int) -> None:
        """Wait for this many more requests."""
        async with asyncio.timeout(5):
            for _ in range(connections):
                await self.came.acquire()

    def answer(self, connections: int) -> None:
        """Answer this many requests."""
        for _ in range(connections):
            self.go.release()


@contextlib.asynccontextmanager
async def counting(*hosts: str) -> AsyncIterator[Counting]:
    """Run one server at several addresses, on the same port."""
    server = Counting()
    async with contextlib.AsyncExitStack() as stack:
        for host in hosts or ("127.0.0.1",):
            listening = await asyncio.start_server(server, host, server.port)
            await stack.enter_async_context(listening)
            server.port = listening.sockets[0].getsockname()[1]
        yield server


@contextlib.asynccontextmanager
async def limited(
    limit: int | None, addresses: Sequence[str] = ("127.0.0.1",), limits: FetchLimits | None = None
) -> AsyncIterator[CurlFetcher]:
    fetcher = CurlFetcher(
        user_agent=AGENT,
        resolver=FakeResolver({"page.test": addresses}),
        guard=AddressGuard(allow_private=True),
        limits=limits,
        per_address=limit,
    )
    try:
        yield fetcher
    finally:
        await fetcher.close()


def request_to(server: Counting, path: str = "/", host: str = "page.test", timeout: float = 60.0) -> Request:
    url = f"http://{host}:{server.port}{path}"
    return Request(url=parsed(url), max_bytes=1_000, timeout=timeout)


def fetching(fetcher: CurlFetcher, request: Request) -> asyncio.Task[Outcome]:
    return asyncio.create_task(fetcher.fetch(request))


@pytest.mark.parametrize(("limit", "most"), [(1, 1), (3, 3), (None, 12)])
@on_loop
async def test_no_more_connections_than_allowed_are_open(limit: int | None, most: int) -> None:
    """The requests use three names that lead to one address."""
    async with counting() as server, limited(limit) as fetcher:
        tasks = [fetching(fetcher, request_to(server, f"/{n}", host)) for n in range(4) for host in "abc"]
        for _ in range(0, 12, most):
            await server.wait_for_requests(most)
            server.answer(most)
        outcomes = await asyncio.gather(*tasks)
    assert all(isinstance(outcome, Fetched) for outcome in outcomes)
    assert server.most == most
    if limit == 1:
        assert server.served == [f"/{n}" for n in range(4) for _ in "abc"]


@on_loop
async def test_a_free_address_of_the_name_is_taken() -> None:
    addresses = ("127.0.0.1", "127.0.0.2")
    async with counting(*addresses) as server, limited(1, addresses) as fetcher:
        tasks = [fetching(fetcher, request_to(server)) for _ in range(2)]
        await server.wait_for_requests(2)
        server.answer(2)
        outcomes = await asyncio.gather(*tasks)
    assert [outcome.response.address for outcome in outcomes if isinstance(outcome, Fetched)] == [*addresses]


@on_loop
async def test_a_slot_is_released_before_the_next_address_is_tried() -> None:
    """The first address refuses connections."""
    addresses = ("127.0.0.2", "127.0.0.1")
    async with counting("127.0.0.1") as server, limited(1, addresses) as fetcher:
        for _ in range(3):
            server.answer(1)
            outcome = await fetcher.fetch(request_to(server))
            assert isinstance(outcome, Fetched) and outcome.response.address == "127.0.0.1"
        outcome = await fetcher.fetch(request_to(server, host="127.0.0.2", timeout=1.0))
        assert failure(outcome) is FailureKind.CONNECT, "its slot is free, so it is not busy"


@on_loop
async def test_waiting_counts_towards_the_timeout_of_the_request() -> None:
    addresses = ("127.0.0.2", "127.0.0.1")
    async with counting("127.0.0.1") as server, limited(1) as fetcher:
        first = fetching(fetcher, request_to(server))
        await server.wait_for_requests(1)
        outcome = await fetcher.fetch(request_to(server, timeout=0.05))
        assert failure(outcome) is FailureKind.BUSY
        assert isinstance(outcome, Failed)
        assert "127.0.0.1 stayed busy" in outcome.detail
        assert outcome.address == "", "no address was tried"
        server.answer(2)
        assert isinstance(await first, Fetched)
        assert isinstance(await fetcher.fetch(request_to(server, timeout=1.0)), Fetched)
    async with counting("127.0.0.1") as server, limited(1, addresses) as fetcher:
        first = fetching(fetcher, request_to(server, host="127.0.0.1"))
        await server.wait_for_requests(1)
        outcome = await fetcher.fetch(request_to(server, timeout=0.05))
        assert isinstance(outcome, Failed) and outcome.address == "127.0.0.2", "the one that refused"
        server.answer(1)
        assert isinstance(await first, Fetched)
    assert server.most == 1


@on_loop
async def test_waiting_does_not_count_towards_the_connect_timeout() -> None:
    async with counting() as server, limited(1, limits=FetchLimits(connect=0.5)) as fetcher:
        first = fetching(fetcher, request_to(server))
        await server.wait_for_requests(1)
        second = fetching(fetcher, request_to(server))
        await asyncio.sleep(0.6)
        server.answer(2)
        assert isinstance(await first, Fetched)
        assert isinstance(await second, Fetched)


@on_loop
async def test_a_cancelled_request_releases_its_slot() -> None:
    async with counting() as server, limited(1) as fetcher:
        first, second, third = (fetching(fetcher, request_to(server, f"/{n}")) for n in range(3))
        await server.wait_for_requests(1)
        second.cancel()
        first.cancel()
        await server.wait_for_requests(1)
        server.answer(2)
        assert isinstance(await third, Fetched)
        assert first.cancelled() and second.cancelled()
        assert isinstance(await fetcher.fetch(request_to(server, "/3", timeout=1.0)), Fetched)
    assert server.served == ["/0", "/2", "/3"]


@on_loop
async def test_closing_ends_requests_that_wait_for_a_slot() -> None:
    async with counting() as server, limited(1) as fetcher:
        tasks = [fetching(fetcher, request_to(server)) for _ in range(5)]
        await server.wait_for_requests(1)
        await fetcher.close()
        async with asyncio.timeout(5):
            outcomes = await asyncio.gather(*tasks)
    assert {failure(outcome) for outcome in outcomes} == {FailureKind.ABORTED}
    assert len(server.served) == 1
