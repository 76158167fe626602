"""What a fetch returns: a closed set of outcomes, which callers `match` on.

A fetch never raises for what the web does. It returns one of these.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import msgspec

MAX_MEDIA_TYPE = 255
"""RFC 6838 4.2: two names of at most 127 characters and a slash; a server may send anything."""


class FailureKind(enum.StrEnum):
    """Why a request brought no usable response."""

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
    """The answer began, and then came in by drops."""
    RESET = "reset"
    PROTOCOL = "protocol"
    ENCODING = "encoding"
    ABORTED = "aborted"
    BUSY = "busy"
    """Our own trouble: too many connections of ours to its address, for as long as a request may take (--per-ip), or
    none to be had, as files or ports had run out."""


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
    {
        FailureKind.CONNECT,
        FailureKind.TLS,
        FailureKind.TIMEOUT_CONNECT,
        FailureKind.RESET,
        FailureKind.PROTOCOL,
    }
)
"""Failures after which a bare domain of the seeds is tried over http: https is not spoken there."""


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """The head of an answer."""

    url: str
    status: int
    status_line: str
    headers: Sequence[tuple[str, str]]
    """As sent, in order, names in the server's spelling, bytes decoded as latin-1."""
    address: str
    """The address that answered, without the port."""
    waited: float = 0.0
    """Seconds that passed for our sake: before it was asked, for other connections of ours to its address to end, and
    while its body was not taken, for want of memory."""
    marks: tuple[str, ...] = ()
    """What was cut, dropped or doubtful about the answer, by name."""

    def header(self, name: str) -> str | None:
        """The first value of a header, by its lower-case name."""
        for key, value in self.headers:
            if key.lower() == name:
                return value
        return None

    def all_headers(self, name: str) -> list[str]:
        """All values of a header that may be sent several times, by its lower-case name."""
        return [value for key, value in self.headers if key.lower() == name]

    @property
    def media_type(self) -> str:
        """The lower-case media type without parameters, '' when none was sent."""
        sent = (self.header("content-type") or "").partition(";")[0]
        return sent.strip().lower()[:MAX_MEDIA_TYPE]


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """A 2xx answer whose body was read."""

    response: Response
    body: bytes
    """Content decoded."""
    wire_body: bytes
    """As sent, after any transfer coding; the same object as `body` when no content coding was used."""
    truncated: bool
    """The body was longer than the cap and is cut."""


class Redirected(msgspec.Struct, frozen=True, kw_only=True):
    """A 3xx answer with a Location, which is as sent (perhaps relative)."""

    response: Response
    location: str


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """The server's status says no: 4xx, 5xx, or a 3xx that leads nowhere."""

    response: Response


class WrongType(msgspec.Struct, frozen=True, kw_only=True):
    """A 2xx answer of a type that is not read; closed after the headers."""

    response: Response


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """No usable answer."""

    kind: FailureKind
    detail: str
    address: str = ""
    status: int = 0
    """The status, where the failure came after it."""
    marks: tuple[str, ...] = ()
    """What was doubtful about it, by name."""
    waited: float = 0.0
    """As of a Response."""
    shortage: bool = False
    """There was no file, port or buffer for it on this machine."""


Outcome = Fetched | Redirected | Refused | WrongType | Failed
