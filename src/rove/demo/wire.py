"""Parse HTTP/1.1 requests and frame responses, as pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from rove.demo.response import CODINGS, WebResponse

BLANK_LINE = b"\r\n\r\n"
_MAX_HEAD = 65_536
_CHUNK = 1_000
_METHOD_START = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_REASONS = {status.value: status.phrase for status in HTTPStatus}


@dataclass(slots=True)
class RequestHead:
    """The parts of a request that the server needs."""

    method: str
    host: str
    """Lower case, without port."""
    target: str
    agent: str
    codings: tuple[str, ...]
    """Content codings that the client accepts."""
    keep_alive: bool
    chunks: bool
    """The client understands chunked responses (HTTP/1.1)."""


def is_not_http(start: bytes) -> bool:
    """Whether the first bytes of a client cannot become a request, for example a TLS hello."""
    return start[0] not in _METHOD_START or (len(start) > _MAX_HEAD and BLANK_LINE not in start[:_MAX_HEAD])


def parse_head(head: bytes) -> RequestHead | None:
    """Parse the head of a request, without its final blank line; None if it is invalid."""
    text = head.decode("latin-1")
    line, _, fields = text.partition("\r\n")
    parts = line.split(" ")
    if len(parts) != 3 or not parts[1].startswith("/") or parts[2] not in ("HTTP/1.1", "HTTP/1.0"):
        return None
    headers = {}
    for field in fields.split("\r\n"):
        name, _, value = field.partition(":")
        headers[name.lower()] = value.strip()
    accepted = headers.get("accept-encoding", "")
    connection = headers.get("connection", "").lower()
    modern = parts[2] == "HTTP/1.1"
    return RequestHead(
        method=parts[0],
        host=headers.get("host", "").partition(":")[0].rstrip(".").lower(),
        target=parts[1],
        agent=headers.get("user-agent", ""),
        codings=tuple(coding for coding in CODINGS if coding in accepted),
        keep_alive=connection != "close" if modern else connection == "keep-alive",
        chunks=modern,
    )


def frame(response: WebResponse, request: RequestHead) -> bytes:
    """Return the bytes that are sent to the client, cut short if the response says so."""
    body = response.body
    chunked = response.chunked and request.chunks
    lines = [f"HTTP/1.1 {response.status} {_REASONS[response.status]}", "Server: small-web"]
    lines.extend(f"{name}: {value}" for name, value in response.headers)
    lines.append("Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}")
    lines.append("Connection: keep-alive" if request.keep_alive else "Connection: close")
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    if request.method == "HEAD":
        return head
    if chunked:
        return head + _chunks(body)
    return head + (body if response.cut_after is None else body[: response.cut_after])


def _chunks(body: bytes) -> bytes:
    parts = []
    for start in range(0, len(body), _CHUNK):
        piece = body[start : start + _CHUNK]
        parts.append(b"%x\r\n%b\r\n" % (len(piece), piece))
    return b"".join(parts) + b"0\r\n\r\n"
