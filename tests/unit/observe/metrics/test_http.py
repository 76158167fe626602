"""Requests for metrics as bytes."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from rove.observe.metrics.http import Request, Response, parse_request

MOST = 1000


def parsed(head: bytes) -> Request | Response:
    return parse_request(head, MOST)


def test_get_and_head_are_understood() -> None:
    assert parsed(b"GET / HTTP/1.0\r\n\r\n") == Request("/")
    assert parsed(b"HEAD /metrics?a=b HTTP/1.1\nhost: x\n\n") == Request("/metrics", {"host": "x"}, is_head=True)


def test_a_header_that_comes_twice_is_joined() -> None:
    request = parsed(b"GET / HTTP/1.1\r\nAccept: a\r\nno colon\r\nACCEPT:  b \r\n\r\n")
    assert isinstance(request, Request) and request.headers["accept"] == "a, b"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\n\r\n", HTTPStatus.METHOD_NOT_ALLOWED),
        (b"PRI * HTTP/2.0\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"GET http://other/ HTTP/1.1\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"GET /a b HTTP/1.1\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"\x16\x03\x01\x02\x00\x01\n\n", HTTPStatus.BAD_REQUEST),
        (b"\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"GET / HTTP/1.1\r\nx: " + MOST * b"y", HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
    ],
)
def test_everything_else_gets_its_status(head: bytes, status: HTTPStatus) -> None:
    response = parsed(head)
    assert isinstance(response, Response) and response.status is status


def test_a_refused_method_is_told_which_are_allowed() -> None:
    sent = Response.brief(HTTPStatus.METHOD_NOT_ALLOWED).encoded(has_body=True)
    head, _, body = sent.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 405 Method Not Allowed\r\n") and b"\r\nAllow: GET, HEAD" in head
    assert body == b"Method Not Allowed\n"
    assert Response.brief(HTTPStatus.OK).encoded(has_body=False).endswith(b"\r\n\r\n")
