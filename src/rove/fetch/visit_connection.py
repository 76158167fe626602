"""The connection that one request of a visit leaves open for the next one.

Who asks for a robots.txt asks for a page of the same origin in the next moment; over one connection that is a TLS
handshake less for both sides. What is left open belongs to one visit: no other can use it, and it ends with it.
"""

from __future__ import annotations

from typing import Protocol


class IdleConnection(Protocol):
    """A connection that was left open, as whoever made it knows it."""

    def close(self) -> None:
        """Close it; once is enough."""


class VisitConnection:
    """What a visit has open between two requests: one connection at most."""

    __slots__ = ("kept",)

    def __init__(self) -> None:
        self.kept: IdleConnection | None = None

    def close(self) -> None:
        """Leave nothing open."""
        kept, self.kept = self.kept, None
        if kept is not None:
            kept.close()
