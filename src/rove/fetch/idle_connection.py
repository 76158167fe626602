"""A connection that waits for the next request of its visit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from rove.fetch.transfer import Transfer

KEPT_SECONDS = 3.0
"""For which a connection is left open; the next request mostly comes within a few milliseconds."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Where to dial for a URL."""

    addresses: Sequence[str]
    port: int
    origin: str

    @property
    def is_secure(self) -> bool:
        """Whether the request goes over TLS."""
        return self.origin.startswith("https:")


class KeptConnection:
    """One connection, with the handle that holds it and the place at its address."""

    __slots__ = (
        "_let_go",
        "_origin",
        "_port",
        "_timer",
        "_waits",
        "address",
        "is_strict",
        "transfer",
    )

    def __init__(
        self,
        transfer: Transfer,
        *,
        route: Route,
        address: str,
        is_strict: bool,
        let_go: Callable[[KeptConnection], None],
    ) -> None:
        """`let_go` closes it, when its time is over or it is of no use."""
        self.transfer = transfer
        self.address = address
        self.is_strict = is_strict
        """Its certificate was checked, if it has one."""
        self._origin, self._port = route.origin, route.port
        self._let_go = let_go
        self._waits = True
        self._timer = asyncio.get_running_loop().call_later(KEPT_SECONDS, self.close)

    def leads_to(self, route: Route) -> bool:
        """Whether a request may use it: to the same origin, at an address that was checked for this request."""
        return (
            self._waits
            and route.origin == self._origin
            and route.port == self._port
            and self.address in route.addresses
            and self.transfer.is_silent
        )

    def take(self) -> None:
        """Use it: it waits no longer."""
        self._waits = False
        self._timer.cancel()

    def close(self) -> None:
        """Close it, if it waits."""
        if self._waits:
            self.take()
            self._let_go(self)
