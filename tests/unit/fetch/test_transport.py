"""Below HTTP: addresses, timeouts, TLS, proxies, and the reuse of handles."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pycurl
import pytest

from rove.fetch.address import AddressGuard
from rove.fetch.connect_to import parse_connect_to
from rove.fetch.contract import Request
from rove.fetch.exchange import Exchange
from rove.fetch.handle import CurlHandle
from rove.fetch.http import CurlFetcher
from rove.fetch.limits import Deadlines, FetchLimits
from rove.model.outcomes import Failed, FailureKind, Fetched, Outcome, Redirected, Refused, WrongType
from tests.unit.fetch.server import (
    AGENT,
    Act,
    FakeResolver,
    Script,
    Server,
    failure,
    fetching,
    on_loop,
    page,
    parsed,
    request_to,
    serve,
)

pytestmark = pytest.mark.system

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"

# Self-signed, for tests only.
CERTIFICATE = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgP2ByQrG9+mxi2F9P
4hSxQVKQsE1ymYP85ciSocHeWa6hRANCAATEW4cS18KgBwVJML1+DxVlx7phcfw1
o5CvW9nrlp4SPftd+6OMXh8EAbNAqKuUQxEvyrlK2iqbNPYMLlS6e0il
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBgTCCASegAwIBAgIUHvU9qmSN8Wsbg0+caqPdVXg7o+owCgYIKoZIzj0EAwIw
FTETMBEGA1UEAwwKZmV0Y2gudGVzdDAgFw0yNjExMTUyMTUyMDJaGA8yMTI2MTAy
MjIxNTIwMlowFTETMBEGA1UEAwwKZmV0Y2gudGVzdDBZMBMGByqGSM49AgEGCCqG
SM49AwEHA0IABMRbhxLXwqAHBUkwvX4PFWXHumFx/DWjkK9b2euWnhI9+137o4xe
HwQBs0Coq5RDES/KuUraKps09gwuVLp7SKWjUzBRMB0GA1UdDgQWBBTvheZkbgAc
DtSODp7zvPjkuz9VojAfBgNVHSMEGDAWgBTvheZkbgAcDtSODp7zvPjkuz9VojAP
BgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIAwkeENMQbwW2iKCKRvK
MyUqGlycbM1z87wXTqTI1ehhAiEAxtxyzj+RRX5NAw4aNJtoaUnFMFMYLicp3K9W
XdRiTO8=
-----END CERTIFICATE-----
"""


class Only(AddressGuard):
    """Permits one address."""

    def permits(self, address: str) -> bool:
        return address == "127.0.0.1"


def deadlines_in(seconds: float) -> Deadlines:
    end = asyncio.get_running_loop().time() + seconds
    return Deadlines(connect=end, total=end, with_pauses=end)


def open_connections(server: Server) -> int:
    """Count the connections that this process has open to the server."""
    connections = psutil.Process().net_connections("tcp")
    return sum(1 for one in connections if one.raddr and one.raddr.port == server.port)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """Make a server's TLS context with a self-signed certificate."""
    pem: Path = tmp_path_factory.mktemp("tls") / "server.pem"
    pem.write_text(CERTIFICATE)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context


# Addresses


@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "0x7f.1", "localtest.test"])
@on_loop
async def test_forbidden_addresses_are_refused(host: str) -> None:
    async with serve([page(b"hello")]) as server, fetching(guard=AddressGuard()) as fetcher:
        outcome = await fetcher.fetch(Request(url=parsed(f"http://{host}:{server.port}/"), max_bytes=10))
        assert failure(outcome) is FailureKind.ADDRESS_REFUSED
        assert isinstance(outcome, Failed) and outcome.address == "127.0.0.1"
    assert server.requests == []


@pytest.mark.parametrize("host", ["[::1]", "[::ffff:127.0.0.1]", "169.254.169.254", "10.0.0.1"])
@on_loop
async def test_forbidden_literals_are_refused(host: str) -> None:
    async with fetching(guard=AddressGuard()) as fetcher:
        outcome = await fetcher.fetch(Request(url=parsed(f"http://{host}/"), max_bytes=10))
    assert failure(outcome) is FailureKind.ADDRESS_REFUSED


@on_loop
async def test_only_the_permitted_addresses_of_a_name_are_used() -> None:
    resolver = FakeResolver({"page.test": ["127.0.0.9", "10.0.0.1", "127.0.0.1"]})
    async with serve([page(b"hello")]) as server, fetching(resolver=resolver, guard=Only()) as fetcher:
        outcome = await fetcher.fetch(request_to(server))
    assert isinstance(outcome, Fetched) and outcome.response.address == "127.0.0.1"


