"""What a server may take of a request's time, and of the network, before it is left."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """Seconds that the parts of a request may take, and how fast an answer must come in."""

    connect: float = 10.0
    """For the name, and again for connecting, TLS included."""
    first_byte: float = 20.0
    """From the request to the first line of the answer."""
    total: float = 60.0
    window: float = 20.0
    """Seconds over which the rate of an answer is taken, from its first line on."""
    least_rate: float = 256.0
    """Bytes of head and body a second, over a window. One who sends less holds a connection for nothing."""


def limits_within(total: float) -> FetchLimits:
    """The limits of a request that may take so long in all; its parts are shorter where they must be."""
    usual = FetchLimits()
    return FetchLimits(
        connect=min(usual.connect, total / 2),
        first_byte=min(usual.first_byte, total * 2 / 3),
        total=total,
        window=min(usual.window, total * 2 / 3),
    )
