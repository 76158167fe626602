"""How an answer comes in: whether it is still worth waiting for.

A server can hold a connection for long by sending a byte now and then, and it can send for ever without a byte of body,
in the extensions of chunks, which libcurl reads and drops. So a transfer that takes longer than a second is looked at
once a second: against the least rate, and against what its connection has received in all.
"""

from __future__ import annotations

import os
import socket
import struct

from rove.fetch.limits import FetchLimits
from rove.model.outcomes import FailureKind

TICK = 1.0
"""Seconds between two looks at a transfer."""
MAX_OVERHEAD = 16 * 1024 * 1024
"""Bytes that a connection may have received beyond head and body: framing, TLS, and what the system still holds."""

_TCP_INFO_LENGTH = 136
_BYTES_RECEIVED = 128
"""Where Linux keeps tcpi_bytes_received, since 4.1."""

Trouble = tuple[FailureKind, str]


class RateGuard:
    """The rate of one answer, from the first look after its first line on."""

    __slots__ = ("_at", "_counted", "_limits")

    def __init__(self, limits: FetchLimits, *, now: float, counted: int) -> None:
        self._limits = limits
        self._at = now
        self._counted = counted

    def judge(self, *, now: float, counted: int, received: int | None) -> Trouble | None:
        """Why the transfer must end, if so; `counted` are bytes of head and body, `received` all of the connection."""
        if received is not None and received > 2 * counted + MAX_OVERHEAD:
            return (
                FailureKind.PROTOCOL,
                f"{received:,} bytes were sent for {counted:,} of an answer",
            )
        passed = now - self._at
        if passed < self._limits.window:
            return None
        rate = (counted - self._counted) / passed
        if rate < self._limits.least_rate:
            return FailureKind.TOO_SLOW, f"{rate:.0f} bytes a second over {passed:.0f} s"
        self._at, self._counted = now, counted
        return None


def look_again_in(limits: FetchLimits) -> float:
    """Seconds from one look at a transfer to the next."""
    return min(TICK, limits.first_byte, limits.window)


def received_bytes(descriptor: int) -> int | None:
    """What a connection has received in all; None where the system does not say."""
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
