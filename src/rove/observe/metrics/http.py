"""The little of HTTP that the metrics need, as pure functions: parse a request, frame a response."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Self

_LINE = re.compile(r"([A-Z]{1,20}) (/[!-~]*) HTTP/1\.[01]")
_END_OF_LINE = re.compile(r"\r?\n")
_METHODS = ("GET", "HEAD")
PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Request:
    """A GET or HEAD request."""

    path: str
    """Without the query."""
    headers: dict[str, str] = field(default_factory=dict)
    """By their names in lower case; a header that is sent twice is joined with a comma."""
    is_head: bool = False


@dataclass(frozen=True, slots=True)
class Response:
    """A response."""

    status: HTTPStatus
    body: bytes
    media_type: str = PLAIN

    @classmethod
    def brief(cls, status: HTTPStatus) -> Self:
        """Return a response that says no more than its status."""
        return cls(status, f"{status.phrase}\n".encode())

    def encoded(self, *, has_body: bool) -> bytes:
        """Return the response as it is sent."""
        lines = [
            f"HTTP/1.1 {self.status.value} {self.status.phrase}",
            f"Content-Type: {self.media_type}",
            f"Content-Length: {len(self.body)}",
            "Cache-Control: no-store",
            "Connection: close",
            "X-Content-Type-Options: nosniff",
            *(["Allow: " + ", ".join(_METHODS)] if self.status is HTTPStatus.METHOD_NOT_ALLOWED else []),
        ]
        return "\r\n".join([*lines, "", ""]).encode() + (self.body if has_body else b"")


def parse_request(head: bytes, most: int) -> Request | Response:
    """Parse what a client sent up to the blank line; return the response instead if there is nothing to look up.

    `most` is the number of bytes that a request may have.

    >>> parse_request(b"GET /metrics?x=1 HTTP/1.1\\r\\nAccept: */*\\r\\n\\r\\n", 100)
    Request(path='/metrics', headers={'accept': '*/*'}, is_head=False)
    """
    line, *fields = _END_OF_LINE.split(head.decode("latin-1"))
    parts = _LINE.fullmatch(line)
    if len(head) > most:
        return Response.brief(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
    if parts is None:
        return Response.brief(HTTPStatus.BAD_REQUEST)
    method, target = parts.groups()
    if method not in _METHODS:
        return Response.brief(HTTPStatus.METHOD_NOT_ALLOWED)
    headers: dict[str, str] = {}
    for text in fields:
        name, _, value = text.partition(":")
        name = name.strip().lower()
        headers[name] = f"{headers[name]}, {value.strip()}" if name in headers else value.strip()
    headers.pop("", None)
    return Request(target.partition("?")[0], headers, is_head=method == "HEAD")
