"""Holds a visit's room at the addresses of its servers, and the connection that it left open.

A page is requested right after its robots.txt, and one connection for both saves a TLS handshake. The connection
belongs to its visit: no other visit can use it, and it closes when the visit ends. The same is true of the room.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rove.fetch.address_room import AddressRoom, Room
from rove.fetch.handle import CurlHandle
from rove.fetch.route import Route
from rove.model.outcomes import Failed


class VisitConnection:
    """Holds the room that a visit has taken, and the connection that is open between two of its requests."""

    __slots__ = ("_rooms", "_route", "idle")

    def __init__(self) -> None:
        self.idle: IdleConnection | None = None
        self._rooms: dict[str, tuple[AddressRoom, Room]] = {}
        self._route: tuple[str, Route | Failed] | None = None

    def close(self) -> None:
        """Close the connection if one is open, and give back all room."""
        idle, self.idle = self.idle, None
        if idle is not None:
            idle.close()
        for rooms, room in self._rooms.values():
            rooms.give_back(room)
        self._rooms.clear()

    def has_room_at(self, address: str) -> bool:
        """Whether the visit has taken room at an address."""
        return address in self._rooms

    def occupy(self, rooms: AddressRoom, room: Room) -> None:
        """Hold room at an address until the visit ends."""
        self._rooms[room.address] = (rooms, room)

    def keep_route(self, origin: str, route: Route | Failed) -> None:
        """Keep the route of the next request, so that its name is looked up only once."""
        self._route = (origin, route)

    def take_route(self, origin: str) -> Route | Failed | None:
        """Return the route that was kept for a request to this origin, if there is one. It serves one request."""
        kept, self._route = self._route, None
        return kept[1] if kept is not None and kept[0] == origin else None


class IdleConnection:
    """An open connection that waits for the next request, with its handle."""

    def __init__(
        self,
        handle: CurlHandle,
        route: Route,
        *,
        address: str,
        seconds: float,
        on_close: Callable[[IdleConnection], None],
    ) -> None:
        """Wait for `seconds`. `on_close` frees the handle of a connection that was not used again."""
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
