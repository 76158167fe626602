"""Ends transfers that are not worth waiting for.

A server can hold a connection for a long time by sending a byte now and then. It can also send forever without a byte
of body, in chunk extensions, which libcurl reads and drops. So a transfer that lasts longer than a second is checked
every second: against the minimum rate, and against the bytes that its connection has received in all.
"""

from __future__ import annotations

import os
import socket
import struct

from rove.fetch.limits import FetchLimits
from rove.model.outcomes import FailureKind

_TCP_INFO_LENGTH = 136
_BYTES_RECEIVED = 128
"""Offset of tcpi_bytes_received, in Linux since 4.1."""

Trouble = tuple[FailureKind, str]
"""Why a transfer must end: the kind of failure and a sentence."""


class RateGuard:
    """Watches the progress of one response."""

    __slots__ = ("_earlier", "_limits", "_sent_at", "_window")

    def __init__(self, limits: FetchLimits, *, sent_at: float, earlier: int = 0) -> None:
        """`earlier` is the size of the responses that the same connection brought before."""
        self._limits = limits
        self._sent_at = sent_at
        self._earlier = earlier
        self._window: tuple[float, int] | None = None
        """When the current window began, and the size of the response at that time."""

    def restart(self) -> None:
        """Start a new window at the next check."""
        self._window = None

    def check(self, *, now: float, size: int, received: int | None) -> Trouble | None:
        """Return why the transfer must end, or None.

        `size` counts the response's head and body so far, `received` everything that its connection received.
        """
        limits = self._limits
        if not size:
            if now - self._sent_at < limits.first_byte:
                return None
            detail = f"no response within {limits.first_byte:.1f} s of the request"
            return FailureKind.TIMEOUT_FIRST_BYTE, detail
        if self._window is None:
            self._window = now, size
            return None
        useful = self._earlier + size
        if received is not None and received > 2 * useful + limits.max_overhead:
            return FailureKind.PROTOCOL, f"{received:,} bytes were sent for {useful:,} of a response"
        began, size_then = self._window
        if now - began < limits.window:
            return None
        rate = (size - size_then) / (now - began)
        if rate < limits.min_rate:
            return FailureKind.TOO_SLOW, f"{rate:.0f} bytes/s over {now - began:.0f} s"
        self._window = now, size
        return None


def seconds_to_check(limits: FetchLimits) -> float:
    """Return the time until the next check of a transfer."""
    return min(limits.check_interval, limits.first_byte, limits.window)


def received_bytes(descriptor: int) -> int | None:
    """Return the bytes that a TCP connection has received, or None where the system does not tell."""
    if descriptor < 0 or not hasattr(socket, "TCP_INFO"):
        return None
    try:
        with socket.socket(fileno=os.dup(descriptor)) as connection:
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_LENGTH)
    except OSError:
        return None
    if len(info) < _TCP_INFO_LENGTH:
        return None
    (received,) = struct.unpack_from("=Q", info, _BYTES_RECEIVED)
    return int(received)
