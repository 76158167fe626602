"""Name servers that are dead, slow or wrong, or send too much, affect only the names that need them."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import cast

import pytest

from rove.errors import UsageError
from rove.fetch.contract import Request
from rove.fetch.dns import MAX_ADDRESSES, AresLookup, CachingResolver, DnsAnswer, parse_name_server
from rove.fetch.limits import FetchLimits
from rove.model.outcomes import Failed, FailureKind, Fetched
from tests.unit.fetch import certificates
from tests.unit.fetch.server import Act, FakeResolver, failure, fetching, on_loop, page, parsed, request_to, serve

pytestmark = pytest.mark.system

A, CNAME = 1, 5
Reply = Callable[[bytes, str], bytes | None]
"""Makes the answer to a query and its name; None sends no answer."""


def head(query: bytes, answers: int, *, flags: int = 0x8180) -> bytes:
    return query[:2] + struct.pack(">HHHHH", flags, 1, answers, 0, 0) + question(query)


def question(query: bytes) -> bytes:
    return query[12 : query.index(b"\0", 12) + 5]


def address_record(text: str, *, ttl: int = 300) -> bytes:
    data = ipaddress.ip_address(text).packed
    return b"\xc0\x0c" + struct.pack(">HHIH", A, 1, ttl, len(data)) + data


def alias_record(owner: bytes, target: bytes) -> bytes:
    return owner + struct.pack(">HHIH", CNAME, 1, 300, len(target)) + target


def name_of(query: bytes) -> str:
    labels, position = [], 12
    while length := query[position]:
        labels.append(query[position + 1 : position + 1 + length].decode().lower())
        position += 1 + length
    return ".".join(labels)


class NameServer(asyncio.DatagramProtocol):
    """Answers over UDP with the given function."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.queries: list[str] = []
        self.question = asyncio.Semaphore(0)
        """Released for each query."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        name = name_of(data)
        self.queries.append(name)
        self.question.release()
        answer = self._reply(data, name)
        if answer is not None:
            self._transport.sendto(answer, addr)


@contextlib.asynccontextmanager
async def requester(reply: Reply, **options: float) -> AsyncIterator[tuple[NameServer, AresLookup]]:
    """Run a name server, and a lookup that asks it."""

    async def over_tcp(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (length,) = struct.unpack(">H", await reader.readexactly(2))
        query = await reader.readexactly(length)
        answer = reply(query, name_of(query)) or b""
        if answer:
            answer = answer[:2] + b"\x81\x80" + answer[4:]  # clear the truncation flag
            writer.write(struct.pack(">H", len(answer)) + answer)
        writer.close()

    loop = asyncio.get_running_loop()
    listening = await asyncio.start_server(over_tcp, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    transport, server = await loop.create_datagram_endpoint(lambda: NameServer(reply), local_addr=("127.0.0.1", port))
    settings = {"timeout": 0.2, "tries": 2} | options
    lookup = AresLookup(
        servers=[parse_name_server(f"127.0.0.1:{port}")], timeout=settings["timeout"], tries=int(settings["tries"])
    )
    try:
        yield server, lookup
    finally:
        await lookup.close()
        transport.close()
        listening.close()


def slow_or_fast(query: bytes, name: str) -> bytes | None:
    return None if "slow" in name else head(query, 1) + address_record("192.0.2.1")


@on_loop
async def test_a_dead_name_server_slows_only_the_names_that_need_it() -> None:
    """Other names resolve while two hundred lookups wait for an answer that never comes."""
    async with requester(slow_or_fast, timeout=20) as (server, lookup):
        resolver = CachingResolver(lookup)
        slow = [asyncio.create_task(resolver.resolve(f"{n}.slow.test", 60)) for n in range(200)]
        for _ in slow:
            await server.question.acquire()
        for n in range(100):
            assert await resolver.resolve(f"{n}.fast.test", 10) == ("192.0.2.1",)
        assert not any(task.done() for task in slow)
        await resolver.close()
        for answer in await asyncio.gather(*slow):
            assert isinstance(answer, Failed) and answer.kind is FailureKind.ABORTED


@on_loop
async def test_a_name_without_an_answer_fails_by_itself() -> None:
    async with requester(slow_or_fast, timeout=0.05) as (server, lookup):
        answer = await lookup.look_up("a.slow.test")
    assert isinstance(answer, Failed) and answer.kind is FailureKind.DNS
    assert len(server.queries) == 2


@on_loop
async def test_the_lookups_in_flight_are_limited() -> None:
    under_way, most = 0, 0
    full, gate = asyncio.Event(), asyncio.Event()

    class Counting:
        def forget(self) -> None:
            """Do nothing: nothing is remembered."""

        async def look_up(self, host: str) -> DnsAnswer | Failed:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            if under_way == 3:
                full.set()
            await gate.wait()
            under_way -= 1
            return DnsAnswer(addresses=(host,), ttl=300)

        async def close(self) -> None:
            pass

    resolver = CachingResolver(Counting(), max_lookups=3)
    waiting = [asyncio.create_task(resolver.resolve(str(n), 30)) for n in range(10)]
    await full.wait()
    gate.set()
    assert await asyncio.gather(*waiting) == [(str(n),) for n in range(10)]
    assert most == 3


def many_addresses(query: bytes, _name: str) -> bytes:
    """Answer with more addresses than fit into a datagram, so that c-ares repeats the query over TCP."""
    records = b"".join(address_record(f"192.0.{n >> 8}.{n & 255}") for n in range(1_000))
    return head(query, 1_000, flags=0x8380) + records


@on_loop
async def test_only_a_few_of_a_thousand_addresses_are_kept() -> None:
    async with requester(many_addresses, timeout=5) as (_, lookup):
        answer = await lookup.look_up("many.test")
    assert isinstance(answer, DnsAnswer) and len(answer.addresses) == MAX_ADDRESSES


def own_alias(query: bytes, _name: str) -> bytes:
    """Answer that the name is its own alias."""
    return head(query, 1) + alias_record(b"\xc0\x0c", b"\xc0\x0c")


def alias_ring(query: bytes, _name: str) -> bytes:
    """Answer with two names that are aliases of each other, a hundred times."""
    other = b"\5other\4test\0"
    ring = alias_record(b"\xc0\x0c", other) + alias_record(other, b"\xc0\x0c")
    return head(query, 200) + ring * 100


MALFORMED: dict[str, Reply] = {
    "nothing": lambda query, _: query[:2],
    "only-an-id-and-noise": lambda query, _: query[:2] + b"\xff" * 500,
    "cut-off": lambda query, _: (head(query, 1) + address_record("192.0.2.1"))[:-3],
    "more-than-there-is": lambda query, _: head(query, 65_535) + address_record("192.0.2.1"),
    "a-name-that-points-to-itself": lambda query, _: (
        query[:2] + struct.pack(">HHHHH", 0x8180, 1, 0, 0, 0) + b"\xc0\x0c\0\1\0\1"
    ),
    "an-address-of-three-bytes": lambda query, _: (
        head(query, 1) + b"\xc0\x0c" + struct.pack(">HHIH", A, 1, 300, 3) + b"\x01\x02\x03"
    ),
    "an-answer-to-something-else": lambda query, _: (
        query[:2] + struct.pack(">HHHHH", 0x8180, 1, 0, 0, 0) + b"\5other\4test\0\0\1\0\1"
    ),
    "another-id": lambda query, _: b"\0\0" + head(query, 1)[2:] + address_record("192.0.2.1"),
    "own-alias": own_alias,
    "alias-ring": alias_ring,
    "refused": lambda query, _: head(query, 0, flags=0x8185),
    "not-implemented": lambda query, _: head(query, 0, flags=0x8184),
}


@pytest.mark.parametrize("reply", MALFORMED.values(), ids=MALFORMED)
@on_loop
async def test_a_malformed_answer_is_a_failure(reply: Reply) -> None:
    async with requester(reply, timeout=0.1) as (server, lookup):
        answer = await lookup.look_up("odd.test")
        assert isinstance(answer, Failed), answer
        assert answer.kind in (FailureKind.DNS, FailureKind.DNS_NOT_FOUND)
        assert 1 <= len(server.queries) <= 20


@on_loop
async def test_the_next_address_is_tried_when_one_does_not_answer(tmp_path: Path) -> None:
    """The first address never finishes its TLS handshake. The second one gets the remaining time."""
    file = tmp_path / "server.pem"
    file.write_text(certificates.GOOD)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(file)
    resolver = FakeResolver({"page.test": ["127.0.0.1", "127.0.0.2"]})
    async with (
        serve([Act.HOLD], silent=True) as dead,
        serve([page(b"hello")], host="127.0.0.2", port=dead.port, tls=tls),
        fetching(resolver=resolver, limits=FetchLimits(connect=2.0)) as fetcher,
    ):
        outcome = await fetcher.fetch(request_to(dead, scheme="https"))
        assert isinstance(outcome, Fetched) and outcome.response.address == "127.0.0.2"
        await dead.wait_for_disconnect()


@on_loop
async def test_the_last_address_has_all_the_time_that_has_disconnect() -> None:
    async with serve([Act.HOLD], silent=True) as dead, fetching(limits=FetchLimits(connect=0.2)) as one:
        assert failure(await one.fetch(request_to(dead, scheme="https"))) is FailureKind.TIMEOUT_CONNECT
    assert len(dead.requests) == 1


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("9.9.9.9", "9.9.9.9:53"),
        ("127.0.0.1:5353", "127.0.0.1:5353"),
        ("2620:fe::fe", "[2620:fe::fe]:53"),
        ("[2620:fe::fe]", "[2620:fe::fe]:53"),
        ("[::1]:5353", "[::1]:5353"),
    ],
)
def test_a_name_server_is_parsed(text: str, server: str) -> None:
    assert parse_name_server(text) == server


@pytest.mark.parametrize(
    "text", ["", "dns.test", "9.9.9.9:", "9.9.9.9:0", "9.9.9.9:65536", "[9.9.9.9", "1.2.3", "::1]:5"]
)
def test_other_text_is_not_a_name_server(text: str) -> None:
    with pytest.raises(UsageError, match="name server"):
        parse_name_server(text)


@on_loop
async def test_a_page_is_fetched_by_a_name_from_the_given_server() -> None:
    def loopback(query: bytes, _name: str) -> bytes:
        return head(query, 1) + address_record("127.0.0.1")

    async with (
        serve([page(b"hello")]) as server,
        requester(loopback, timeout=5) as (_, lookup),
        fetching(resolver=CachingResolver(lookup)) as fetcher,
    ):
        outcome = await fetcher.fetch(Request(url=parsed(f"http://real.test:{server.port}/"), max_bytes=10))
    assert isinstance(outcome, Fetched)


@on_loop
async def test_a_malformed_reply_fails_only_its_own_name() -> None:
    """c-ares fails all queries of a channel when one reply is malformed."""

    def reply(query: bytes, name: str) -> bytes:
        if "bad" in name:
            return head(query, 1) + b"\xc0\x0c" + struct.pack(">HHIH", A, 1, 300, 3) + b"\1\2\3"
        return head(query, 1) + address_record("192.0.2.1")

    async with requester(reply, timeout=2) as (_, lookup):
        names = ["bad.test", *(f"good{n}.test" for n in range(6))]
        bad, *good = await asyncio.gather(*(lookup.look_up(name) for name in names))
    assert isinstance(bad, Failed) and bad.kind is FailureKind.DNS
    assert all(isinstance(answer, DnsAnswer) for answer in good)
