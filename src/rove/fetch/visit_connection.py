"""The connection that one request of a visit leaves open for the next one.

A page is requested right after its robots.txt, and one connection for both saves a TLS handshake. The connection
belongs to its visit: no other visit can use it, and it closes when the visit ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rove.fetch.handle import CurlHandle
from rove.fetch.route import Route


class VisitConnection:
    """Holds the connection that is open between two requests of a visit."""

    __slots__ = ("idle",)

    def __init__(self) -> None:
        self.idle: IdleConnection | None = None

    def close(self) -> None:
        """Close the connection if one is open."""
        idle, self.idle = self.idle, None
        if idle is not None:
            idle.close()


class IdleConnection:
    """An open connection that waits for the next request, with its handle and its slot at the address."""

    def __init__(
        self,
        handle: CurlHandle,
        route: Route,
        *,
        address: str,
        seconds: float,
        on_close: Callable[[IdleConnection], None],
    ) -> None:
        """Wait for `seconds`. `on_close` frees the handle and the slot of a connection that was not used again."""
        self.handle = handle
        self.address = address
        self._route = route
        self._on_close = on_close
        self._is_waiting = True
        self._timer = asyncio.get_running_loop().call_later(seconds, self.close)

    def fits(self, route: Route) -> bool:
        """Whether a request may use it: same origin, at an address that was checked for this request."""
        return (
            self._is_waiting
            and (route.origin, route.port) == (self._route.origin, self._route.port)
            and self.address in route.addresses
            and self.handle.is_silent
        )

    def take(self) -> None:
        """Hand the connection over to a request."""
        self._is_waiting = False
        self._timer.cancel()

    def close(self) -> None:
        """Close the connection if it is still waiting. Closing it twice is harmless."""
        if self._is_waiting:
            self.take()
            self._on_close(self)
