"""Heads of responses: parsing, and the decision whether to read the body."""

from __future__ import annotations

import pytest

from rove.fetch.head import ReadBody, judge, parse_head, parse_status
from rove.model.outcomes import Failed, FailureKind, Redirected, Refused, Response, WrongType

HTML = frozenset({"text/html"})


def response(status: int, *headers: tuple[str, str]) -> Response:
    return Response(
        url="http://a.test/", status=status, status_line=f"HTTP/1.1 {status} Word", headers=headers, address="192.0.2.1"
    )


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"HTTP/1.1 200 OK\r\n", 200),
        (b"HTTP/1.0 404\n", 404),
        (b"HTTP/1.1  503  Busy\r\n", 503),
        (b"HTTP/1.1\r\n", None),
        (b"HTTP/1.1 2000 OK\r\n", None),
        (b"HTTP/1.1 abc OK\r\n", None),
        (b"ICY 200 OK\r\n", None),
        (b"\r\n", None),
    ],
)
def test_the_status_is_read(line: bytes, status: int | None) -> None:
    assert parse_status(line) == status


def test_headers_keep_order_spelling_and_bytes() -> None:
    lines = [
        b"HTTP/1.1 200 T\xe9st \r\n",
        b"Set-Cookie: a=1\r\n",
        b"X-Caf\xe9:\t caf\xc3\xa9:x \r\n",
        b"set-cookie:b=2\n",
        b"Server : odd\r\n",
        b"Empty:\r\n",
        b"no colon\r\n",
    ]
    head = parse_head(lines, url="http://a.test/", address="192.0.2.1", status=200)
    assert head.status_line == "HTTP/1.1 200 T\xe9st"
    assert head.headers == [
        ("Set-Cookie", "a=1"),
        ("X-Caf\xe9", "caf\xc3\xa9:x"),
        ("set-cookie", "b=2"),
        ("Server", "odd"),
        ("Empty", ""),
    ]


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
def test_a_location_redirects(status: int) -> None:
    head = response(status, ("LOCATION", "../b"), ("Location", "/second"))
    assert judge(head, HTML) == Redirected(response=head, location="../b")


def test_a_location_in_utf_8_is_read_as_such() -> None:
    sent = "/caf\u00e9".encode().decode("latin-1")
    assert judge(response(301, ("Location", sent)), HTML) == Redirected(
        response=response(301, ("Location", sent)), location="/caf\u00e9"
    )
    assert judge(response(301, ("Location", "/caf\xe9")), HTML) == Redirected(
        response=response(301, ("Location", "/caf\xe9")), location="/caf\xe9"
    )


@pytest.mark.parametrize("status", [204, 205, 301, 304, 400, 401, 404, 410, 429, 500, 503, 999])
def test_other_answers_refuse(status: int) -> None:
    assert judge(response(status), HTML) == Refused(response=response(status))


def test_a_location_with_another_status_is_ignored() -> None:
    for status in (204, 304, 404):
        head = response(status, ("Location", "/b"))
        assert judge(head, HTML) == Refused(response=head)
    empty = response(302, ("Location", ""))
    assert judge(empty, HTML) == Refused(response=empty)


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ([("Content-Type", "text/html")], True),
        ([("content-type", " Text/HTML ; charset=x")], True),
        ([], True),
        ([("Content-Type", "")], True),
        ([("Content-Type", "image/png")], False),
        ([("Content-Type", "html")], False),
        ([("Content-Type", "image/png"), ("Content-Type", "text/html")], False),
    ],
)
def test_the_type_decides(headers: list[tuple[str, str]], wanted: bool) -> None:
    head = response(200, *headers)
    assert isinstance(judge(head, HTML), ReadBody if wanted else WrongType)
    assert isinstance(judge(head, None), ReadBody)


def test_a_missing_type_counts_as_html() -> None:
    assert isinstance(judge(response(200), frozenset({"text/plain"})), WrongType)


def test_the_plan_for_the_body() -> None:
    head = response(200, ("Content-Encoding", "gzip"), ("content-encoding", "br"))
    assert judge(head, HTML) == ReadBody(codings=("gzip", "br"), delimited=False)
    for name in ("Content-Length", "Transfer-Encoding"):
        head = response(200, (name, "7"))
        assert judge(head, HTML) == ReadBody(codings=(), delimited=True)


def test_an_unknown_coding_fails_at_the_head() -> None:
    outcome = judge(response(200, ("Content-Encoding", "zstd")), HTML)
    assert isinstance(outcome, Failed)
    assert (outcome.kind, outcome.status, outcome.address) == (FailureKind.ENCODING, 200, "192.0.2.1")
