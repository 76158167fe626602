"""The fetcher: takes a request and returns an outcome, for every behaviour of the server.

The router names the addresses that may be used (route.py), and libcurl, driven by asyncio, connects to exactly those.
Each request has a connection of its own, because the crawl comes back to a host only after its delay, when the server
would have closed it. Only within a visit may a connection stay open for the next request (visit_connection.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pycurl
from msgspec.structs import replace

from rove.fetch.address import AddressGuard
from rove.fetch.address_room import AddressRoom
from rove.fetch.connect_to import ConnectRule
from rove.fetch.contract import Request
from rove.fetch.dns import Resolver
from rove.fetch.exchange import Exchange
from rove.fetch.handle import CurlHandle
from rove.fetch.limits import Deadlines, FetchLimits
from rove.fetch.phases import Phases
from rove.fetch.route import Route, Router
from rove.fetch.tls import KnownSites
from rove.fetch.visit_connection import IdleConnection, VisitConnection
from rove.model.outcomes import Failed, FailureKind, Outcome
from rove.resources.loop_lag import LoopLag
from rove.urls.canonical import CrawlUrl

MIN_LAG = 0.2
"""Event-loop lag below this is not subtracted from the server's response time."""
_UNCONNECTED = (FailureKind.CONNECT, FailureKind.TIMEOUT_CONNECT)
"""Failures after which another address might do better."""


class _Attempt(NamedTuple):
    """A request to one of its addresses."""

    request: Request
    route: Route
    address: str
    deadlines: Deadlines
    limits: FetchLimits


