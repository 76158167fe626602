"""Resolves names to addresses, with a cache in front of one asynchronous lookup per name.

Names are resolved before libcurl connects, so that it connects to exactly the address that the guard has checked.
/etc/hosts and search domains are ignored on purpose, because a crawl looks up public names.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import aiodns
import pycares

from rove.errors import UsageError
from rove.fetch.address import ADDRESS_AND_PORT, is_ip
from rove.fetch.failure import is_short_of_sockets
from rove.model.outcomes import Failed, FailureKind
from rove.notation.humanize import counted
from rove.resources.ttl_cache import TtlCache

MIN_TTL = 60.0
MAX_TTL = 3_600.0
NEGATIVE_TTL = 300.0
"""For a name that does not exist, which seldom changes soon."""
FAILURE_TTL = 10.0
"""For a lookup that failed. The next one may succeed, but one failure serves all requests of the same moment."""
CACHE_SIZE = 100_000
MAX_ADDRESSES = 16
"""Limit on the addresses of one name; an answer may hold a thousand."""
MAX_LOOKUPS = 2_000
"""Limit on lookups in flight. It is high so that dead name servers do not use up all of it."""
RENEW_AFTER = 50_000
"""Lookups after which a new c-ares channel takes over. A channel caches every answer (1.2 KB) for its TTL, without a
limit and without an option to turn that off."""

DNS_PORT = 53
_LOOPBACK = ("127.0.0.1", "::1")
_NO_SUCH_NAME = frozenset({aiodns.error.ARES_ENOTFOUND, aiodns.error.ARES_EBADNAME})


class Resolver(Protocol):
    """Turns names into addresses."""

    async def resolve(self, host: str, within: float) -> Sequence[str] | Failed:
        """Return at least one address of a name, best first, or why there is none within these seconds."""

    def look_ahead(self, host: str) -> None:
        """Begin to look up a name that will be needed soon."""

    @property
    def answered_from(self) -> float:
        """The latest start of a lookup that a name server answered, by the steady clock."""

    def forget_failures(self) -> None:
        """Look names up again that could not be found."""

    async def close(self) -> None:
        """Cancel the lookups in flight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DnsAnswer:
    """The addresses that DNS has for a name."""

    addresses: tuple[str, ...]
    ttl: float


class Lookup(Protocol):
    """Looks up names in DNS, without a cache."""

    async def look_up(self, host: str) -> DnsAnswer | Failed:
        """Look up the addresses of a name."""

    def forget(self) -> None:
        """Forget earlier answers."""

    async def close(self) -> None:
        """Cancel the lookups in flight."""


