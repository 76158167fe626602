"""Limits on the time and bandwidth that a server may take for one request."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """Timeouts of the parts of a request, in seconds, and the slowest acceptable transfer."""

    connect: float = 10.0
    """For the DNS lookup, and again for connecting, TLS included."""
    first_byte: float = 20.0
    """From sending the request to the first line of the response."""
    brief_connect: float = 4.0
    """Instead of `connect` while slots are short. A lost SYN is sent again after one second and after three."""
    brief_first_byte: float = 6.0
    """Instead of `first_byte` while slots are short."""
    total: float = 60.0
    window: float = 20.0
    """The transfer rate is measured over this time."""
    min_rate: float = 256.0
    """Bytes of head and body per second. A slower server holds a connection for nothing."""
    check_interval: float = 1.0
    """Time between two checks of a transfer's progress."""
    max_overhead: int = 16 * 1024 * 1024
    """Bytes that a connection may receive beyond head and body: framing, TLS, and what the kernel still buffers."""
    keep_open: float = 3.0
    """A connection waits this long for the next request of its visit, which mostly comes within milliseconds."""

    def brief(self) -> FetchLimits:
        """Return the limits for a server that may hold a slot only briefly."""
        return replace(
            self,
            connect=min(self.connect, self.brief_connect),
            first_byte=min(self.first_byte, self.brief_first_byte),
        )


class Deadlines(msgspec.Struct, frozen=True, kw_only=True):
    """The deadlines of one request, in the event loop's time."""

    connect: float
    total: float
    with_pauses: float
    """The latest end of a transfer that had to wait for memory."""


def limits_within(total: float) -> FetchLimits:
    """Return the default limits, shortened to fit a request that may take `total` seconds."""
    default = FetchLimits()
    return FetchLimits(
        connect=min(default.connect, total / 2),
        first_byte=min(default.first_byte, total * 2 / 3),
        total=total,
        window=min(default.window, total * 2 / 3),
    )
