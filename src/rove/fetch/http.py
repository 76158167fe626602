"""The fetcher: a request in, an outcome out, whatever the web does in between.

A name is resolved, its addresses pass the guard, and libcurl, driven by asyncio, dials exactly the
address that was checked. Each request has a connection of its own: a crawl comes back to a host
after its delay, when a kept connection would be gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pycurl

from rove.fetch.address import AddressGuard
from rove.fetch.connect_to import ConnectRule, ConnectTo
from rove.fetch.dns import Resolver
from rove.fetch.per_address import PerAddress
from rove.fetch.transfer import Transfer
from rove.model import Failed, FailureKind, Outcome, Request
from rove.url import is_address, parse_base

NO_WAIT = 0.001
MAX_ADDRESSES = 3
"""How many addresses of one name are tried."""
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds that the parts of a request may take."""

    connect: float = 10.0
    """For the name, and again for connecting, TLS included."""
    first_byte: float = 20.0
    """From the request to the first line of the answer."""
    total: float = 60.0


def limits_within(total: float) -> Limits:
    """The limits of a request that may take so long in all; its parts are shorter where they must be."""
    usual = Limits()
    return Limits(
        connect=min(usual.connect, total / 2),
        first_byte=min(usual.first_byte, total * 2 / 3),
        total=total,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where to dial for a URL."""

    addresses: Sequence[str]
    port: int


class CurlFetcher:
    """Fetches with libcurl; hundreds of requests may be under way at once."""

    def __init__(
        self,
        *,
        user_agent: str,
        resolver: Resolver,
        guard: AddressGuard | None = None,
        connect_to: Iterable[ConnectRule] = (),
        limits: Limits | None = None,
        per_address: int | None = None,
    ) -> None:
        """`per_address` is how many connections to one address may be open at once; None: any."""
        self._user_agent = user_agent
        self._resolver = resolver
        self._guard = guard or AddressGuard()
        self._connect_to = ConnectTo(connect_to)
        self._limits = limits or Limits()
        self._places = None if per_address is None else PerAddress(per_address)
        self._multi = pycurl.AsyncCurlMulti()
        self._idle: list[Transfer] = []
        self._in_flight = 0

    @property
    def in_flight(self) -> int:
        """How many requests are under way."""
        return self._in_flight

    async def fetch(self, request: Request) -> Outcome:
        """Make one request; never raises for what the web does. Cancelling closes the connection."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + min(self._limits.total, request.timeout)
        self._in_flight += 1
        try:
            route = await self._route(request.url, deadline - loop.time())
            if isinstance(route, Failed):
                return route
            return await self._try_addresses(request, route, deadline)
        finally:
            self._in_flight -= 1

    async def close(self) -> None:
        """Abort what is under way, then free the handles and the resolver."""
        await self._multi.aclose()
        await self._resolver.close()
        for transfer in self._idle:
            transfer.close()
        self._idle.clear()

    async def _route(self, url: str, seconds: float) -> Route | Failed:
        """The addresses that may be dialled for a URL, at most MAX_ADDRESSES."""
        parsed = parse_base(url) if url.isascii() and url.isprintable() else None
        host = None if parsed is None else parsed.host_str
        if parsed is None or not host or parsed.scheme not in _PORTS:
            return Failed(kind=FailureKind.PROTOCOL, detail="not a canonical http or https URL")
        port = _PORTS[parsed.scheme] if parsed.port is None else parsed.port
        found: Sequence[str] | Failed
        rule = self._connect_to.find(host)
        if rule is not None:
            found, port = (rule.address,), rule.port or port
        elif (host[-1].isdigit() or host[-1] == "]") and is_address(host):
            found = (host.strip("[]"),)
        else:
            found = await self._resolver.resolve(host, min(seconds, self._limits.connect))
            if isinstance(found, Failed):
                return found
        # A rule's address is not asked of the guard: who runs the crawl named it, no page did.
        permitted = [one for one in found if rule is not None or self._guard.permits(one)]
        if not permitted:
            return Failed(
                kind=FailureKind.ADDRESS_REFUSED,
                detail=f"{host} leads to {found[0]}, which is not a public address",
                address=found[0],
            )
        return Route(addresses=permitted[:MAX_ADDRESSES], port=port)

    async def _try_addresses(self, request: Request, route: Route, deadline: float) -> Outcome:
        """Ask one address after the other, until there is a connection."""
        loop = asyncio.get_running_loop()
        left = list(route.addresses)
        connect_left = self._limits.connect
        dialled, waited = "", 0.0
        while True:
            now = loop.time()
            address = await self._place(left, deadline - now)
            if address is None:
                return _busy(left, dialled)
            waited += loop.time() - now
            now = loop.time()
            try:
                outcome = await self._ask(
                    request,
                    address=address,
                    port=route.port,
                    connect=connect_left,
                    total=deadline - now,
                )
            finally:
                if self._places is not None:
                    self._places.give_back(address)
            connect_left -= loop.time() - now
            dialled = address
            left.remove(address)
            if not (left and _is_unconnected(outcome)):
                return _after_waiting(outcome, waited) if waited > NO_WAIT else outcome

    async def _place(self, addresses: Sequence[str], within: float) -> str | None:
        """The address to dial next; None if all stayed busy."""
        if self._places is None:
            return addresses[0]
        return await self._places.take(addresses, within)

    async def _ask(
        self, request: Request, *, address: str, port: int, connect: float, total: float
    ) -> Outcome:
        if self._multi.closed:
            return Failed(kind=FailureKind.ABORTED, detail="the fetcher was closed")
        transfer = self._idle.pop() if self._idle else Transfer(user_agent=self._user_agent)
        try:
            return await transfer.run(
                self._multi,
                request,
                address=address,
                port=port,
                connect=connect,
                first_byte=self._limits.first_byte,
                total=total,
            )
        finally:
            if self._multi.closed:
                transfer.close()
            else:
                transfer.reset()
                self._idle.append(transfer)


def _is_unconnected(outcome: Outcome) -> bool:
    """Whether another address might do better."""
    return isinstance(outcome, Failed) and outcome.kind is FailureKind.CONNECT


def _after_waiting(outcome: Outcome, seconds: float) -> Outcome:
    if isinstance(outcome, Failed):
        return outcome
    return replace(outcome, response=replace(outcome.response, waited=seconds))


def _busy(addresses: Sequence[str], dialled: str) -> Failed:
    """No place in time; the address is one that was dialled before, if any was."""
    return Failed(
        kind=FailureKind.BUSY,
        detail=f"{', '.join(addresses)} stayed busy with as many connections as are allowed",
        address=dialled,
    )