class CurlFetcher:
    """Fetches with libcurl, hundreds of requests at a time."""

    def __init__(
        self,
        *,
        user_agent: str,
        resolver: Resolver,
        guard: AddressGuard | None = None,
        connect_to: Iterable[ConnectRule] = (),
        limits: FetchLimits | None = None,
        room: AddressRoom | None = None,
        authorities: Path | None = None,
        strict_tls: bool = False,
        phases: Phases | None = None,
    ) -> None:
        """Set up a fetcher for the running event loop.

        `room` limits the visits to one address; None means no limit. `authorities` is the CA file that certificates are
        checked against. `strict_tls` refuses pages with bad certificates instead of marking them. `phases` records how
        long the phases of requests take.
        """
        self._new_handle = partial(CurlHandle, user_agent=user_agent, authorities=authorities)
        self._strict_tls = strict_tls
        self._known_sites = KnownSites()
        self._router = Router(resolver=resolver, guard=guard or AddressGuard(), connect_to=connect_to)
        self._limits = limits or FetchLimits()
        self._brief_limits = self._limits.brief()
        self._room = room
        self._multi = pycurl.AsyncCurlMulti()
        self._unused: list[CurlHandle] = []
        self._idle: set[IdleConnection] = set()
        self._clock = asyncio.get_running_loop().time
        self._phases = phases
        self._lag = LoopLag()

    async def reserve(self, url: CrawlUrl, connection: VisitConnection, *, within: float) -> float:
        """Take room for a visit at the address of a URL; return 0, or the seconds until there may be room."""
        if self._room is None:
            return 0.0
        route = await self._router.route(url, min(within, self._limits.connect))
        connection.keep_route(url.origin, route)
        if isinstance(route, Failed) or not route.is_limited or any(map(connection.has_room_at, route.addresses)):
            return 0.0
        room = self._room.take(route.addresses)
        if room is None:
            return self._room.wait_for(route.addresses)
        connection.occupy(self._room, room)
        return 0.0

    async def fetch(self, request: Request) -> Outcome:
        """Make one request. Never raises for what the web does; cancelling it closes the connection."""
        lag_before = self._lag.seconds
        started = self._clock()
        timeout = min(self._limits.total, request.timeout)
        route = None if request.connection is None else request.connection.take_route(request.url.origin)
        if route is None:
            route = await self._router.route(request.url, min(timeout, self._limits.connect))
        if isinstance(route, Failed):
            return route
        outcome = await self._try_addresses(request, route, started + timeout, started + request.timeout)
        lag = self._lag.seconds - lag_before
        return _add_wait(outcome, lag) if lag > MIN_LAG else outcome

    def look_ahead(self, origin: str) -> None:
        """Begin to look up the name of an origin that a visit will need soon."""
        self._router.look_ahead(origin)

    @property
    def names_answered_from(self) -> float:
        """The latest start of a lookup that a name server answered."""
        return self._router.names_answered_from

    @property
    def lag_seconds(self) -> float:
        """The lag of the event loop so far, in seconds."""
        return self._lag.seconds

    @property
    def longest_lag(self) -> float:
        """The longest stop of the event loop so far, in seconds."""
        return self._lag.longest

    def take_longest_lag(self) -> float:
        """Return the longest stop of the event loop since the last call, in seconds."""
        return self._lag.take_longest()

    def accounts(self) -> dict[str, str]:
        """Return what the fetcher holds, for a report. Another thread may call this."""
        return {
            "libcurl handles": f"{len(self._unused):,} unused",
            "connections left open for the next request": f"{len(self._idle):,}",
            "sites whose TLS was checked": f"{self._known_sites.remembered:,}",
            **({} if self._room is None else {"addresses visited lately": f"{self._room.remembered:,}"}),
        }

    def forget_failures(self) -> None:
        """Look names up again that could not be found."""
        self._router.forget_failures()

    async def close(self) -> None:
        """Abort all requests, then free the handles and the resolver."""
        self._lag.close()
        for connection in list(self._idle):
            connection.close()
        await self._multi.aclose()
        await self._router.close()
        for handle in self._unused:
            handle.close()
        self._unused.clear()

    # Trying addresses

    async def _try_addresses(self, request: Request, route: Route, deadline: float, latest: float) -> Outcome:
        """Try one address after the other until one accepts the connection."""
        clock = self._clock
        limits = self._brief_limits if request.is_brief else self._limits
        untried = self._in_order(request, route)
        idle = self._take_idle(request, route)
        connect_left = limits.connect
        outcome: Outcome | None = None
        while True:
            address = untried[0] if idle is None else idle.address
            if outcome is not None and not self._has_room(request, route, address):
                return outcome
            now = clock()
            deadlines = Deadlines(
                # the last address gets all the time that is left, any other one half of it
                connect=now + (connect_left / 2 if len(untried) > 1 else connect_left),
                total=deadline,
                with_pauses=latest,
            )
            attempt = _Attempt(request, route, address, deadlines, limits)
            outcome = await self._try(attempt, None if idle is None else idle.handle)
            idle = None
            connect_left -= clock() - now
            untried.remove(address)
            if not untried or not isinstance(outcome, Failed) or outcome.kind not in _UNCONNECTED:
                return outcome

    def _in_order(self, request: Request, route: Route) -> list[str]:
        """Return the addresses of a route; those come first at which the visit has room."""
        connection = request.connection
        if connection is None:
            return list(route.addresses)
        return sorted(route.addresses, key=lambda address: not connection.has_room_at(address))

    def _has_room(self, request: Request, route: Route, address: str) -> bool:
        """Whether the visit may use a further address; takes room there if need be."""
        connection = request.connection
        if self._room is None or connection is None or not route.is_limited or connection.has_room_at(address):
            return True
        room = self._room.take([address])
        if room is not None:
            connection.occupy(self._room, room)
        return room is not None

    async def _try(self, attempt: _Attempt, handle: CurlHandle | None) -> Outcome:
        """Try one address, over the open connection of `handle` if there is one.

        If its TLS is doubtful, a second attempt accepts and marks it, unless TLS must be strict.
        """
        origin = attempt.route.origin
        marks = None if self._strict_tls else self._known_sites.marks(origin)
        # a connection that was made strictly serves only strict requests
        if marks is not None and (handle is None or not handle.is_strict):
            return _with_marks(await self._exchange(attempt, handle, strict=False), marks)
        outcome = await self._exchange(attempt, handle, strict=True)
        marks = ()
        if isinstance(outcome, Failed) and outcome.marks and not self._strict_tls:
            marks = outcome.marks
            outcome = await self._exchange(attempt, None, strict=False)
        if attempt.route.is_secure and not isinstance(outcome, Failed):
            self._known_sites.note(origin, marks)
        return _with_marks(outcome, marks)

    async def _exchange(self, attempt: _Attempt, handle: CurlHandle | None, *, strict: bool) -> Outcome:
        if handle is None:
            handle = self._unused.pop() if self._unused else self._new_handle()
        request, route, address, deadlines, limits = attempt
        try:
            if self._multi.closed:
                return Failed(kind=FailureKind.ABORTED, detail="the fetcher was closed")
            exchange = Exchange(handle, request, address=address, deadlines=deadlines, limits=limits)
            outcome = await exchange.run(self._multi, port=route.port, strict=strict)
            if self._phases is not None:
                self._phases.note(handle.curl)
            return outcome
        finally:
            if request.connection is not None and request.keep_open and handle.is_open:
                request.connection.idle = self._leave_open(handle, route, address)
            else:
                self._put_back(handle)

    # Handles and the connections they hold open

    def _put_back(self, handle: CurlHandle) -> None:
        """Close the handle's connection and make the handle available to other requests."""
        if self._multi.closed:
            handle.close()
        else:
            handle.hang_up()
            self._unused.append(handle)

    def _leave_open(self, handle: CurlHandle, route: Route, address: str) -> IdleConnection:
        connection = IdleConnection(
            handle, route, address=address, seconds=self._limits.keep_open, on_close=self._on_idle_closed
        )
        self._idle.add(connection)
        return connection

    def _on_idle_closed(self, connection: IdleConnection) -> None:
        self._idle.discard(connection)
        self._put_back(connection.handle)

    def _take_idle(self, request: Request, route: Route) -> IdleConnection | None:
        """Take the visit's open connection if the request can use it; close it if not."""
        if request.connection is None:
            return None
        idle, request.connection.idle = request.connection.idle, None
        if idle is None:
            return None
        if idle.fits(route):
            idle.take()
            self._idle.discard(idle)
            return idle
        idle.close()
        return None


def _with_marks(outcome: Outcome, marks: tuple[str, ...]) -> Outcome:
    if isinstance(outcome, Failed) or not marks:
        return outcome
    response = replace(outcome.response, marks=(*marks, *outcome.response.marks))
    return replace(outcome, response=response)


def _add_wait(outcome: Outcome, seconds: float) -> Outcome:
    """Add to the time that the request waited for rove itself and not for the server."""
    if isinstance(outcome, Failed):
        return replace(outcome, waited=outcome.waited + seconds)
    waited = outcome.response.waited + seconds
    return replace(outcome, response=replace(outcome.response, waited=waited))