@on_loop
async def test_the_next_address_is_tried_when_one_refuses() -> None:
    resolver = FakeResolver(
        {
            "page.test": ["127.0.0.2", "127.0.0.3", "127.0.0.1"],
            "far.test": ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.1"],
        }
    )
    async with serve([page(b"hello")]) as server, fetching(resolver=resolver) as fetcher:
        outcome = await fetcher.fetch(request_to(server))
        assert isinstance(outcome, Fetched) and outcome.response.address == "127.0.0.1"
        far = await fetcher.fetch(Request(url=parsed(f"http://far.test:{server.port}/"), max_bytes=10))
        assert failure(far) is FailureKind.CONNECT
        assert isinstance(far, Failed) and far.address == "127.0.0.4"
    assert len(server.requests) == 1


@on_loop
async def test_only_a_refused_connection_moves_on_to_the_next_address() -> None:
    resolver = FakeResolver({"page.test": ["127.0.0.1", "127.0.0.1"]})
    async with serve([]) as server, fetching(resolver=resolver) as fetcher:
        assert failure(await fetcher.fetch(request_to(server))) is FailureKind.RESET
    assert len(server.requests) == 1


@on_loop
async def test_a_peer_other_than_the_checked_one_is_refused_before_anything_is_sent() -> None:
    class Misled(CurlHandle):
        """Connects to another address than it is told to."""

        def prepare(self, url: str, *, address: str, **options: Any) -> None:
            super().prepare(url, address="127.0.0.1", **options)

    async with serve([page(b"hello")]) as server, pycurl.AsyncCurlMulti() as multi:
        exchange = Exchange(
            Misled(user_agent=AGENT, authorities=None),
            request_to(server),
            address="127.0.0.2",
            deadlines=deadlines_in(5.0),
            limits=FetchLimits(),
        )
        outcome = await exchange.run(multi, port=server.port, strict=True)
    assert failure(outcome) is FailureKind.ADDRESS_REFUSED
    assert isinstance(outcome, Failed) and outcome.address == "127.0.0.2"
    assert server.requests == []


@pytest.mark.parametrize(
    ("script", "scheme", "limits", "kind"),
    [
        ([Act.RESET], "http", FetchLimits(), FailureKind.RESET),
        ([], "http", FetchLimits(), FailureKind.RESET),
        ([b"nonsense"], "http", FetchLimits(), FailureKind.PROTOCOL),
        ([b"nonsense", Act.HOLD], "https", FetchLimits(), FailureKind.TLS),
        ([Act.HOLD], "https", FetchLimits(connect=0.5), FailureKind.TIMEOUT_CONNECT),
        ([Act.HOLD], "http", FetchLimits(first_byte=0.1), FailureKind.TIMEOUT_FIRST_BYTE),
        ([OK, Act.HOLD], "http", FetchLimits(total=0.5), FailureKind.TIMEOUT_TOTAL),
        ([page(b"x", b"Content-Encoding: odd")], "http", FetchLimits(), FailureKind.ENCODING),
        ([page(b"x", b"Content-Encoding: gzip")], "http", FetchLimits(), FailureKind.ENCODING),
    ],
)
@on_loop
async def test_a_failure_names_the_last_address_that_was_tried(
    script: Script, scheme: str, limits: FetchLimits, kind: FailureKind
) -> None:
    """The name's first address refuses the connection."""
    resolver = FakeResolver({"page.test": ["127.0.0.2", "127.0.0.1"]})
    async with serve(script, silent=scheme == "https") as server, fetching(resolver=resolver, limits=limits) as fetcher:
        outcome = await fetcher.fetch(request_to(server, scheme=scheme))
    assert failure(outcome) is kind
    assert isinstance(outcome, Failed) and outcome.address == "127.0.0.1"


@on_loop
async def test_an_ipv6_literal_works() -> None:
    try:
        async with serve([page(b"hello")], host="::1") as server, fetching() as fetcher:
            outcome = await fetcher.fetch(Request(url=parsed(f"http://[::1]:{server.port}/"), max_bytes=10))
    except OSError as error:
        pytest.skip(f"no IPv6 on loopback here: {error}")
    assert isinstance(outcome, Fetched) and outcome.response.address == "::1"
    assert b"Host: [::1]:%d\r\n" % server.port in server.requests[0]


