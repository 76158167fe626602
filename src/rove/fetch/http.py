"""The fetcher: takes a request and returns an outcome, for every behaviour of the server.

The router names the addresses that may be used (route.py), and libcurl, driven by asyncio, connects to exactly those.
Each request has a connection of its own, because the crawl comes back to a host only after its delay, when the server
would have closed it. Only within a visit may a connection stay open for the next request (visit_connection.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pycurl
from msgspec.structs import replace

from rove.fetch.address import AddressGuard
from rove.fetch.address_slots import AddressSlots
from rove.fetch.connect_to import ConnectRule
from rove.fetch.contract import Request
from rove.fetch.dns import Resolver
from rove.fetch.exchange import Exchange
from rove.fetch.handle import CurlHandle
from rove.fetch.limits import Deadlines, FetchLimits
from rove.fetch.loop_lag import LoopLag
from rove.fetch.route import Route, Router
from rove.fetch.tls import KnownSites
from rove.fetch.visit_connection import IdleConnection
from rove.model.outcomes import Failed, FailureKind, Outcome

MIN_WAIT = 0.001
"""A shorter wait for a free address is not worth noting."""
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
        per_address: int | None = None,
        authorities: Path | None = None,
        strict_tls: bool = False,
    ) -> None:
        """Set up a fetcher for the running event loop.

        `per_address` limits the open connections to one address. `authorities` is the CA file that certificates are
        checked against. `strict_tls` refuses pages with bad certificates instead of marking them.
        """
        self._new_handle = partial(CurlHandle, user_agent=user_agent, authorities=authorities)
        self._strict_tls = strict_tls
        self._known_sites = KnownSites()
        self._router = Router(resolver=resolver, guard=guard or AddressGuard(), connect_to=connect_to)
        self._limits = limits or FetchLimits()
        self._slots = None if per_address is None else AddressSlots(per_address)
        self._multi = pycurl.AsyncCurlMulti()
        self._unused: list[CurlHandle] = []
        self._idle: set[IdleConnection] = set()
        self._clock = asyncio.get_running_loop().time
        self._lag = LoopLag()

    async def fetch(self, request: Request) -> Outcome:
        """Make one request. Never raises for what the web does; cancelling it closes the connection."""
        lag_before = self._lag.seconds
        started = self._clock()
        timeout = min(self._limits.total, request.timeout)
        route = await self._router.route(request.url, min(timeout, self._limits.connect))
        if isinstance(route, Failed):
            return route
        outcome = await self._try_addresses(request, route, started + timeout, started + request.timeout)
        lag = self._lag.seconds - lag_before
        return _add_wait(outcome, lag) if lag > MIN_LAG else outcome

    @property
    def names_answered_from(self) -> float:
        """The latest start of a lookup that a name server answered."""
        return self._router.names_answered_from

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
        untried = list(route.addresses)
        idle = self._take_idle(request, route)
        connect_left = self._limits.connect
        last_tried, waited = "", 0.0
        while True:
            waiting_since = clock()
            if idle is not None:
                address: str | None = idle.address
            else:
                address = await self._acquire(untried, deadline - waiting_since)
            if address is None:
                detail = f"{', '.join(untried)} stayed busy with as many connections as are allowed"
                return Failed(kind=FailureKind.BUSY, detail=detail, address=last_tried)
            now = clock()
            waited += now - waiting_since
            deadlines = Deadlines(
                # the last address gets all the time that is left, any other one half of it
                connect=now + (connect_left / 2 if len(untried) > 1 else connect_left),
                total=deadline,
                with_pauses=latest,
            )
            attempt = _Attempt(request, route, address, deadlines)
            try:
                outcome = await self._try(attempt, None if idle is None else idle.handle)
            finally:
                idle = None
                # a connection that stays open still occupies its slot
                if request.connection is None or request.connection.idle is None:
                    self._release(address)
            connect_left -= clock() - now
            last_tried = address
            untried.remove(address)
            if not untried or not isinstance(outcome, Failed) or outcome.kind not in _UNCONNECTED:
                return _add_wait(outcome, waited) if waited > MIN_WAIT else outcome

    async def _acquire(self, addresses: Sequence[str], within: float) -> str | None:
        return addresses[0] if self._slots is None else await self._slots.acquire(addresses, within)

    def _release(self, address: str) -> None:
        if self._slots is not None:
            self._slots.release(address)

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
        request, route, address, deadlines = attempt
        try:
            if self._multi.closed:
                return Failed(kind=FailureKind.ABORTED, detail="the fetcher was closed")
            exchange = Exchange(handle, request, address=address, deadlines=deadlines, limits=self._limits)
            return await exchange.run(self._multi, port=route.port, strict=strict)
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
        self._release(connection.address)

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
