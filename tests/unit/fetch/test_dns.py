"""The resolver: cache, concurrent lookups, and real queries to a name server on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import struct
from collections.abc import AsyncIterator, Mapping
from typing import cast

import pytest

from rove.fetch.dns import AresLookup, CachingResolver, DnsAnswer
from rove.model.outcomes import Failed, FailureKind
from tests.unit.fetch.server import on_loop

pytestmark = pytest.mark.system

NOT_FOUND = Failed(kind=FailureKind.DNS_NOT_FOUND, detail="no such name")
NO_ANSWER = Failed(kind=FailureKind.DNS, detail="no answer")


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class ScriptedLookup:
    """Answers from a table once its gate is open."""

    def __init__(self, answer: DnsAnswer | Failed) -> None:
        self.answer = answer
        self.looked_up: list[str] = []
        self.forgets = 0
        self.started = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.closed = False

    def forget(self) -> None:
        self.forgets += 1

    async def look_up(self, host: str) -> DnsAnswer | Failed:
        self.looked_up.append(host)
        self.started.set()
        await self.gate.wait()
        return self.answer

    async def close(self) -> None:
        self.closed = True


def answer(ttl: float) -> DnsAnswer:
    return DnsAnswer(addresses=("192.0.2.1", "192.0.2.2"), ttl=ttl)


@pytest.mark.parametrize(
    ("result", "cached_for"),
    [(answer(0), 60), (answer(59), 60), (answer(300), 300), (answer(86_400), 3_600), (NOT_FOUND, 300), (NO_ANSWER, 10)],
)
@on_loop
async def test_answers_are_cached_for_their_ttl(result: DnsAnswer | Failed, cached_for: float) -> None:
    lookup, clock = ScriptedLookup(result), Clock()
    resolver = CachingResolver(lookup, clock=clock)
    expected = result if isinstance(result, Failed) else result.addresses
    assert await resolver.resolve("a.test", 1) == expected
    clock.now += cached_for - 0.5
    assert await resolver.resolve("a.test", 1) == expected
    assert lookup.looked_up == ["a.test"]
    clock.now += 1
    assert await resolver.resolve("a.test", 1) == expected
    assert lookup.looked_up == ["a.test", "a.test"]


@on_loop
async def test_the_least_recently_used_name_is_evicted_first() -> None:
    lookup = ScriptedLookup(answer(300))
    resolver = CachingResolver(lookup, size=2, clock=Clock())
    for host in ("a", "b", "a", "c", "a", "b"):
        await resolver.resolve(host, 1)
    assert lookup.looked_up == ["a", "b", "c", "b"]


@on_loop
async def test_one_lookup_serves_all_concurrent_requests() -> None:
    lookup = ScriptedLookup(answer(300))
    lookup.gate.clear()
    resolver = CachingResolver(lookup)
    waiting = [asyncio.create_task(resolver.resolve("a.test", 5)) for _ in range(10)]
    await lookup.started.wait()
    waiting[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting[0]
    lookup.gate.set()
    assert await asyncio.gather(*waiting[1:]) == [answer(300).addresses] * 9
    assert lookup.looked_up == ["a.test"]


@on_loop
async def test_a_request_times_out_but_the_answer_is_still_cached() -> None:
    lookup = ScriptedLookup(answer(300))
    lookup.gate.clear()
    resolver = CachingResolver(lookup)
    result = await resolver.resolve("a.test", 0.01)
    assert isinstance(result, Failed) and result.kind is FailureKind.DNS
    lookup.gate.set()
    assert await resolver.resolve("a.test", 5) == answer(300).addresses
    assert lookup.looked_up == ["a.test"]


@on_loop
async def test_closing_fails_the_lookups_in_flight() -> None:
    lookup = ScriptedLookup(answer(300))
    lookup.gate.clear()
    resolver = CachingResolver(lookup)
    waiting = asyncio.create_task(resolver.resolve("a.test", 5))
    await lookup.started.wait()
    await resolver.close()
    for result in (await waiting, await resolver.resolve("b.test", 5)):
        assert isinstance(result, Failed) and result.kind is FailureKind.ABORTED
    assert lookup.closed


@on_loop
async def test_a_name_that_was_looked_up_ahead_is_known_when_it_is_needed() -> None:
    lookup = ScriptedLookup(answer(300))
    lookup.gate.clear()
    resolver = CachingResolver(lookup, clock=lambda: 0.0)
    resolver.look_ahead("a.test")
    resolver.look_ahead("a.test")
    await lookup.started.wait()
    needed = asyncio.create_task(resolver.resolve("a.test", 5))
    lookup.gate.set()
    assert await needed == answer(300).addresses
    resolver.look_ahead("a.test")
    assert await resolver.resolve("a.test", 5) == answer(300).addresses
    await resolver.close()
    resolver.look_ahead("b.test")
    assert lookup.looked_up == ["a.test"]


@on_loop
async def test_failures_can_be_forgotten_and_answers_stay() -> None:
    for failure in (NOT_FOUND, NO_ANSWER):
        lookup = ScriptedLookup(answer(300))
        resolver = CachingResolver(lookup, clock=lambda: 0.0)
        await resolver.resolve("known.test", 5)
        lookup.answer = failure
        assert await resolver.resolve("lost.test", 5) == failure
        lookup.answer = answer(300)
        assert await resolver.resolve("lost.test", 5) == failure, "it is remembered"
        resolver.forget_failures()
        assert await resolver.resolve("lost.test", 5) == answer(300).addresses
        assert await resolver.resolve("known.test", 5) == answer(300).addresses
        assert lookup.looked_up == ["known.test", "lost.test", "lost.test"]
        assert lookup.forgets == 1


@on_loop
async def test_a_lookup_that_began_before_failures_were_forgotten_is_not_remembered() -> None:
    lookup = ScriptedLookup(NO_ANSWER)
    lookup.gate.clear()
    resolver = CachingResolver(lookup, clock=lambda: 0.0)
    first = asyncio.create_task(resolver.resolve("a.test", 5))
    await lookup.started.wait()
    resolver.forget_failures()
    lookup.gate.set()
    assert await first == NO_ANSWER
    await resolver.resolve("a.test", 5)
    assert lookup.looked_up == ["a.test", "a.test"]


@on_loop
async def test_a_bug_in_a_lookup_is_raised_and_not_cached() -> None:
    class Broken(ScriptedLookup):
        async def look_up(self, host: str) -> DnsAnswer | Failed:
            if not self.looked_up:
                self.looked_up.append(host)
                raise RuntimeError("a bug")
            return self.answer

    resolver = CachingResolver(Broken(answer(300)))
    with pytest.raises(RuntimeError, match="a bug"):
        await resolver.resolve("a.test", 5)
    assert await resolver.resolve("a.test", 5) == answer(300).addresses


A, CNAME, AAAA = 1, 5, 28
NXDOMAIN, SERVFAIL = 3, 2
Records = list[tuple[int, int, str]]
"""Type, time to live, data."""


class NameServer(asyncio.DatagramProtocol):
    """A name server with a table that maps (name, type) to records or to a response code."""

    def __init__(self, table: Mapping[tuple[str, int], Records | int]) -> None:
        self._table = table
        self.queries: list[tuple[str, int]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        labels, position = [], 12
        while length := data[position]:
            labels.append(data[position + 1 : position + 1 + length].decode().lower())
            position += 1 + length
        question = data[12 : position + 5]
        (record_type,) = struct.unpack_from(">H", data, position + 1)
        key = (".".join(labels), record_type)
        self.queries.append(key)
        entry = self._table.get(key, [])
        code, records = (entry, []) if isinstance(entry, int) else (0, entry)
        head = data[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(records), 0, 0)
        answers = b"".join(encode_record(*record) for record in records)
        self._transport.sendto(head + question + answers, addr)


def encode_record(record_type: int, ttl: int, text: str) -> bytes:
    """Encode a record of the name in the query."""
    if record_type == CNAME:
        data = b"".join(bytes([len(part)]) + part.encode() for part in text.split(".")) + b"\0"
    else:
        data = ipaddress.ip_address(text).packed
    return b"\xc0\x0c" + struct.pack(">HHIH", record_type, 1, ttl, len(data)) + data


@contextlib.asynccontextmanager
async def name_server(
    table: Mapping[tuple[str, int], Records | int], *, renew_after: int = 1_000
) -> AsyncIterator[tuple[NameServer, AresLookup]]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(lambda: NameServer(table), local_addr=("127.0.0.1", 0))
    port = transport.get_extra_info("sockname")[1]
    lookup = AresLookup(servers=[f"127.0.0.1:{port}"], timeout=0.2, tries=2, renew_after=renew_after)
    try:
        yield server, lookup
    finally:
        await lookup.close()
        transport.close()


@on_loop
async def test_a_name_with_ipv4_is_not_queried_for_ipv6() -> None:
    table: dict[tuple[str, int], Records | int] = {
        ("a.test", A): [(CNAME, 30, "b.test"), (A, 500, "192.0.2.1"), (A, 400, "192.0.2.2")],
        ("a.test", AAAA): [(AAAA, 500, "2001:db8::1")],
    }
    async with name_server(table) as (server, lookup):
        assert await lookup.look_up("a.test") == DnsAnswer(addresses=("192.0.2.1", "192.0.2.2"), ttl=30)
        assert server.queries == [("a.test", A)]


@on_loop
async def test_ipv6_is_used_if_a_name_has_no_ipv4_address() -> None:
    table: dict[tuple[str, int], Records | int] = {("six.test", AAAA): [(AAAA, 500, "2001:db8::1")]}
    async with name_server(table) as (server, lookup):
        assert await lookup.look_up("six.test") == DnsAnswer(addresses=("2001:db8::1",), ttl=500)
        assert server.queries == [("six.test", A), ("six.test", AAAA)]


@on_loop
async def test_kinds_of_failures() -> None:
    table: dict[tuple[str, int], Records | int] = {
        ("gone.test", A): NXDOMAIN,
        ("broken.test", A): SERVFAIL,
        ("alias.test", A): [(CNAME, 30, "nothing.test")],
    }
    async with name_server(table) as (server, lookup):
        kinds = {}
        for host in ("gone.test", "bare.test", "alias.test", "broken.test", "x" * 70 + ".test"):
            answer = await lookup.look_up(host)
            assert isinstance(answer, Failed)
            kinds[host] = answer.kind
        assert list(kinds.values()) == [FailureKind.DNS_NOT_FOUND] * 3 + [FailureKind.DNS, FailureKind.DNS_NOT_FOUND]
        assert ("gone.test", AAAA) not in server.queries


@on_loop
async def test_localhost_is_not_sent_to_dns() -> None:
    async with name_server({}) as (server, lookup):
        for host in ("localhost", "a.localhost"):
            answer = await lookup.look_up(host)
            assert isinstance(answer, DnsAnswer) and answer.addresses == ("127.0.0.1", "::1")
        assert server.queries == []


@on_loop
async def test_a_new_channel_takes_over_without_losing_lookups() -> None:
    table: dict[tuple[str, int], Records | int] = {(f"{n}.test", A): [(A, 60, f"192.0.2.{n}")] for n in range(50)}
    async with name_server(table, renew_after=10) as (server, lookup):
        for _ in range(2):
            answers = [await lookup.look_up(f"{n}.test") for n in range(50)]
            assert answers == [DnsAnswer(addresses=(f"192.0.2.{n}",), ttl=60) for n in range(50)]
        # an old channel would have answered the second round from its cache
        assert len(server.queries) == 100