@on_loop
async def test_a_failed_name_is_the_outcome() -> None:
    gone = Failed(kind=FailureKind.DNS_NOT_FOUND, detail="no such name")
    async with fetching(resolver=FakeResolver({"gone.test": gone})) as fetcher:
        assert await fetcher.fetch(Request(url=parsed("http://gone.test/"), max_bytes=10)) == gone


@on_loop
async def test_connect_to_replaces_the_lookup_and_the_port() -> None:
    resolver = FakeResolver()
    async with serve([page(b"hello")]) as server:
        rules = [parse_connect_to(f"*.Fixed.test=127.0.0.1:{server.port}"), parse_connect_to("port.test=127.0.0.1")]
        async with fetching(resolver=resolver, connect_to=rules) as fetcher:
            for url in ("http://www.fixed.test/", "http://www.fixed.test:81/", f"http://port.test:{server.port}/"):
                assert isinstance(await fetcher.fetch(Request(url=parsed(url), max_bytes=10)), Fetched)
    hosts = [request.split(b"\r\n")[1] for request in server.requests]
    assert hosts == [b"Host: www.fixed.test", b"Host: www.fixed.test:81", b"Host: port.test:%d" % server.port]
    assert resolver.looked_up == []


@on_loop
async def test_an_address_of_connect_to_is_trusted_and_no_other() -> None:
    resolver = FakeResolver({"named.example": ("127.0.0.1",)})
    async with serve([page(b"hello")]) as server:
        rules = [parse_connect_to(f"*.test=127.0.0.1:{server.port}")]
        async with fetching(guard=AddressGuard(), resolver=resolver, connect_to=rules) as fetcher:
            outcome = await fetcher.fetch(Request(url=parsed("http://a.test/"), max_bytes=10))
            assert isinstance(outcome, Fetched)
            for host in ("127.0.0.1", "[::1]", "named.example"):
                url = f"http://{host}:{server.port}/"
                refused = await fetcher.fetch(Request(url=parsed(url), max_bytes=10))
                assert failure(refused) is FailureKind.ADDRESS_REFUSED, url
    assert len(server.requests) == 1


@on_loop
async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve([page(b"proxy")]) as proxy, serve([page(b"hello")]) as server:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        async with fetching() as fetcher:
            outcome = await fetcher.fetch(request_to(server))
        assert isinstance(outcome, Fetched) and outcome.body == b"hello"
        assert proxy.requests == []


# Timeouts


@on_loop
async def test_connecting_times_out() -> None:
    limits = FetchLimits(connect=0.3)
    async with (
        serve([page(b"hello")]) as good,
        serve([Act.HOLD], silent=True) as server,
        fetching(limits=limits) as fetcher,
    ):
        assert isinstance(await fetcher.fetch(request_to(good)), Fetched)
        outcome = await fetcher.fetch(request_to(server, scheme="https"))
        assert failure(outcome) is FailureKind.TIMEOUT_CONNECT
        await server.wait_for_disconnect()


@on_loop
async def test_a_lookup_may_take_as_long_as_connecting() -> None:
    resolver = FakeResolver({"page.test": Failed(kind=FailureKind.DNS, detail="x")})
    limits = FetchLimits(connect=5, total=60)
    async with fetching(resolver=resolver, limits=limits) as fetcher:
        for timeout in (60, 3):
            await fetcher.fetch(Request(url=parsed("http://page.test/"), max_bytes=1, timeout=timeout))
    usual, short = resolver.within
    assert usual == 5
    assert 2 < short <= 3


@on_loop
async def test_an_answer_that_does_not_begin_times_out() -> None:
    limits = FetchLimits(first_byte=0.1)
    async with serve([Act.HOLD]) as server, fetching(limits=limits) as fetcher:
        outcome = await fetcher.fetch(request_to(server))
        assert failure(outcome) is FailureKind.TIMEOUT_FIRST_BYTE
        await server.wait_for_disconnect()


@pytest.mark.parametrize("script", [[b"HTTP/1.1 200 OK\r\n", Act.HOLD], [OK + b"\r\nhello", Act.HOLD]])
@on_loop
async def test_an_answer_that_does_not_end_times_out(script: Script) -> None:
    limits = FetchLimits(first_byte=0.3, total=0.6)
    async with serve(script) as server, fetching(limits=limits) as fetcher:
        outcome = await fetcher.fetch(request_to(server))
        assert failure(outcome) is FailureKind.TIMEOUT_TOTAL
        await server.wait_for_disconnect()


