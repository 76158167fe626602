"""Malformed HTTP: every kind has its outcome, none raises, none hangs."""

from __future__ import annotations

import asyncio

import pytest

from rove.fetch.head import MAX_LOCATION
from rove.model.marks import Mark
from rove.model.outcomes import MAX_MEDIA_TYPE, Failed, FailureKind, Fetched, Redirected, Refused, WrongType
from tests.unit.fetch.server import Act, Script, failure, on_loop, outcome_of, page

pytestmark = pytest.mark.system

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

PAGES = {
    "length-too-short": (OK + b"Content-Length: 3\r\n\r\nhello", b"hel"),
    "length-none-of-a-body": (OK + b"Content-Length: 0\r\n\r\nhello", b""),
    "length-beyond-all-numbers": (OK + b"Content-Length: 99999999999999999999\r\n\r\nhi", b"hi"),
    "length-as-a-list": (OK + b"Content-Length: 5, 5\r\n\r\nhello", b"hello"),
    "length-and-chunked": (
        OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"hello",
    ),
    "chunked-and-length": (
        OK + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"hello",
    ),
    "chunked-twice": (OK + b"Transfer-Encoding: chunked\r\n" * 2 + b"\r\n5\r\nhello\r\n0\r\n\r\n", b"hello"),
    "chunks-with-line-feeds": (CHUNKED + b"5\nhello\n0\n\n", b"hello"),
    "chunks-with-extensions": (CHUNKED + b"5;a=b\r\nhello\r\n0;x\r\n\r\n", b"hello"),
    "no-transfer-coding": (OK + b"Transfer-Encoding: identity\r\n\r\nhello", b"hello"),
    "nul-in-the-body": (page(b"a\0b"), b"a\0b"),
    "header-without-a-name": (OK + b": nameless\r\n\r\nhello", b"hello"),
    "blank-before-a-colon": (b"HTTP/1.1 200 OK\r\nContent-Type : text/html\r\n\r\nhi", b"hi"),
    "folded-type": (b"HTTP/1.1 200 OK\r\nContent-Type:\r\n text/html\r\n\r\nhi", b"hi"),
    "status-299": (b"HTTP/1.1 299 Odd\r\n\r\nhi", b"hi"),
    "tabs-in-the-status-line": (b"HTTP/1.1\t200\tOK\r\n\r\nhi", b"hi"),
    "garbage-after-the-end": (page(b"hello") + b"\0HTTP/1.1 500 No\r\n\r\n", b"hello"),
    "a-second-response": (page(b"hello") + page(b"other"), b"hello"),
    "no-body-at-all": (OK + b"\r\n", b""),
    "fifty-interim-heads": (b"HTTP/1.1 102 Wait\r\n\r\n" * 50 + page(b"hello"), b"hello"),
    "an-unrequested-upgrade": (OK + b"Upgrade: h2c\r\nConnection: upgrade\r\n\r\nhi", b"hi"),
    "a-refresh": (OK + b"Refresh: 0; url=/x\r\n\r\nhi", b"hi"),
}
FAILURES = {
    "length-too-long": (OK + b"Content-Length: 50\r\n\r\nhello", FailureKind.RESET),
    "length-too-long-for-memory": (OK + b"Content-Length: 9223372036854775807\r\n\r\nhello", FailureKind.RESET),
    "length-and-nothing": (OK + b"Content-Length: 5\r\n\r\n", FailureKind.RESET),
    "length-negative": (OK + b"Content-Length: -5\r\n\r\nhello", FailureKind.PROTOCOL),
    "length-in-words": (OK + b"Content-Length: five\r\n\r\nhello", FailureKind.PROTOCOL),
    "length-empty": (OK + b"Content-Length:\r\n\r\nhello", FailureKind.PROTOCOL),
    "length-with-a-sign": (OK + b"Content-Length: +5\r\n\r\nhello", FailureKind.PROTOCOL),
    "length-in-hex": (OK + b"Content-Length: 0x5\r\n\r\nhello", FailureKind.PROTOCOL),
    "lengths-that-differ": (OK + b"Content-Length: 5, 6\r\n\r\nhello", FailureKind.PROTOCOL),
    "chunk-negative": (CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n", FailureKind.PROTOCOL),
    "chunk-beyond-all-numbers": (CHUNKED + b"ffffffffffffffff\r\nhello", FailureKind.PROTOCOL),
    "chunk-of-endless-zeros": (CHUNKED + b"0" * 10_000, FailureKind.PROTOCOL),
    "chunk-too-long": (CHUNKED + b"7fffffffffffffff\r\nhello", FailureKind.RESET),
    "chunk-without-its-line-end": (CHUNKED + b"5\r\nhello5\r\nhello", FailureKind.PROTOCOL),
    "chunks-without-the-last": (CHUNKED + b"5\r\nhello\r\n", FailureKind.RESET),
    "chunks-without-the-end": (CHUNKED + b"5\r\nhello\r\n0\r\n", FailureKind.RESET),
    "trailer-without-end": (CHUNKED + b"0\r\nX: " + b"y" * 300_000, FailureKind.PROTOCOL),
    "an-unknown-transfer-coding": (OK + b"Transfer-Encoding: foo\r\n\r\nhi", FailureKind.ENCODING),
    "nul-in-the-status-line": (b"HTTP/1.1 200 O\0K\r\n\r\nhello", FailureKind.PROTOCOL),
    "nul-in-a-name": (OK + b"X\0Y: a\r\n\r\nhello", FailureKind.PROTOCOL),
    "no-colon": (OK + b"what is this\r\n\r\nhello", FailureKind.PROTOCOL),
    "a-fold-of-nothing": (b"HTTP/1.1 200 OK\r\n folded\r\n\r\nhello", FailureKind.PROTOCOL),
    "endless-folds": (OK + b"X: a\r\n" + b" b\r\n" * 100_000, FailureKind.PROTOCOL),
    "cr-in-a-value": (OK + b"X: a\rb\r\n\r\nhello", FailureKind.PROTOCOL),
    "cr-alone": (b"HTTP/1.1 200 OK\rContent-Type: text/html\r\rhello", FailureKind.RESET),
    "endless-cr": (OK + b"\r" * 500_000, FailureKind.PROTOCOL),
    "endless-status-line": (b"HTTP/1.1 200 " + b"a" * 500_000, FailureKind.PROTOCOL),
    "a-hundred-thousand-interim-heads": (b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000, FailureKind.PROTOCOL),
    "status-000": (b"HTTP/1.1 000 X\r\n\r\nhello", FailureKind.PROTOCOL),
    "status-099": (b"HTTP/1.1 099 X\r\n\r\nhello", FailureKind.PROTOCOL),
    "status-20": (b"HTTP/1.1 20 X\r\n\r\nhello", FailureKind.PROTOCOL),
    "status-1000": (b"HTTP/1.1 1000 X\r\n\r\nhello", FailureKind.PROTOCOL),
    "status-negative": (b"HTTP/1.1 -20 X\r\n\r\nhello", FailureKind.PROTOCOL),
    "interim-and-a-body": (b"HTTP/1.1 199 X\r\n\r\nhello", FailureKind.PROTOCOL),
    "no-blank-before-the-status": (b"HTTP/1.1200 OK\r\n\r\nhello", FailureKind.PROTOCOL),
    "http-0.9-by-name": (b"HTTP/0.9 200 OK\r\n\r\nhello", FailureKind.PROTOCOL),
    "http-1.2": (b"HTTP/1.2 200 OK\r\n\r\nhello", FailureKind.PROTOCOL),
    "http-3": (b"HTTP/3 200 OK\r\n\r\nhello", FailureKind.PROTOCOL),
    "http-9.9": (b"HTTP/9.9 200 OK\r\n\r\nhello", FailureKind.PROTOCOL),
    "lower-case": (b"http/1.1 200 OK\r\n\r\nhello", FailureKind.PROTOCOL),
    "icecast": (b"ICY 200 OK\r\n\r\nhello", FailureKind.PROTOCOL),
    "a-blank-line-first": (b"\r\nHTTP/1.1 200 OK\r\n\r\nhello", FailureKind.PROTOCOL),
    "endless-blank-lines": (b"\r\n" * 100_000, FailureKind.PROTOCOL),
    "a-byte-order-mark-first": (b"\xef\xbb\xbfHTTP/1.1 200 OK\r\n\r\nhi", FailureKind.PROTOCOL),
    "utf-16": ("HTTP/1.1 200 OK\r\n\r\nhello".encode("utf-16"), FailureKind.PROTOCOL),
    "http-2-frames": (b"\0\0\x12\4\0\0\0\0\0" + b"\0" * 18, FailureKind.PROTOCOL),
    "http-2-preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", FailureKind.PROTOCOL),
}
REFUSALS = {
    "status-600": (b"HTTP/1.1 600 X\r\n\r\nhello", 600),
    "status-304-unasked": (b"HTTP/1.1 304 Not Modified\r\n\r\nhello", 304),
    "status-204-with-a-body": (b"HTTP/1.1 204 No Content\r\n\r\nhello", 204),
    "redirect-to-nothing": (b"HTTP/1.1 301 Moved\r\nLocation: \r\n\r\n", 301),
    "a-password-is-wanted": (b"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=x\r\n\r\n", 401),
    "a-proxy-password-is-wanted": (b"HTTP/1.1 407 No\r\nProxy-Authenticate: Negotiate\r\n\r\n", 407),
}


