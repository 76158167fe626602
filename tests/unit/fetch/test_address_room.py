"""The limits on visits to one address, alone and in the fetcher."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest

from rove.fetch.address import AddressGuard
from rove.fetch.address_room import LONGEST_WAIT, SHORTEST_WAIT, SMALLEST_SWEEP, AddressRoom, Room
from rove.fetch.connect_to import parse_connect_to
from rove.fetch.contract import Request
from rove.fetch.http import CurlFetcher
from rove.fetch.visit_connection import VisitConnection
from rove.model.outcomes import Failed, FailureKind, Fetched
from tests.unit.fetch.server import AGENT, FakeResolver, failure, on_loop, page, parsed

pytestmark = pytest.mark.system


class Clock:
    """A clock that the test moves."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def taken(room: AddressRoom, *addresses: str) -> Room:
    place = room.take(addresses)
    assert place is not None
    return place


def test_few_visits_are_at_an_address_at_once(clock: Clock) -> None:
    room = AddressRoom(at_once=2, clock=clock)
    first, _ = taken(room, "a"), taken(room, "a")
    assert room.take(["a"]) is None
    assert taken(room, "b").address == "b", "another address has room of its own"
    room.give_back(first)
    assert taken(room, "a").address == "a"


def test_few_visits_to_an_address_begin_in_a_second(clock: Clock) -> None:
    room = AddressRoom(at_once=None, per_second=3, clock=clock)
    for _ in range(3):
        room.give_back(taken(room, "a"))
        clock.now += 0.1
    assert room.take(["a"]) is None
    clock.now += 0.69
    assert room.take(["a"]) is None
    clock.now += 0.02
    assert room.take(["a"]) is not None, "the first one is a second ago"
    assert room.take(["a"]) is None


@pytest.mark.parametrize(("rate", "seconds"), [(0.5, 2.0), (1.5, 1 / 1.5)])
def test_a_rate_need_not_be_whole(clock: Clock, rate: float, seconds: float) -> None:
    room = AddressRoom(at_once=None, per_second=rate, clock=clock)
    taken(room, "a")
    clock.now += seconds - 0.01
    assert room.take(["a"]) is None
    clock.now += 0.02
    assert room.take(["a"]) is not None


def test_the_first_address_with_room_is_taken(clock: Clock) -> None:
    room = AddressRoom(at_once=1, clock=clock)
    assert [taken(room, "a", "b").address for _ in range(2)] == ["a", "b"]
    assert room.take(["a", "b"]) is None


def test_visits_that_find_no_room_come_back_one_after_the_other(clock: Clock) -> None:
    """Three thousand domains of one address come back at its pace, and hardly one is sent away twice."""
    room = AddressRoom(at_once=None, per_second=10, clock=clock)
    due = [clock.now] * 1_000
    visits: list[float] = []
    refused = 0
    while due:
        due.sort()
        clock.now = max(clock.now, due.pop(0))
        if room.take(["a"]) is not None:
            visits.append(clock.now)
        else:
            refused += 1
            due.append(clock.now + room.wait_for(["a"]))
    assert all(later - earlier >= 1.0 - 1e-6 for earlier, later in zip(visits, visits[10:], strict=False))
    assert visits[-1] - visits[0] == pytest.approx(100, rel=0.15)
    assert refused < 1_050


def test_the_wait_follows_from_how_long_visits_take(clock: Clock) -> None:
    room = AddressRoom(at_once=2, clock=clock)
    for _ in range(60):
        place = taken(room, "a")
        clock.now += 20
        room.give_back(place)
    for _ in range(2):
        taken(room, "a")
    waits = [room.wait_for(["a"]) for _ in range(3)]
    assert waits == pytest.approx([10, 21, 32], rel=0.02), "two visits of twenty seconds at a time"


def test_a_wait_is_neither_endless_nor_nothing(clock: Clock) -> None:
    room = AddressRoom(at_once=1, per_second=0.001, clock=clock)
    taken(room, "a")
    assert [room.wait_for(["a"]) for _ in range(9)][-1] == LONGEST_WAIT
    quick = AddressRoom(at_once=1_000, per_second=1_000, clock=clock)
    for _ in range(1_000):
        taken(quick, "a")
    clock.now += 0.9999
    assert quick.wait_for(["a"]) == pytest.approx(SHORTEST_WAIT)