class CachingResolver:
    """Caches answers and failures, and makes one lookup for all concurrent requests for a name."""

    def __init__(
        self,
        lookup: Lookup,
        *,
        size: int = CACHE_SIZE,
        max_lookups: int = MAX_LOOKUPS,
        clock: Callable[[], float] = time.monotonic,
        on_lookup: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        """`on_lookup` is given the duration of each lookup."""
        self._lookup = lookup
        self._clock = clock
        self._on_lookup = on_lookup
        self._size = size
        self._known = TtlCache[str, Sequence[str]](size)
        self._failed = TtlCache[str, Failed](size)
        self._in_flight: dict[str, asyncio.Task[Sequence[str] | Failed]] = {}
        self._lookup_slots = asyncio.Semaphore(max_lookups)
        self._closed = False
        self._answered_from = -math.inf

    @property
    def answered_from(self) -> float:
        """The latest start of a lookup that a name server answered."""
        return self._answered_from

    async def resolve(self, host: str, within: float) -> Sequence[str] | Failed:
        """Return the addresses of a name. A lookup goes on when its caller stops waiting."""
        known = self._remembered(host)
        if known is not None:
            return known
        if self._closed:
            return _closed()
        task = self._task_of(host)
        await asyncio.wait((task,), timeout=within)
        if not task.done():
            return Failed(kind=FailureKind.DNS, detail=f"no answer for {host} within {within:.1f} s")
        return _closed() if task.cancelled() else task.result()

    def look_ahead(self, host: str) -> None:
        """Begin to look up a name, unless it is known."""
        if not self._closed and self._remembered(host) is None:
            self._task_of(host)

    def forget_failures(self) -> None:
        """Look names up again that could not be found."""
        self._failed = TtlCache(self._size)
        self._lookup.forget()

    def accounts(self) -> dict[str, str]:
        """Return what the resolver holds, for a report. Another thread may call this."""
        lookups = counted(len(self._in_flight), "lookup")
        return {"names": f"{len(self._known):,} known, {len(self._failed):,} that failed, {lookups} in flight"}

    async def close(self) -> None:
        """Cancel the lookups in flight; their callers get a failure."""
        self._closed = True
        tasks = list(self._in_flight.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._lookup.close()

    def _remembered(self, host: str) -> Sequence[str] | Failed | None:
        now = self._clock()
        return self._known.get(host, now) or self._failed.get(host, now)

    def _task_of(self, host: str) -> asyncio.Task[Sequence[str] | Failed]:
        """Return the lookup of a name that is in flight; begin one if there is none."""
        task = self._in_flight.get(host)
        if task is None:
            task = self._in_flight[host] = asyncio.create_task(self._look_up(host))
        return task

    async def _look_up(self, host: str) -> Sequence[str] | Failed:
        failed = self._failed  # a failure is not remembered if failures were forgotten during the lookup
        try:
            async with self._lookup_slots:
                started = self._clock()
                answer = await self._lookup.look_up(host)
        finally:
            del self._in_flight[host]
        now = self._clock()
        self._on_lookup(now - started)
        if not isinstance(answer, Failed) or answer.kind is FailureKind.DNS_NOT_FOUND:
            self._answered_from = max(self._answered_from, started)
        if isinstance(answer, Failed):
            if answer.kind is not FailureKind.BUSY:
                ttl = NEGATIVE_TTL if answer.kind is FailureKind.DNS_NOT_FOUND else FAILURE_TTL
                failed.put(host, answer, expires=now + ttl)
            return answer
        self._known.put(host, answer.addresses, expires=now + min(max(answer.ttl, MIN_TTL), MAX_TTL))
        return answer.addresses


class AresLookup:
    """Queries the name servers of this machine, or those given as 'address:port', with c-ares.

    It queries IPv6 addresses only if a name has no IPv4 address. That halves the number of queries, and avoids
    connection attempts over IPv6 on the many machines without it.
    """

    def __init__(
        self,
        *,
        servers: Sequence[str] | None = None,
        timeout: float = 2.0,
        tries: int = 3,
        renew_after: int = RENEW_AFTER,
    ) -> None:
        self._new_channel = partial(aiodns.DNSResolver, nameservers=servers, timeout=timeout, tries=tries)
        self._renew_after = renew_after
        self._queries = 0
        self._channels: list[aiodns.DNSResolver] = []
        """The channel in use comes last. The one before it may still have lookups in flight."""

    async def look_up(self, host: str) -> DnsAnswer | Failed:
        """Query the A records, then the AAAA records if the name exists without A records."""
        if host == "localhost" or host.endswith(".localhost"):  # RFC 6761 6.3: never sent to DNS
            return DnsAnswer(addresses=_LOOPBACK, ttl=MAX_TTL)
        for record_type in ("A", "AAAA"):
            try:
                result = await self._query(host, record_type)
            except aiodns.error.DNSError as error:
                if error.args[0] == aiodns.error.ARES_ENODATA:
                    continue
                return _failure(host, error)
            addresses = tuple(
                record.data.addr
                for record in result.answer
                if isinstance(record.data, pycares.ARecordData | pycares.AAAARecordData)
            )
            if addresses:
                addresses = addresses[:MAX_ADDRESSES]
                return DnsAnswer(addresses=addresses, ttl=min(r.ttl for r in result.answer))
        return Failed(kind=FailureKind.DNS_NOT_FOUND, detail=f"{host} has no address")

    async def _query(self, host: str, record_type: str) -> Any:
        """Query one type of records.

        A malformed reply makes c-ares fail every query in flight on its channel. So a query that fails this way is
        repeated on a channel of its own, where a malformed reply can only be its own.
        """
        channel = await self._channel()
        try:
            return await channel.query_dns(host, record_type)
        except aiodns.error.DNSError as error:
            if error.args[0] != aiodns.error.ARES_EBADRESP:
                raise
        alone = self._new_channel(loop=asyncio.get_running_loop())
        try:
            return await alone.query_dns(host, record_type)
        finally:
            await alone.close()

    def forget(self) -> None:
        """Use a new channel from now on, because a channel remembers answers."""
        self._queries = self._renew_after

    async def close(self) -> None:
        """Close the channels and their sockets."""
        while self._channels:
            await self._channels.pop().close()

    async def _channel(self) -> aiodns.DNSResolver:
        """Return the channel to use. It is made on first use, because it belongs to the running loop."""
        if not self._channels or self._queries >= self._renew_after:
            self._queries = 0
            self._channels.append(self._new_channel(loop=asyncio.get_running_loop()))
            if len(self._channels) > 2:
                await self._channels.pop(0).close()
        self._queries += 1
        return self._channels[-1]


def parse_name_server(text: str) -> str:
    """Parse ADDRESS or ADDRESS:PORT into the form that c-ares takes; raise a UsageError if it is neither.

    >>> parse_name_server("9.9.9.9"), parse_name_server("[2620:fe::fe]:5353")
    ('9.9.9.9:53', '[2620:fe::fe]:5353')
    """
    parts = ADDRESS_AND_PORT.fullmatch(text)
    address = text if parts is None else parts["v6"] or parts["v4"]
    port = int(parts["port"] or DNS_PORT) if parts else DNS_PORT
    if not is_ip(address) or not 1 <= port <= 65_535:
        raise UsageError(
            f"'{text}' is not a name server: write ADDRESS or ADDRESS:PORT"
            " (write an IPv6 address with a port in brackets)."
        )
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _failure(host: str, error: aiodns.error.DNSError) -> Failed:
    code, text = error.args
    detail = f"{host}: {text}"
    if code in _NO_SUCH_NAME:
        return Failed(kind=FailureKind.DNS_NOT_FOUND, detail=detail)
    if is_short_of_sockets():
        return Failed(kind=FailureKind.BUSY, detail=detail, shortage=True)
    return Failed(kind=FailureKind.DNS, detail=detail)


def _closed() -> Failed:
    return Failed(kind=FailureKind.ABORTED, detail="the resolver was closed")