@pytest.mark.parametrize("scheme", ["http", "https"])
@on_loop
async def test_the_request_may_set_a_shorter_limit(scheme: str) -> None:
    async with serve([Act.HOLD], silent=True) as server, fetching() as fetcher:
        outcome = await fetcher.fetch(request_to(server, scheme=scheme, timeout=0.1))
        assert failure(outcome) is FailureKind.TIMEOUT_TOTAL
        outcome = await fetcher.fetch(request_to(server, scheme=scheme, timeout=-1))
        assert failure(outcome) is FailureKind.TIMEOUT_TOTAL


# TLS


@on_loop
async def test_a_certificate_is_not_verified(tls: ssl.SSLContext) -> None:
    async with serve([page(b"hello")], tls=tls) as server, fetching() as fetcher:
        outcome = await fetcher.fetch(request_to(server, scheme="https"))
    assert isinstance(outcome, Fetched) and outcome.body == b"hello"


class UnannouncedEnd:
    """Sends a response over TLS and closes the connection without a close_notify."""

    def __init__(self, context: ssl.SSLContext, response: bytes) -> None:
        self._context = context
        self._response = response

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = self._context.wrap_bio(incoming, outgoing, server_side=True)

        async def through(step: Callable[[], object]) -> None:
            while True:
                try:
                    step()
                except ssl.SSLWantReadError:
                    writer.write(outgoing.read())
                    incoming.write(await reader.read(65_536))
                else:
                    writer.write(outgoing.read())
                    return

        await through(session.do_handshake)
        await through(lambda: session.read(65_536))
        await through(lambda: session.write(self._response))
        writer.close()


@pytest.mark.parametrize(
    ("head", "whole"),
    [(OK, True), (OK + b"Content-Length: 100\r\n", False), (OK + b"Transfer-Encoding: chunked\r\n", False)],
)
@on_loop
async def test_tls_that_ends_without_notice_ends_only_a_body_of_unknown_length(
    tls: ssl.SSLContext, head: bytes, whole: bool
) -> None:
    end = UnannouncedEnd(tls, head + b"\r\n5\r\nhello\r\n")
    listening = await asyncio.start_server(end, "127.0.0.1", 0)
    server = Server(host="127.0.0.1", port=listening.sockets[0].getsockname()[1])
    async with listening, fetching() as fetcher:
        outcome = await fetcher.fetch(request_to(server, scheme="https"))
    if whole:
        assert isinstance(outcome, Fetched) and outcome.body == b"5\r\nhello\r\n"
    else:
        assert failure(outcome) is FailureKind.RESET


@on_loop
async def test_a_server_that_does_not_speak_tls() -> None:
    response = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    async with serve([response, Act.HOLD], silent=True) as server, fetching() as fetcher:
        assert failure(await fetcher.fetch(request_to(server, scheme="https"))) is FailureKind.TLS


# Handles


@on_loop
async def test_every_connection_is_closed() -> None:
    async with serve([page(b"hello"), Act.HOLD]) as server, fetching() as fetcher:
        for _ in range(3):
            assert isinstance(await fetcher.fetch(request_to(server)), Fetched)
            await server.wait_for_disconnect()
        assert open_connections(server) == 0
    assert len(server.requests) == 3


@on_loop
async def test_cancelling_closes_the_connection_and_leaks_nothing() -> None:
    async with serve([OK + b"\r\nhello", Act.HOLD]) as server, fetching() as fetcher:
        for _ in range(3):
            tasks = [asyncio.create_task(fetcher.fetch(request_to(server))) for _ in range(50)]
            for _ in tasks:
                await server.wait_for_request()
            assert open_connections(server) == 50
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(end, asyncio.CancelledError) for end in ended)
            assert open_connections(server) == 0
            for _ in tasks:
                await server.wait_for_disconnect()


@on_loop
async def test_cancelling_by_a_timeout_reaches_the_caller() -> None:
    async with serve([Act.HOLD]) as server, fetching() as fetcher:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await fetcher.fetch(request_to(server))
        assert open_connections(server) == 0
        await server.wait_for_disconnect()


@on_loop
async def test_a_timeout_does_not_cancel_the_caller() -> None:
    """Not even a task that was cancelled before and went on."""
    limits = FetchLimits(first_byte=0.05)

    async def stubborn(fetcher: CurlFetcher, server: Server) -> Outcome:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return await fetcher.fetch(request_to(server))
        raise AssertionError

    async with serve([Act.HOLD]) as server, fetching(limits=limits) as fetcher:
        task = asyncio.create_task(stubborn(fetcher, server))
        await asyncio.sleep(0)
        task.cancel()
        assert failure(await task) is FailureKind.TIMEOUT_FIRST_BYTE


