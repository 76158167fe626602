"""Finds the addresses that a request may connect to.

A connect-to rule, an address in the URL, or DNS names them, and the address guard must permit them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from rove.fetch.address import AddressGuard
from rove.fetch.connect_to import ConnectRule, ConnectTo
from rove.fetch.dns import Resolver
from rove.model.outcomes import Failed, FailureKind
from rove.policy.ports import BAD_PORTS
from rove.urls.canonical import CrawlUrl
from rove.urls.domain import is_address
from rove.urls.origin import host_and_port

MAX_ADDRESSES = 3
"""Addresses of one host that a request tries."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Where to connect for a URL."""

    addresses: Sequence[str]
    """At least one, in the order in which to try them."""
    port: int
    origin: str
    is_limited: bool = True
    """Whether the limits on visits to one address apply. They do not where the user named the address."""

    @property
    def is_secure(self) -> bool:
        """Whether the request goes over TLS."""
        return self.origin.startswith("https:")


class Router:
    """Turns URLs into checked addresses."""

    def __init__(self, *, resolver: Resolver, guard: AddressGuard, connect_to: Iterable[ConnectRule]) -> None:
        self._resolver = resolver
        self._guard = guard
        self._connect_to = ConnectTo(connect_to)

    async def route(self, url: CrawlUrl, within: float) -> Route | Failed:
        """Find the addresses for a URL. A DNS lookup must end `within` these seconds."""
        host, port = host_and_port(url.origin)
        if port in BAD_PORTS:
            detail = f"rove does not connect to port {port}, which belongs to another protocol"
            return Failed(kind=FailureKind.PORT_REFUSED, detail=detail)
        rule = self._connect_to.find(host)
        if rule is not None:
            # The guard is for addresses that the web names. The user named this one.
            return Route(addresses=(rule.address,), port=rule.port or port, origin=url.origin, is_limited=False)
        addresses: Sequence[str] | Failed
        if is_address(host):
            addresses = (host.strip("[]"),)
        else:
            addresses = await self._resolver.resolve(host, within)
            if isinstance(addresses, Failed):
                return addresses
        permitted = [address for address in addresses if self._guard.permits(address)]
        if not permitted:
            return Failed(
                kind=FailureKind.ADDRESS_REFUSED,
                detail=f"{host} leads to {addresses[0]}, which is not a public address",
                address=addresses[0],
            )
        return Route(addresses=permitted[:MAX_ADDRESSES], port=port, origin=url.origin)

    def look_ahead(self, origin: str) -> None:
        """Begin to look up the name of an origin, if it needs to be looked up."""
        host, port = host_and_port(origin)
        if port not in BAD_PORTS and not is_address(host) and self._connect_to.find(host) is None:
            self._resolver.look_ahead(host)

    @property
    def names_answered_from(self) -> float:
        """The latest start of a lookup that a name server answered."""
        return self._resolver.answered_from

    def forget_failures(self) -> None:
        """Look names up again that could not be found."""
        self._resolver.forget_failures()

    async def close(self) -> None:
        """Close the resolver."""
        await self._resolver.close()
