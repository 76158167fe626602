"""Parses the head of a response and decides whether to read the body.

Pure: takes header lines, returns a Response and a decision.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from rove.fetch.body import Undecodable, parse_codings
from rove.model.marks import Mark
from rove.model.outcomes import Failed, FailureKind, Redirected, Refused, Response, WrongType

MAX_HEAD_BYTES = 256 * 1024
MAX_HEAD_LINES = 200
"""Including interim heads (1xx) and trailers."""
MAX_LOCATION = 8_000
"""Limit on the characters of a Location, far above the longest URL that rove crawls."""
MAX_DRAINED = 16 * 1024
"""An unwanted body up to this size is read to its end if that keeps the connection usable."""

_BLANK = " \t\r\n"
_NOT_MODIFIED = 304
_TOO_MANY = 429
_BODILESS = frozenset({204, 205, 304})
_DECIDING = frozenset({"content-type", "location", "transfer-encoding", "content-length"})


class ReadBody(msgspec.Struct, frozen=True, kw_only=True):
    """The decision to read the body."""

    codings: tuple[str, ...]
    delimited: bool
    """The head announces where the body ends, so the end of the connection is not the end of the body."""


def parse_status(status_line: bytes) -> int | None:
    """Return the status code of a status line, or None.

    >>> parse_status(b"HTTP/1.1 200 OK"), parse_status(b"200 OK")
    (200, None)
    """
    parts = status_line.split(None, 2)
    if len(parts) < 2 or not parts[0].startswith(b"HTTP/"):
        return None
    code = parts[1]
    return int(code) if len(code) == 3 and code.isdigit() else None


def parse_head(lines: Sequence[bytes], *, url: str, address: str, status: int) -> Response:
    """Parse the lines of a head, from the status line to the last header, each with its line end."""
    status_line, *fields = b"".join(lines).decode("latin-1").split("\n")
    # libcurl rejects lines without a colon and joins folded lines (RFC 9112 5.2)
    headers = [
        (name.rstrip(_BLANK), value.strip(_BLANK))
        for name, colon, value in [field.partition(":") for field in fields]
        if colon
    ]
    return Response(url=url, status=status, status_line=status_line.rstrip(_BLANK), headers=headers, address=address)


def judge(
    response: Response, accept_types: frozenset[str] | None
) -> ReadBody | Redirected | Refused | WrongType | Failed:
    """Decide after a head: read the body, or return the outcome that the head makes certain."""
    headers: dict[str, str] = {}
    coding_headers: list[str] = []
    for key, value in response.headers:
        name = key.lower()
        if name in _DECIDING:
            headers.setdefault(name, value)
        elif name == "content-encoding":
            coding_headers.append(value)
    status = response.status
    location = headers.get("location", "")
    if 300 <= status < 400 and status not in _BODILESS and location:
        if len(location) > MAX_LOCATION:
            return Refused(response=replace(response, marks=(Mark.LOCATION_DROPPED,)))
        return Redirected(response=response, location=_as_text(location))
    if not 200 <= status < 300 or status in _BODILESS:
        return Refused(response=response)
    # RFC 9110 8.3: the recipient may guess a missing type. On the web it is nearly always HTML.
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower() or "text/html"
    if accept_types is not None and media_type not in accept_types:
        return WrongType(response=response)
    codings = parse_codings(coding_headers)
    if isinstance(codings, Undecodable):
        return Failed(kind=FailureKind.ENCODING, detail=codings.detail, address=response.address, status=status)
    delimited = "content-length" in headers or "transfer-encoding" in headers
    return ReadBody(codings=codings, delimited=delimited)


def is_worth_draining(response: Response) -> bool:
    """Whether to read an unwanted body to its end, so that the connection can serve another request.

    False for redirects, which mostly lead to another origin, and for responses after which the visit ends.
    """
    status = response.status
    if (status != _NOT_MODIFIED and not 400 <= status < 500) or status == _TOO_MANY:
        return False
    if (response.header("connection") or "").lower() == "close":
        return False
    if status == _NOT_MODIFIED or response.header("transfer-encoding") is not None:
        return True
    announced = response.header("content-length") or ""
    return announced.isdecimal() and len(announced) < 10 and int(announced) <= MAX_DRAINED


def max_body_size(response: Response, limit: int) -> int:
    """Return the size that a body may reach: the announced one, or `limit`."""
    announced = response.header("content-length") or ""
    # RFC 9112 6.3: a chunked body overrides Content-Length
    if not announced.isdecimal() or response.header("transfer-encoding") is not None:
        return limit
    return min(int(announced[:20]), limit)


def _as_text(location: str) -> str:
    """Decode a Location as UTF-8, as browsers do; its bytes came as latin-1."""
    if location.isascii():
        return location
    try:
        return location.encode("latin-1").decode()
    except UnicodeDecodeError:
        return location
