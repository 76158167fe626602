"""The outcomes of a fetch: a closed set that callers `match` on.

A fetch never raises for what the web does. It returns one of these.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import msgspec

MAX_MEDIA_TYPE = 255
"""RFC 6838 4.2: two names of at most 127 characters and a slash. A server may send more."""


class FailureKind(enum.StrEnum):
    """Why a request got no usable response."""

    DNS_NOT_FOUND = "dns-not-found"
    DNS = "dns"
    ADDRESS_REFUSED = "address-refused"
    PORT_REFUSED = "port-refused"
    CONNECT = "connect"
    TLS = "tls"
    TIMEOUT_CONNECT = "timeout-connect"
    TIMEOUT_FIRST_BYTE = "timeout-first-byte"
    TIMEOUT_TOTAL = "timeout-total"
    TOO_SLOW = "too-slow"
    """The response began, but then arrived too slowly."""
    RESET = "reset"
    PROTOCOL = "protocol"
    ENCODING = "encoding"
    ABORTED = "aborted"
    BUSY = "busy"
    """This process could not make the request: files, ports or memory ran out."""


TEMPORARY_FAILURES = frozenset(
    {
        FailureKind.DNS,
        FailureKind.CONNECT,
        FailureKind.TIMEOUT_CONNECT,
        FailureKind.TIMEOUT_FIRST_BYTE,
        FailureKind.TIMEOUT_TOTAL,
        FailureKind.TOO_SLOW,
        FailureKind.RESET,
        FailureKind.BUSY,
    }
)


UNREACHABLE_FAILURES = frozenset(
    {FailureKind.CONNECT, FailureKind.TLS, FailureKind.TIMEOUT_CONNECT, FailureKind.RESET, FailureKind.PROTOCOL}
)
"""Failures that suggest a server without https. A seed given as a bare domain is then tried over http."""


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """The head of a response."""

    url: str
    status: int
    status_line: str
    headers: Sequence[tuple[str, str]]
    """In the server's order and spelling, decoded as latin-1."""
    address: str
    """The IP address of the server."""
    waited: float = 0.0
    """Seconds that do not count against the server: for memory, and event-loop lag."""
    marks: tuple[str, ...] = ()
    """Names of what was cut, dropped or doubtful."""

    def header(self, name: str) -> str | None:
        """Return the first value of a header; `name` is in lower case."""
        for key, value in self.headers:
            if key.lower() == name:
                return value
        return None

    def all_headers(self, name: str) -> list[str]:
        """Return all values of a header; `name` is in lower case."""
        return [value for key, value in self.headers if key.lower() == name]

    @property
    def media_type(self) -> str:
        """The media type in lower case and without parameters, '' if there is none."""
        sent = (self.header("content-type") or "").partition(";")[0]
        return sent.strip().lower()[:MAX_MEDIA_TYPE]


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """A 2xx response whose body was read."""

    response: Response
    body: bytes
    """The decoded content."""
    wire_body: bytes
    """The content as sent, without transfer coding. The same object as `body` if there is no content coding."""
    truncated: bool
    """The body was longer than the cap and was cut."""


class Redirected(msgspec.Struct, frozen=True, kw_only=True):
    """A 3xx response with a Location, which may be relative."""

    response: Response
    location: str


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A 4xx or 5xx response, or a 3xx response without a usable Location."""

    response: Response


class WrongType(msgspec.Struct, frozen=True, kw_only=True):
    """A 2xx response of a type that rove does not read. The connection closes after the head."""

    response: Response


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """A request without a usable response."""

    kind: FailureKind
    detail: str
    address: str = ""
    status: int = 0
    """The status of the response if the request failed after it; otherwise 0."""
    marks: tuple[str, ...] = ()
    """Names of what was doubtful."""
    waited: float = 0.0
    """Seconds that do not count against the server, see Response."""
    shortage: bool = False
    """This machine had no file, port or memory left for it."""


Outcome = Fetched | Redirected | Refused | WrongType | Failed