@on_loop
async def test_a_handle_keeps_nothing_of_its_last_request() -> None:
    """The requests come one after the other, so that they share one handle."""
    responses: dict[bytes, Script] = {
        b"/page": [page(b"hello", b"X-Page: 1")],
        b"/early": [b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", page(b"hello")],
        b"/long": [OK + b"\r\n" + b"x" * 300_000, Act.HOLD],
        b"/image": [b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nX-Image: 1\r\n\r\n", Act.HOLD],
        b"/moved": [b"HTTP/1.1 301 Moved\r\nLocation: /x\r\nX-Moved: 1\r\n\r\n", Act.HOLD],
        b"/gone": [b"HTTP/1.1 410 Gone\r\nSet-Cookie: a=b\r\n\r\n", Act.HOLD],
        b"/short": [OK + b"Content-Length: 10\r\n\r\nhello"],
        b"/odd": [page(b"hello", b"Content-Encoding: gzip")],
        b"/chunk": [OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", Act.HOLD],
        b"/nothing": [],
        b"/reset": [Act.RESET],
        b"/hold": [Act.HOLD],
        b"/empty": [page(b"")],
    }
    kinds: dict[str, type[Outcome] | FailureKind] = {
        "/page": Fetched,
        "/early": Fetched,
        "/long": Fetched,
        "/image": WrongType,
        "/moved": Redirected,
        "/gone": Refused,
        "/short": FailureKind.RESET,
        "/odd": FailureKind.ENCODING,
        "/chunk": FailureKind.PROTOCOL,
        "/nothing": FailureKind.RESET,
        "/reset": FailureKind.RESET,
        "/hold": FailureKind.TIMEOUT_TOTAL,
        "/empty": Fetched,
    }
    async with serve(lambda request: responses[request.split()[1]]) as server, fetching() as fetcher:
        for before in kinds:
            for path, kind in kinds.items():
                limits = [0.05 if each == "/hold" else 5.0 for each in (before, path)]
                await fetcher.fetch(request_to(server, before, max_bytes=1_000, timeout=limits[0]))
                outcome = await fetcher.fetch(request_to(server, path, max_bytes=10_000, timeout=limits[1]))
                result = outcome.kind if isinstance(outcome, Failed) else type(outcome)
                assert result is kind, (before, path, outcome)
                if isinstance(outcome, Fetched):
                    body, headers = {
                        "/page": (b"hello", 3),
                        "/early": (b"hello", 2),
                        "/long": (b"x" * 10_000, 1),
                        "/empty": (b"", 2),
                    }[path]
                    assert (outcome.body, outcome.truncated) == (body, path == "/long")
                    assert len(outcome.response.headers) == headers
                    assert outcome.response.url.endswith(path)
    heads = {request.partition(b"\r\n")[2] for request in server.requests}
    assert len(heads) == 1, "no request sends a cookie or another extra header"


@on_loop
async def test_a_bug_in_a_callback_is_raised(capfd: pytest.CaptureFixture[str]) -> None:
    class Broken(frozenset[str]):
        def __contains__(self, item: object) -> bool:
            raise ZeroDivisionError("a bug")

    async with serve([page(b"hello")]) as server, fetching() as fetcher:
        with pytest.raises(ZeroDivisionError, match="a bug"):
            await fetcher.fetch(request_to(server, accept_types=Broken({"text/html"})))
        assert isinstance(await fetcher.fetch(request_to(server)), Fetched)
    assert capfd.readouterr().err == ""


async def close_while(fetcher: CurlFetcher, request: Request, ready: Callable[[], Awaitable[object]]) -> Outcome:
    task = asyncio.create_task(fetcher.fetch(request))
    await ready()
    await fetcher.close()
    return await task


@on_loop
async def test_closing_ends_requests_in_flight() -> None:
    async with serve([OK + b"\r\nhello", Act.HOLD]) as server, fetching() as fetcher:
        outcome = await close_while(fetcher, request_to(server), server.wait_for_request)
        assert failure(outcome) is FailureKind.ABORTED
        assert isinstance(outcome, Failed) and outcome.address == "127.0.0.1"
        await server.wait_for_disconnect()
        assert failure(await fetcher.fetch(request_to(server))) is FailureKind.ABORTED
        assert open_connections(server) == 0
    assert len(server.requests) == 1
