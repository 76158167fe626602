"""The limit on connections to one address: by itself, and as the fetcher keeps it."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest

from rove.fetch.address import AddressGuard
from rove.fetch.contract import Request
from rove.fetch.http import CurlFetcher
from rove.fetch.limits import FetchLimits
from rove.fetch.per_address import PerAddress
from rove.model.outcomes import (
    Failed,
    FailureKind,
    Fetched,
    Outcome,
)
from tests.unit.fetch.server import AGENT, FakeResolver, failure, on_loop, page

pytestmark = pytest.mark.system

LONG = 60.0


async def turns(count: int = 5) -> None:
    """Let every task that can go on do so."""
    for _ in range(count):
        await asyncio.sleep(0)


def taking(places: PerAddress, *addresses: str, within: float = LONG) -> asyncio.Task[str | None]:
    return asyncio.create_task(places.take(addresses, within))


@on_loop
async def test_places_are_given_up_to_the_limit() -> None:
    places = PerAddress(2)
    assert [await places.take(["a"], LONG) for _ in range(2)] == ["a", "a"]
    assert await places.take(["a"], 0) is None
    assert await places.take(["a"], -1) is None
    assert await places.take(["b"], LONG) == "b"
    places.give_back("a")
    assert await places.take(["a"], 0) == "a"
    for address in "aab":
        places.give_back(address)
    assert len(places) == 0


@on_loop
async def test_who_came_first_is_served_first() -> None:
    places = PerAddress(1)
    await places.take(["a"], LONG)
    tasks = [taking(places, "a") for _ in range(4)]
    for number in range(4):
        await turns()
        assert [task.done() for task in tasks] == [True] * number + [False] * (4 - number)
        places.give_back("a")
    await turns()
    assert all(task.done() for task in tasks)
    places.give_back("a")
    assert len(places) == 0


@on_loop
async def test_a_newcomer_does_not_overtake_those_who_wait() -> None:
    places = PerAddress(1)
    await places.take(["a"], LONG)
    waiting = taking(places, "a")
    await turns()
    places.give_back("a")
    assert await places.take(["a"], 0) is None, "the place is given already"
    assert await waiting == "a"
    places.give_back("a")
    assert len(places) == 0


@on_loop
async def test_an_address_that_is_free_is_preferred() -> None:
    places = PerAddress(1)
    assert await places.take(["a", "b", "c"], LONG) == "a"
    assert await places.take(["a", "b", "c"], LONG) == "b"
    assert await places.take(["a", "b", "c"], LONG) == "c"
    waiting = taking(places, "a", "b", "c")
    other = taking(places, "b")
    await turns()
    places.give_back("b")
    assert await waiting == "b"
    places.give_back("b")
    assert await other == "b"
    for address in "abc":
        places.give_back(address)
    assert len(places) == 0


@on_loop
async def test_one_who_waited_for_several_has_one() -> None:
    """Both become free before anybody could go on."""
    places = PerAddress(1)
    for address in "ab":
        await places.take([address], LONG)
    both, only_b = taking(places, "a", "b"), taking(places, "b")
    await turns()
    places.give_back("a")
    places.give_back("b")
    assert (await both, await only_b) == ("a", "b")
    for address in "ab":
        places.give_back(address)
    assert len(places) == 0


@on_loop
async def test_the_same_address_twice_is_one() -> None:
    places = PerAddress(1)
    assert await places.take(["a", "a"], LONG) == "a"
    waiting = taking(places, "a", "a")
    await turns()
    places.give_back("a")
    assert await waiting == "a"
    places.give_back("a")
    assert len(places) == 0


@on_loop
async def test_one_who_is_cancelled_leaves_no_trace() -> None:
    places = PerAddress(1)
    for address in "ab":
        await places.take([address], LONG)
    first, second, third = (taking(places, "a", "b") for _ in range(3))
    await turns()
    first.cancel()
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    with pytest.raises(asyncio.CancelledError):
        await second
    places.give_back("b")
    assert await third == "b"
    for address in "ab":
        places.give_back(address)
    assert len(places) == 0


@on_loop
async def test_one_who_is_cancelled_with_the_place_in_hand_passes_it_on() -> None:
    places = PerAddress(1)
    await places.take(["a"], LONG)
    first, second = taking(places, "a"), taking(places, "a")
    await turns()
    places.give_back("a")
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert await second == "a"
    places.give_back("a")
    assert len(places) == 0


@on_loop
async def test_one_whose_time_is_up_leaves_no_trace() -> None:
    places = PerAddress(1)
    await places.take(["a"], LONG)
    assert await asyncio.gather(*(places.take(["a", "a"], 0.01) for _ in range(5))) == [None] * 5
    places.give_back("a")
    assert len(places) == 0


@on_loop
async def test_the_limit_holds_whatever_happens() -> None:
    chance = random.Random(7)
    places = PerAddress(3)
    taken = dict.fromkeys("abcd", 0)
    most = 0

    async def use() -> None:
        nonlocal most
        addresses = chance.sample("abcd", chance.randint(1, 3))
        address = await places.take(addresses, chance.choice([0.0, 0.001, LONG]))
        if address is None:
            return
        assert address in addresses
        taken[address] += 1
        most = max(most, *taken.values())
        try:
            await turns(chance.randint(0, 5))
        finally:
            taken[address] -= 1
            places.give_back(address)

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
    assert len(places) == 0


# In the fetcher


@dataclass(kw_only=True)
class Counting:
    """A server that answers when it is told to, and counts the connections before their answer."""

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
                # No longer counted once the client can know that it has its answer.
                self.open, counted = self.open - 1, False
                writer.write(page(b"hello"))
            told.cancel()
            await left
        finally:
            self.open -= counted
            writer.close()

    async def has(self, connections: int) -> None:
        """Wait for so many more requests."""
        async with asyncio.timeout(5):
            for _ in range(connections):
                await self.came.acquire()

    def answer(self, connections: int) -> None:
        """Let so many have their answer."""
        for _ in range(connections):
            self.go.release()


@contextlib.asynccontextmanager
async def counting(*hosts: str) -> AsyncIterator[Counting]:
    """One server at several addresses, on the same port."""
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


def ask(
    server: Counting, path: str = "/", host: str = "page.test", timeout: float = 60.0
) -> Request:
    url = f"http://{host}:{server.port}{path}"
    return Request(url=url, max_bytes=1_000, timeout=timeout)


def fetching(fetcher: CurlFetcher, request: Request) -> asyncio.Task[Outcome]:
    return asyncio.create_task(fetcher.fetch(request))


@pytest.mark.parametrize(("limit", "most"), [(1, 1), (3, 3), (None, 12)])
@on_loop
async def test_no_more_connections_than_allowed_are_open(limit: int | None, most: int) -> None:
    """Under three names that lead to one address."""
    async with counting() as server, limited(limit) as fetcher:
        tasks = [fetching(fetcher, ask(server, f"/{n}", host)) for n in range(4) for host in "abc"]
        for _ in range(0, 12, most):
            await server.has(most)
            assert fetcher.in_flight == sum(not task.done() for task in tasks)
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
        tasks = [fetching(fetcher, ask(server)) for _ in range(2)]
        await server.has(2)
        server.answer(2)
        outcomes = await asyncio.gather(*tasks)
    assert [found.response.address for found in outcomes if isinstance(found, Fetched)] == [
        *addresses
    ]


@on_loop
async def test_a_place_is_given_back_before_the_next_address_is_tried() -> None:
    """Nobody listens at the first address."""
    addresses = ("127.0.0.2", "127.0.0.1")
    async with counting("127.0.0.1") as server, limited(1, addresses) as fetcher:
        for _ in range(3):
            server.answer(1)
            found = await fetcher.fetch(ask(server))
            assert isinstance(found, Fetched) and found.response.address == "127.0.0.1"
        assert fetcher._places is not None and len(fetcher._places) == 0


@on_loop
async def test_waiting_takes_from_the_time_of_the_request() -> None:
    addresses = ("127.0.0.2", "127.0.0.1")
    async with counting("127.0.0.1") as server, limited(1) as fetcher:
        first = fetching(fetcher, ask(server))
        await server.has(1)
        found = await fetcher.fetch(ask(server, timeout=0.05))
        assert failure(found) is FailureKind.BUSY
        assert isinstance(found, Failed)
        assert "127.0.0.1 stayed busy" in found.detail
        assert found.address == "", "it was not asked"
        server.answer(1)
        assert isinstance(await first, Fetched)
        assert fetcher._places is not None and len(fetcher._places) == 0
    async with counting("127.0.0.1") as server, limited(1, addresses) as fetcher:
        first = fetching(fetcher, ask(server, host="127.0.0.1"))
        await server.has(1)
        found = await fetcher.fetch(ask(server, timeout=0.05))
        assert isinstance(found, Failed) and found.address == "127.0.0.2", "the one that refused"
        server.answer(1)
        assert isinstance(await first, Fetched)
    assert server.most == 1


@on_loop
async def test_waiting_does_not_take_from_the_time_to_connect() -> None:
    async with counting() as server, limited(1, limits=FetchLimits(connect=0.5)) as fetcher:
        first = fetching(fetcher, ask(server))
        await server.has(1)
        second = fetching(fetcher, ask(server))
        await asyncio.sleep(0.6)
        server.answer(2)
        assert isinstance(await first, Fetched)
        assert isinstance(await second, Fetched)


@on_loop
async def test_the_place_of_a_request_that_is_cancelled_is_free() -> None:
    async with counting() as server, limited(1) as fetcher:
        first, second, third = (fetching(fetcher, ask(server, f"/{n}")) for n in range(3))
        await server.has(1)
        second.cancel()
        first.cancel()
        await server.has(1)
        server.answer(1)
        assert isinstance(await third, Fetched)
        assert first.cancelled() and second.cancelled()
        assert server.served == ["/0", "/2"]
        assert fetcher._places is not None and len(fetcher._places) == 0


@on_loop
async def test_closing_ends_those_who_wait_too() -> None:
    async with counting() as server, limited(1) as fetcher:
        tasks = [fetching(fetcher, ask(server)) for _ in range(5)]
        await server.has(1)
        await fetcher.close()
        async with asyncio.timeout(5):
            outcomes = await asyncio.gather(*tasks)
    assert {failure(outcome) for outcome in outcomes} == {FailureKind.ABORTED}
    assert len(server.served) == 1
