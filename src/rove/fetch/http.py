"""The fetcher: a request in, an outcome out, whatever the web does in between.

A name is resolved, its addresses pass the guard, and libcurl, driven by asyncio, dials exactly the
address that was checked. Each request has a connection of its own: a crawl comes back to a host
after its delay, when a kept connection would be gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pycurl

from rove.fetch.address import AddressGuard
from rove.fetch.connect_to import ConnectRule, ConnectTo
from rove.fetch.dns import Resolver
from rove.fetch.transfer import Transfer
from rove.model import Failed, FailureKind, Outcome, Request
from rove.url import is_address, parse_base

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
    ) -> None:
        self._user_agent = user_agent
        self._resolver = resolver
        self._guard = guard or AddressGuard()
        self._connect_to = ConnectTo(connect_to)
        self._limits = limits or Limits()
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
        limits = self._limits
        deadline = loop.time() + min(limits.total, request.timeout)
        self._in_flight += 1
        try:
            route = await self._route(request.url, deadline - loop.time())
            if isinstance(route, Failed):
                return route
            connect_by = loop.time() + limits.connect
            for address in route.addresses:
                now = loop.time()
                outcome = await self._ask(
                    request,
                    address=address,
                    port=route.port,
                    connect=connect_by - now,
                    total=deadline - now,
                )
                if not isinstance(outcome, Failed) or outcome.kind is not FailureKind.CONNECT:
                    break
            return outcome
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
        permitted = [address for address in found if self._guard.permits(address)]
        if not permitted:
            return Failed(
                kind=FailureKind.ADDRESS_REFUSED,
                detail=f"{host} leads to {found[0]}, which is not a public address",
                address=found[0],
            )
        return Route(addresses=permitted[:MAX_ADDRESSES], port=port)

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