@pytest.mark.parametrize(("response", "body"), PAGES.values(), ids=PAGES)
@on_loop
async def test_these_are_still_pages(response: bytes, body: bytes) -> None:
    outcome = await outcome_of([response])
    assert isinstance(outcome, Fetched), outcome
    assert (outcome.body, outcome.truncated, outcome.response.marks) == (body, False, ())


@pytest.mark.parametrize(("response", "kind"), FAILURES.values(), ids=FAILURES)
@on_loop
async def test_these_fail(response: bytes, kind: FailureKind) -> None:
    outcome = await outcome_of([response])
    assert failure(outcome) is kind
    assert isinstance(outcome, Failed) and outcome.detail and outcome.address == "127.0.0.1"


@pytest.mark.parametrize(("response", "status"), REFUSALS.values(), ids=REFUSALS)
@on_loop
async def test_these_are_refusals(response: bytes, status: int) -> None:
    outcome = await outcome_of([response])
    assert isinstance(outcome, Refused) and outcome.response.status == status


@pytest.mark.parametrize("kind", ["pages", "failures"])
@on_loop
async def test_all_of_them_at_once(kind: str) -> None:
    """Each script runs twice among all the others, the second time with its first bytes sent one by one."""
    table = PAGES if kind == "pages" else FAILURES
    scripts: list[Script] = []
    for response, _ in table.values():
        pieces = [response[n : n + 1] for n in range(min(len(response), 300))]
        scripts += [[response], [*pieces, response[300:]]]
    outcomes = await asyncio.gather(*map(outcome_of, scripts))
    for outcome in outcomes:
        assert isinstance(outcome, Fetched if kind == "pages" else Failed), outcome


@on_loop
async def test_a_location_that_is_too_long_is_dropped() -> None:
    head = b"HTTP/1.1 301 Moved\r\nLocation: "
    outcome = await outcome_of([head + b"x" * MAX_LOCATION + b"\r\n\r\n", Act.HOLD])
    assert isinstance(outcome, Redirected) and outcome.response.marks == ()
    outcome = await outcome_of([head + b"x" * (MAX_LOCATION + 1) + b"\r\n\r\n", Act.HOLD])
    assert isinstance(outcome, Refused) and outcome.response.marks == (Mark.LOCATION_DROPPED,)


@on_loop
async def test_a_media_type_is_cut_to_its_maximum_length() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: " + b"x" * 50_000 + b"\r\n\r\n"
    outcome = await outcome_of([head, Act.HOLD])
    assert isinstance(outcome, WrongType) and outcome.response.media_type == "x" * MAX_MEDIA_TYPE
