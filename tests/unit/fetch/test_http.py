"""The outcomes of all kinds of responses, from a real server that sends scripted bytes."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import brotli
import pytest
from msgspec.structs import replace

from rove.fetch.contract import Request
from rove.fetch.head import MAX_HEAD_LINES
from rove.fetch.limits import FetchLimits, limits_within
from rove.model.outcomes import Failed, FailureKind, Fetched, Redirected, Refused, Response, WrongType
from tests.unit.fetch.server import (
    AGENT,
    Act,
    Script,
    failure,
    fetching,
    on_loop,
    outcome_of,
    page,
    parsed,
    request_to,
    serve,
)

pytestmark = pytest.mark.system

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


@on_loop
async def test_the_request_is_exactly_this() -> None:
    path = "/b/%2Fx//y|z...?q=a+b%20c&r=[1]&s=/../t"
    async with serve([page(b"hello")]) as server, fetching() as fetcher:
        assert isinstance(await fetcher.fetch(request_to(server, path)), Fetched)
    assert server.requests == [
        (
            f"GET {path} HTTP/1.1\r\n"
            f"Host: page.test:{server.port}\r\n"
            f"User-Agent: {AGENT}\r\n"
            "Accept: text/html, application/xhtml+xml, text/plain;q=0.9, */*;q=0.1\r\n"
            "Accept-Encoding: gzip, deflate, br\r\n"
            "\r\n"
        ).encode()
    ]


@on_loop
async def test_headers_of_one_request_are_sent_with_it_and_with_no_other() -> None:
    headers = [("If-None-Match", 'W/"caf\xe9, 1"'), ("X-Blank", " "), ("X-Two", "a"), ("X-Two", "b")]
    async with serve([page(b"hello")]) as server, fetching() as fetcher:
        plain = request_to(server)
        for request in (plain, replace(plain, headers=headers), plain):
            assert isinstance(await fetcher.fetch(request), Fetched)
    before, sent, after = server.requests
    own = b'If-None-Match: W/"caf\xe9, 1"\r\nX-Blank:\r\nX-Two: a\r\nX-Two: b\r\n'
    assert sent == before[:-2] + own + b"\r\n"
    assert after == before


@pytest.mark.parametrize("script", [[], [Act.RESET], [OK]])
@on_loop
async def test_headers_do_not_outlive_a_request_that_failed(script: Script) -> None:
    async with serve(script) as server, fetching() as fetcher:
        request = request_to(server)
        own = replace(request, headers=[("X-Own", "1")])
        assert isinstance(await fetcher.fetch(own), Failed)
        assert isinstance(await fetcher.fetch(request), Failed)
    assert [b"X-Own" in request for request in server.requests] == [True, False]


@on_loop
async def test_headers_do_not_outlive_a_request_that_was_cancelled() -> None:
    async with serve([Act.HOLD]) as server, fetching() as fetcher:
        for headers in ([("X-Own", "1")], []):
            request = replace(request_to(server), headers=headers)
            task = asyncio.create_task(fetcher.fetch(request))
            await server.wait_for_request()
            task.cancel()
            await asyncio.wait([task])
    assert [b"X-Own" in request for request in server.requests] == [True, False]


@pytest.mark.parametrize(
    "header",
    [
        ("X-Bad", "a\r\nX-More: b"),
        ("X-Bad", "a\nX-More: b"),
        ("X-Bad", "a\r"),
        ("X-Bad", "a\0b"),
        ("X-Bad", "a\x7f"),
        ("X-Bad", "生活"),
        ("X-Bad\r\nX-More", "b"),
        ("X Bad", "b"),
        ("X-Bad:", "b"),
        ("", "b"),
    ],
)
@on_loop
async def test_a_header_that_is_not_one_line_is_not_sent(header: tuple[str, str]) -> None:
    async with serve([page(b"hello")]) as server, fetching() as fetcher:
        plain = request_to(server)
        own = replace(plain, headers=[("X-Good", "1"), header])
        for request in (plain, own):
            assert isinstance(await fetcher.fetch(request), Fetched)
    before, sent = server.requests
    assert sent == before[:-2] + b"X-Good: 1\r\n\r\n"


@on_loop
async def test_a_page_is_fetched_with_its_head() -> None:
    response = (
        b"HTTP/1.1 200 Fine\r\nX-Two: b\r\ncontent-TYPE: text/html; charset=latin-1\r\n"
        b"X-One: caf\xe9\r\nX-Two: a\r\nContent-Length: 5\r\n\r\nhello"
    )
    async with serve([response]) as server, fetching() as fetcher:
        request = request_to(server, "/page")
        outcome = await fetcher.fetch(request)
    assert outcome == Fetched(
        response=Response(
            url=request.url.text,
            status=200,
            status_line="HTTP/1.1 200 Fine",
            headers=[
                ("X-Two", "b"),
                ("content-TYPE", "text/html; charset=latin-1"),
                ("X-One", "caf\xe9"),
                ("X-Two", "a"),
                ("Content-Length", "5"),
            ],
            address="127.0.0.1",
        ),
        body=b"hello",
        wire_body=b"hello",
        truncated=False,
    )
    assert outcome.body is outcome.wire_body


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\nhello"], id="until-close"),
        pytest.param([b"HTTP/1.1 200 OK\nContent-Type: text/html\n\nhello"], id="line-feeds"),
        pytest.param([b"HTTP/1.1 200\r\n\r\nhello"], id="no-reason-no-type"),
        pytest.param([OK, b"Content-Le", b"ngth: 5\r\n\r", b"\nhel", b"lo"], id="in-pieces"),
        pytest.param([OK + b"X-Fold: a\r\n  b\r\n\r\nhello"], id="folded"),
        pytest.param([OK + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"], id="two-lengths"),
        pytest.param([page(b"hello") + b"and more"], id="more-than-its-length"),
        pytest.param([OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"], id="chunked"),
        pytest.param(
            [
                OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"
                b"Content-Type: image/png\r\nContent-Encoding: foo\r\n\r\n"
            ],
            id="trailers",
        ),
        pytest.param(
            [
                b"HTTP/1.1 100 Continue\r\n\r\n",
                b"HTTP/1.1 103 Early Hints\r\nContent-Type: image/png\r\nLocation: /x\r\n\r\n",
                page(b"hello"),
            ],
            id="interim-heads",
        ),
        pytest.param([page(gzip.compress(b"hello"), b"Content-Encoding: gzip")], id="gzip"),
        pytest.param(
            [page(brotli.compress(gzip.compress(b"hello")), b"Content-Encoding: x-gzip, br")], id="gzip-and-brotli"
        ),
    ],
)
@on_loop
async def test_these_are_pages(script: Script) -> None:
    outcome = await outcome_of(script)
    assert isinstance(outcome, Fetched), outcome
    assert (outcome.body, outcome.truncated, outcome.response.status) == (b"hello", False, 200)
    assert not outcome.response.header("location")


@on_loop
async def test_the_coded_bytes_are_kept() -> None:
    wire = gzip.compress(b"hello")
    outcome = await outcome_of([page(wire, b"Content-Encoding: gzip")])
    assert isinstance(outcome, Fetched)
    assert (outcome.body, outcome.wire_body) == (b"hello", wire)


@on_loop
async def test_a_body_is_cut_at_the_cap() -> None:
    response = page(b"0123456789")
    async with serve([response]) as server, fetching() as fetcher:
        for cap, body, truncated in ((0, b"", True), (9, b"012345678", True), (10, b"0123456789", False)):
            outcome = await fetcher.fetch(request_to(server, max_bytes=cap))
            assert isinstance(outcome, Fetched)
            assert (outcome.body, outcome.wire_body, outcome.truncated) == (body, body, truncated)


@on_loop
async def test_an_endless_body_is_cut_and_its_connection_closed() -> None:
    script: Script = [OK + b"\r\n", b"x" * 200_000, Act.HOLD]
    async with serve(script) as server, fetching() as fetcher:
        outcome = await fetcher.fetch(request_to(server, max_bytes=100_000))
        await server.wait_for_disconnect()
    assert isinstance(outcome, Fetched)
    assert (len(outcome.body), outcome.truncated) == (100_000, True)


@on_loop
async def test_the_cap_holds_for_the_decoded_body() -> None:
    wire = gzip.compress(bytes(10_000_000))
    outcome = await outcome_of([page(wire, b"Content-Encoding: gzip")], max_bytes=20_000)
    assert isinstance(outcome, Fetched)
    assert (outcome.body, outcome.wire_body, outcome.truncated) == (bytes(20_000), wire, True)


@on_loop
async def test_a_coded_body_cut_on_the_wire_is_decoded_as_far_as_it_goes() -> None:
    text = b"".join(b"%d " % (n * n) for n in range(20_000))
    wire = gzip.compress(text)
    outcome = await outcome_of([page(wire, b"Content-Encoding: gzip")], max_bytes=len(wire) // 2)
    assert isinstance(outcome, Fetched)
    assert outcome.truncated and outcome.wire_body == wire[: len(wire) // 2]
    assert outcome.body and text.startswith(outcome.body)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"HTTP/1.1 301 Moved\r\nLocation: ../there?x\r\n", Redirected),
        (b"HTTP/1.1 302 Found\r\n", Refused),
        (b"HTTP/1.1 304 Not Modified\r\nLocation: /x\r\n", Refused),
        (b"HTTP/1.1 204 No Content\r\n", Refused),
        (b"HTTP/1.1 404 Not Found\r\n", Refused),
        (b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\n", Refused),
        (b"HTTP/1.1 999 Denied\r\n", Refused),
        (b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n", WrongType),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: zstd\r\n", Failed),
    ],
)
@on_loop
async def test_an_unwanted_answer_has_disconnect_after_its_head(head: bytes, expected: type[Any]) -> None:
    """The server sends no body and waits, so the fetcher must disconnect by itself."""
    script: Script = [head + b"Content-Length: 1000\r\n\r\n", Act.HOLD]
    async with serve(script) as server, fetching() as fetcher:
        outcome = await fetcher.fetch(request_to(server))
        await server.wait_for_disconnect()
    assert type(outcome) is expected
    if isinstance(outcome, Redirected):
        assert outcome.location == "../there?x"
    if isinstance(outcome, Failed):
        assert (outcome.kind, outcome.status) == (FailureKind.ENCODING, 200)
    else:
        assert outcome.response.header("content-length") == "1000"


@on_loop
async def test_without_accepted_types_everything_is_read() -> None:
    response = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 2\r\n\r\nhi"
    outcome = await outcome_of([response], accept_types=None)
    assert isinstance(outcome, Fetched) and outcome.body == b"hi"


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        pytest.param([], FailureKind.RESET, id="closed-at-once"),
        pytest.param([Act.RESET], FailureKind.RESET, id="reset-at-once"),
        pytest.param([OK], FailureKind.RESET, id="closed-within-the-head"),
        pytest.param([b"HTTP/1.1 100 Continue\r\n\r\n"], FailureKind.RESET, id="interim-only"),
        pytest.param([OK + b"Content-Length: 10\r\n\r\nhello"], FailureKind.RESET, id="short-body"),
        pytest.param([OK + b"Transfer-Encoding: chunked\r\n\r\n10\r\nhello"], FailureKind.RESET, id="short-chunk"),
        pytest.param([b"<html>hello"], FailureKind.PROTOCOL, id="http-0.9"),
        pytest.param([b"\r\n\r\nhello"], FailureKind.PROTOCOL, id="blank"),
        pytest.param([b"SSH-2.0-OpenSSH_9.2\r\n"], FailureKind.PROTOCOL, id="ssh"),
        pytest.param([b"HTTP/1.1 abc OK\r\n\r\n"], FailureKind.PROTOCOL, id="no-status"),
        pytest.param([b"HTTP/2 200 OK\r\n\r\n"], FailureKind.PROTOCOL, id="http-2"),
        pytest.param(
            [b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nhello"], FailureKind.PROTOCOL, id="upgrade"
        ),
        pytest.param([OK + b"X: a\0b\r\n\r\nhello"], FailureKind.PROTOCOL, id="nul"),
        pytest.param(
            [OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"],
            FailureKind.PROTOCOL,
            id="two-different-lengths",
        ),
        pytest.param([OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhello"], FailureKind.PROTOCOL, id="bad-chunk"),
        pytest.param([OK + b"X: y\r\n" * MAX_HEAD_LINES + b"\r\nhello"], FailureKind.PROTOCOL, id="many-lines"),
        pytest.param(
            [OK + (b"X: " + b"y" * 90_000 + b"\r\n") * 3 + b"\r\nhello"], FailureKind.PROTOCOL, id="large-head"
        ),
        pytest.param([OK + b"X: " + b"y" * 1_000_000], FailureKind.PROTOCOL, id="large-line"),
        pytest.param(
            [b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000, page(b"hello")], FailureKind.PROTOCOL, id="many-interim-heads"
        ),
        pytest.param(
            [OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", b"X: y\r\n" * 1_000 + b"\r\n"],
            FailureKind.PROTOCOL,
            id="many-trailers",
        ),
        pytest.param(
            [OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"], FailureKind.ENCODING, id="transfer-coding"
        ),
        pytest.param([page(b"hello", b"Content-Encoding: gzip")], FailureKind.ENCODING, id="not-gzip"),
        pytest.param(
            [page(gzip.compress(b"hello")[:-1], b"Content-Encoding: gzip")], FailureKind.ENCODING, id="half-gzip"
        ),
    ],
)
@on_loop
async def test_these_fail(script: Script, kind: FailureKind) -> None:
    outcome = await outcome_of(script)
    assert failure(outcome) is kind
    assert isinstance(outcome, Failed) and outcome.detail and outcome.address == "127.0.0.1"


@on_loop
async def test_a_reset_within_the_body() -> None:
    def script(_request: bytes) -> Script:
        return [OK + b"Content-Length: 10\r\n\r\nhello", Act.RESET]

    async with serve(script) as server, fetching() as fetcher:
        outcome = await fetcher.fetch(request_to(server))
    assert failure(outcome) is FailureKind.RESET
    assert isinstance(outcome, Failed) and outcome.status in (0, 200)


@on_loop
async def test_port_0_is_refused() -> None:
    async with fetching() as fetcher:
        outcome = await fetcher.fetch(Request(url=parsed("http://page.test:0/"), max_bytes=10))
    assert isinstance(outcome, Failed), outcome


@on_loop
async def test_hundreds_of_concurrent_requests_do_not_mix() -> None:
    def echo(request: bytes) -> Script:
        return [page(request.split()[1] * 1_000)]

    async with serve(echo) as server, fetching() as fetcher:
        requests = [request_to(server, f"/{n}") for n in range(400)]
        for _ in range(2):
            outcomes = await asyncio.gather(*map(fetcher.fetch, requests))
            for n, outcome in enumerate(outcomes):
                assert isinstance(outcome, Fetched)
                assert outcome.body == b"/%d" % n * 1_000


@pytest.mark.parametrize("total", [1.0, 6.0, 60.0, 180.0])
def test_the_limits_of_the_parts_fit_into_the_total(total: float) -> None:
    limits, usual = limits_within(total), FetchLimits()
    assert limits.total == total
    assert limits.connect < total and limits.connect <= usual.connect
    assert limits.first_byte < total and limits.first_byte <= usual.first_byte
    assert limits_within(usual.total) == usual