def test_addresses_that_are_not_in_use_are_forgotten(clock: Clock) -> None:
    room = AddressRoom(at_once=1, per_second=1, clock=clock)
    held = taken(room, "held")
    for number in range(20 * SMALLEST_SWEEP):
        room.give_back(taken(room, f"a{number}"))
        clock.now += 0.01
    assert len(room) <= 2 * SMALLEST_SWEEP
    assert room.take(["held"]) is None
    room.give_back(held)


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
    room: AddressRoom | None, addresses: Sequence[str] = ("127.0.0.1",), connect_to: Sequence[str] = ()
) -> AsyncIterator[CurlFetcher]:
    fetcher = CurlFetcher(
        user_agent=AGENT,
        resolver=FakeResolver({"page.test": addresses, "other.test": addresses}),
        guard=AddressGuard(allow_private=True),
        connect_to=[parse_connect_to(rule) for rule in connect_to],
        room=room,
    )
    try:
        yield fetcher
    finally:
        await fetcher.close()


class Visitor:
    """A visit to a host."""

    def __init__(self, fetcher: CurlFetcher, server: Counting, host: str = "page.test") -> None:
        self.fetcher = fetcher
        self.url = parsed(f"http://{host}:{server.port}/")
        self.connection = VisitConnection()

    async def reserve(self) -> float:
        return await self.fetcher.reserve(self.url, self.connection, within=60.0)

    def request(self) -> Request:
        return Request(url=self.url, max_bytes=1_000, connection=self.connection)


@on_loop
async def test_a_visit_holds_its_room_until_it_ends() -> None:
    """Two names lead to one address, with room for one visit."""
    async with counting() as server, limited(AddressRoom(at_once=1)) as fetcher:
        first, second = Visitor(fetcher, server), Visitor(fetcher, server, "other.test")
        server.answer(3)
        assert await first.reserve() == 0.0
        assert await second.reserve() > 0.0
        assert isinstance(await fetcher.fetch(first.request()), Fetched)
        assert await second.reserve() > 0.0, "the visit goes on"
        assert await first.reserve() == 0.0, "it has room for its next request"
        assert isinstance(await fetcher.fetch(first.request()), Fetched)
        first.connection.close()
        assert await second.reserve() == 0.0
        assert isinstance(await fetcher.fetch(second.request()), Fetched)
        second.connection.close()
    assert server.served == ["/", "/", "/"]


@on_loop
async def test_the_address_with_room_is_used() -> None:
    addresses = ("127.0.0.1", "127.0.0.2")
    async with counting(*addresses) as server, limited(AddressRoom(at_once=1), addresses) as fetcher:
        visits = [Visitor(fetcher, server) for _ in range(3)]
        server.answer(2)
        assert [await visit.reserve() > 0 for visit in visits] == [False, False, True]
        outcomes = [await fetcher.fetch(visit.request()) for visit in visits[:2]]
    assert [outcome.response.address for outcome in outcomes if isinstance(outcome, Fetched)] == [*addresses]


@on_loop
async def test_an_address_that_refuses_is_followed_by_one_with_room() -> None:
    addresses = ("127.0.0.2", "127.0.0.1")
    async with counting("127.0.0.1") as server, limited(AddressRoom(at_once=1), addresses) as fetcher:
        server.answer(1)
        first, second = Visitor(fetcher, server), Visitor(fetcher, server)
        assert await first.reserve() == 0.0
        outcome = await fetcher.fetch(first.request())
        assert isinstance(outcome, Fetched) and outcome.response.address == "127.0.0.1"
        first.connection.close()
        holder = Visitor(fetcher, server, "127.0.0.1")
        assert await holder.reserve() == 0.0
        assert await second.reserve() == 0.0
        assert failure(await fetcher.fetch(second.request())) is FailureKind.CONNECT, "the other one is full"


@on_loop
async def test_addresses_that_the_user_named_are_exempt() -> None:
    async with counting() as server:
        rules = [f"*.test=127.0.0.1:{server.port}"]
        async with limited(AddressRoom(at_once=1, per_second=1), connect_to=rules) as fetcher:
            assert [await Visitor(fetcher, server).reserve() for _ in range(5)] == [0.0] * 5


@on_loop
async def test_a_name_is_looked_up_once_for_a_request() -> None:
    resolver = FakeResolver({"missing.test": Failed(kind=FailureKind.DNS_NOT_FOUND, detail="no such name")})
    async with counting() as server:
        fetcher = CurlFetcher(
            user_agent=AGENT,
            resolver=resolver,
            guard=AddressGuard(allow_private=True),
            room=AddressRoom(at_once=1),
        )
        server.answer(1)
        visit, missing = Visitor(fetcher, server), Visitor(fetcher, server, "missing.test")
        assert await visit.reserve() == 0.0
        assert isinstance(await fetcher.fetch(visit.request()), Fetched)
        assert await missing.reserve() == 0.0, "the request tells why it fails"
        assert failure(await fetcher.fetch(missing.request())) is FailureKind.DNS_NOT_FOUND
        await fetcher.close()
    assert resolver.looked_up == ["page.test", "missing.test"]
