"""The fetcher: a request in, an outcome out, whatever the web does in between.

A name is resolved, its addresses pass the guard, and libcurl, driven by asyncio, dials exactly the
address that was checked. Each request has a connection of its own, since a crawl comes back to a host
after its delay, when a kept connection would be gone; only within a visit, one may be left open for
the next request (kept.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from rove.fetch.address import AddressGuard
from rove.fetch.connect_to import ConnectRule, ConnectTo
from rove.fetch.contract import Request
from rove.fetch.curl_loop import CurlLoop
from rove.fetch.dns import Resolver
from rove.fetch.handle import Identity
from rove.fetch.idle_connection import KeptConnection, Route
from rove.fetch.limits import FetchLimits
from rove.fetch.loop_lag import LoopLag
from rove.fetch.per_address import PerAddress
from rove.fetch.tls import KnownSites
from rove.fetch.transfer import Times, Transfer
from rove.model.outcomes import Failed, FailureKind, Outcome
from rove.policy.ports import BAD_PORTS
from rove.urls.canonical import parse_base
from rove.urls.domain import is_address
from rove.urls.origin import DEFAULT_PORTS

NO_WAIT = 0.001
LATE = 0.2
"""Seconds by which the event loop may be late during a request without a word."""
MAX_ADDRESSES = 3
"""How many addresses of one name are tried."""
_UNCONNECTED = (FailureKind.CONNECT, FailureKind.TIMEOUT_CONNECT)


class CurlFetcher:
    """Fetches with libcurl; hundreds of requests may be under way at once."""

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
        """`per_address` is how many connections to one address may be open at once; None: any.

        `authorities` is the file that certificates are checked against; with `strict_tls`, those that do not hold are
        refused instead of marked.
        """
        self._identity = Identity(user_agent=user_agent, authorities=authorities)
        self._strict_tls = strict_tls
        self._known_sites = KnownSites()
        self._resolver = resolver
        self._guard = guard or AddressGuard()
        self._connect_to = ConnectTo(connect_to)
        self._limits = limits or FetchLimits()
        self._places = None if per_address is None else PerAddress(per_address)
        self._multi = CurlLoop()
        self._idle: list[Transfer] = []
        self._kept: set[KeptConnection] = set()
        self._in_flight = 0
        self._clock: Callable[[], float] | None = None
        self._lag: LoopLag | None = None

    @property
    def in_flight(self) -> int:
        """How many requests are under way."""
        return self._in_flight

    async def fetch(self, request: Request) -> Outcome:
        """Make one request; never raises for what the web does. Cancelling closes the connection."""
        clock = self._clock = self._clock or asyncio.get_running_loop().time
        started = clock()
        deadline = started + min(self._limits.total, request.timeout)
        lag = self._lag = self._lag or LoopLag()
        late_before = lag.seconds
        self._in_flight += 1
        try:
            route = await self._route(request.url, deadline - clock())
            if isinstance(route, Failed):
                return route
            outcome = await self._try_addresses(
                request, route, clock, deadline=deadline, latest=started + request.timeout
            )
            late = lag.seconds - late_before
            return _after_waiting(outcome, late) if late > LATE else outcome
        finally:
            self._in_flight -= 1

    async def close(self) -> None:
        """Abort what is under way, then free the handles and the resolver."""
        if self._lag is not None:
            self._lag.close()
        for kept in list(self._kept):
            kept.close()
        self._multi.close()
        await self._resolver.close()
        for transfer in self._idle:
            transfer.close()
        self._idle.clear()

    async def _route(self, url: str, seconds: float) -> Route | Failed:
        """The addresses that may be dialled for a URL, at most MAX_ADDRESSES."""
        parsed = parse_base(url) if url.isascii() and url.isprintable() else None
        host = None if parsed is None else parsed.host_str
        if parsed is None or not host or parsed.scheme not in DEFAULT_PORTS:
            return Failed(kind=FailureKind.PROTOCOL, detail="not a canonical http or https URL")
        port = DEFAULT_PORTS[parsed.scheme] if parsed.port is None else parsed.port
        if port in BAD_PORTS:
            return Failed(
                kind=FailureKind.PORT_REFUSED, detail=f"port {port} is not one of the web"
            )
        authority = f"{host}:{port}"
        site = authority if parsed.scheme == "https" else ""
        origin = f"{parsed.scheme}://{authority}"
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
        return Route(addresses=permitted[:MAX_ADDRESSES], port=port, site=site, origin=origin)

    async def _try_addresses(
        self,
        request: Request,
        route: Route,
        clock: Callable[[], float],
        *,
        deadline: float,
        latest: float,
    ) -> Outcome:
        """Ask one address after the other, until there is a connection; until `latest` if its body waits for memory."""
        left = list(route.addresses)
        kept = self._take_kept(request, route)
        connect_left = self._limits.connect
        dialled, waited = "", 0.0
        while True:
            now = clock()
            address = await self._place(left, deadline - now) if kept is None else kept.address
            if address is None:
                return _busy(left, dialled)
            waited += clock() - now
            now = clock()
            try:
                outcome = await self._ask(
                    request,
                    route,
                    address=address,
                    times=Times(
                        # the next address has its share, if there is one
                        connect_by=now + (connect_left / 2 if len(left) > 1 else connect_left),
                        end_by=deadline,
                        latest=latest,
                    ),
                    kept=kept,
                )
            finally:
                kept = None
                # what is left open keeps its place
                if self._places is not None and (request.line is None or request.line.kept is None):
                    self._places.give_back(address)
            connect_left -= clock() - now
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
        self,
        request: Request,
        route: Route,
        *,
        address: str,
        times: Times,
        kept: KeptConnection | None,
    ) -> Outcome:
        """Ask one address; where its TLS is doubtful, once more, and the answer is marked, if that may be."""
        known = None if self._strict_tls else self._known_sites.marks(route.site)
        if known is not None and not (kept is not None and kept.is_strict):
            return _marked(
                await self._transfer(request, route, address, times, kept, strict=False), known
            )
        # A connection that was made strictly serves only a strict request.
        outcome = await self._transfer(request, route, address, times, kept, strict=True)
        doubts: tuple[str, ...] = ()
        if isinstance(outcome, Failed) and outcome.marks and not self._strict_tls:
            doubts = outcome.marks
            outcome = await self._transfer(request, route, address, times, None, strict=False)
        if route.site and not isinstance(outcome, Failed):
            self._known_sites.note(route.site, doubts)
        return _marked(outcome, doubts)

    async def _transfer(
        self,
        request: Request,
        route: Route,
        address: str,
        times: Times,
        kept: KeptConnection | None,
        *,
        strict: bool,
    ) -> Outcome:
        """One connection, to be made and ended by these times, or the one that was kept."""
        transfer = self._unused() if kept is None else kept.transfer
        try:
            if self._multi.closed:
                return Failed(kind=FailureKind.ABORTED, detail="the fetcher was closed")
            return await transfer.run(
                self._multi,
                request,
                address=address,
                port=route.port,
                strict=strict,
                times=times,
                limits=self._limits,
            )
        finally:
            line = request.line
            if line is not None and request.more_follows and transfer.is_open:
                transfer.reset()
                line.kept = self._keep(transfer, route, address, is_strict=strict)
            else:
                self._put_away(transfer)

    def _unused(self) -> Transfer:
        return self._idle.pop() if self._idle else Transfer(self._identity)

    def _put_away(self, transfer: Transfer) -> None:
        """Leave nothing open; another request may have the handle."""
        if self._multi.closed:
            transfer.close()
        else:
            transfer.hang_up()
            transfer.reset()
            self._idle.append(transfer)

    def _keep(
        self, transfer: Transfer, route: Route, address: str, *, is_strict: bool
    ) -> KeptConnection:
        kept = KeptConnection(
            transfer, route=route, address=address, is_strict=is_strict, let_go=self._let_go
        )
        self._kept.add(kept)
        return kept

    def _let_go(self, kept: KeptConnection) -> None:
        """Nobody needs it any more."""
        self._kept.discard(kept)
        self._put_away(kept.transfer)
        if self._places is not None:
            self._places.give_back(kept.address)

    def _take_kept(self, request: Request, route: Route) -> KeptConnection | None:
        """What the visit has left open, if it leads where this request goes; if not, it is closed."""
        if request.line is None:
            return None
        kept, request.line.kept = request.line.kept, None
        if kept is None:
            return None
        if isinstance(kept, KeptConnection) and kept.leads_to(route):
            kept.take()
            self._kept.discard(kept)
            return kept
        kept.close()
        return None


def _is_unconnected(outcome: Outcome) -> bool:
    """Whether another address might do better."""
    return isinstance(outcome, Failed) and outcome.kind in _UNCONNECTED


def _marked(outcome: Outcome, marks: tuple[str, ...]) -> Outcome:
    if isinstance(outcome, Failed) or not marks:
        return outcome
    response = replace(outcome.response, marks=(*marks, *outcome.response.marks))
    return replace(outcome, response=response)


def _after_waiting(outcome: Outcome, seconds: float) -> Outcome:
    """The outcome of a request of whose time so much passed for our sake."""
    if isinstance(outcome, Failed):
        return replace(outcome, waited=outcome.waited + seconds)
    waited = outcome.response.waited + seconds
    return replace(outcome, response=replace(outcome.response, waited=waited))


def _busy(addresses: Sequence[str], dialled: str) -> Failed:
    """No place in time; the address is one that was dialled before, if any was."""
    return Failed(
        kind=FailureKind.BUSY,
        detail=f"{', '.join(addresses)} stayed busy with as many connections as are allowed",
        address=dialled,
    )
