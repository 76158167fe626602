"""Names to addresses, off the hot path: a cache in front of one asynchronous lookup per name.

Names are resolved before a connection is made, so that the address can be checked and the checked
address dialled. /etc/hosts and search domains are left out on purpose: a crawl asks for public
names.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import aiodns
import pycares

from rove.errors import UsageError
from rove.fetch.address import ADDRESS_AND_PORT, is_ip
from rove.fetch.failure import is_short_of_sockets
from rove.model.outcomes import Failed, FailureKind
from rove.resources.ttl_cache import TtlCache

MIN_TTL = 60.0
MAX_TTL = 3_600.0
NEGATIVE_TTL = 300.0
"""For a name that does not exist: that seldom changes soon."""
FAILURE_TTL = 10.0
"""For a question that was not answered: the next one may be. Long enough for all who ask at the same time."""
CACHE_SIZE = 100_000
MAX_ADDRESSES = 16
"""Addresses of one name that are kept; there may be a thousand in an answer."""
MAX_QUESTIONS = 2_000
"""Names that are asked for at the same time; more wait. Many, so that dead name servers do not fill the places."""
RENEW_AFTER = 50_000
"""Questions to one c-ares channel. It keeps every answer for its TTL, without a bound (1.2 KB each,
measured) and without a switch, so now and then a new channel takes over."""

DNS_PORT = 53
_LOOPBACK = ("127.0.0.1", "::1")
_NO_SUCH_NAME = frozenset({aiodns.error.ARES_ENOTFOUND, aiodns.error.ARES_EBADNAME})


class Resolver(Protocol):
    """Turns names into addresses; what the fetcher asks."""

    async def resolve(self, host: str, within: float) -> Sequence[str] | Failed:
        """The addresses of a name, best first and at least one, or why there are none."""

    async def close(self) -> None:
        """Give up what is under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DnsAnswer:
    """What DNS said of a name."""

    addresses: tuple[str, ...]
    ttl: float


class Lookup(Protocol):
    """One question to DNS, never answered from a cache of ours."""

    async def look_up(self, host: str) -> DnsAnswer | Failed:
        """Ask for the addresses of a name."""

    async def close(self) -> None:
        """Give up what is under way."""


class CachingResolver:
    """Remembers answers, bad ones too, and asks once for a name that many want at the same time."""

    def __init__(
        self,
        lookup: Lookup,
        *,
        size: int = CACHE_SIZE,
        questions: int = MAX_QUESTIONS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lookup = lookup
        self._clock = clock
        self._known = TtlCache[str, Sequence[str] | Failed](size)
        self._asking: dict[str, asyncio.Task[Sequence[str] | Failed]] = {}
        self._places = asyncio.Semaphore(questions)
        self._closed = False

    async def resolve(self, host: str, within: float) -> Sequence[str] | Failed:
        """The addresses of a name; a question outlives the caller who gave up waiting for it."""
        known = self._known.get(host, self._clock())
        if known is not None:
            return known
        if self._closed:
            return _closed()
        task = self._asking.get(host)
        if task is None:
            task = asyncio.create_task(self._ask(host))
            self._asking[host] = task
        await asyncio.wait((task,), timeout=within)
        if not task.done():
            return Failed(
                kind=FailureKind.DNS, detail=f"no answer for {host} within {within:.1f} s"
            )
        return _closed() if task.cancelled() else task.result()

    async def close(self) -> None:
        """Give up the questions under way; those who wait for them are told so."""
        self._closed = True
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._lookup.close()

    async def _ask(self, host: str) -> Sequence[str] | Failed:
        try:
            async with self._places:
                answer = await self._lookup.look_up(host)
        finally:
            del self._asking[host]
        found: Sequence[str] | Failed
        if isinstance(answer, Failed) and answer.kind is FailureKind.BUSY:
            return answer
        if isinstance(answer, Failed):
            found = answer
            ttl = NEGATIVE_TTL if answer.kind is FailureKind.DNS_NOT_FOUND else FAILURE_TTL
        else:
            found, ttl = answer.addresses, min(max(answer.ttl, MIN_TTL), MAX_TTL)
        self._known.put(host, found, expires=self._clock() + ttl)
        return found


class AresLookup:
    """Asks the name servers of this machine, or those given as 'address:port', with c-ares.

    IPv4 first, and IPv6 only for a name without an IPv4 address: half of the questions, and no
    attempts over an IPv6 that many machines do not have.
    """

    def __init__(
        self,
        *,
        servers: Sequence[str] | None = None,
        timeout: float = 2.0,
        tries: int = 3,
        renew_after: int = RENEW_AFTER,
    ) -> None:
        self._servers = servers
        self._timeout = timeout
        self._tries = tries
        self._renew_after = renew_after
        self._asked = 0
        self._channels: list[aiodns.DNSResolver] = []
        """The one in use last, before it the one whose last answers may still be due."""

    async def look_up(self, host: str) -> DnsAnswer | Failed:
        """Ask for the A records, then for the AAAA records of a name that exists without any."""
        if host == "localhost" or host.endswith(".localhost"):  # RFC 6761 6.3: never asked
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
        """Ask for one kind of records.

        A reply that makes no sense has c-ares fail every question that is under way in its channel, so those who get
        one ask again alone: then it is their own.
        """
        channel = await self._channel()
        try:
            return await channel.query_dns(host, record_type)
        except aiodns.error.DNSError as error:
            if error.args[0] != aiodns.error.ARES_EBADRESP:
                raise
        alone = self._new_channel()
        try:
            return await alone.query_dns(host, record_type)
        finally:
            await alone.close()

    async def close(self) -> None:
        """Close the channels and their sockets."""
        while self._channels:
            await self._channels.pop().close()

    async def _channel(self) -> aiodns.DNSResolver:
        """The channel to ask; made when needed, since it belongs to the running loop."""
        if not self._channels or self._asked >= self._renew_after:
            self._asked = 0
            self._channels.append(self._new_channel())
            if len(self._channels) > 2:
                await self._channels.pop(0).close()
        self._asked += 1
        return self._channels[-1]

    def _new_channel(self) -> aiodns.DNSResolver:
        return aiodns.DNSResolver(
            loop=asyncio.get_running_loop(),
            nameservers=self._servers,
            timeout=self._timeout,
            tries=self._tries,
        )


def parse_name_server(text: str) -> str:
    """A name server as c-ares takes it, from ADDRESS or ADDRESS:PORT; a UsageError says what is wrong with it.

    >>> parse_name_server("9.9.9.9"), parse_name_server("[2620:fe::fe]:5353")
    ('9.9.9.9:53', '[2620:fe::fe]:5353')
    """
    found = ADDRESS_AND_PORT.fullmatch(text)
    bare = text if found is None else found["v6"] or found["v4"]
    port = int(found["port"] or DNS_PORT) if found else DNS_PORT
    if not is_ip(bare) or not 1 <= port <= 65_535:
        raise UsageError(
            f"'{text}' is not a name server: write ADDRESS or ADDRESS:PORT"
            " (an IPv6 address with a port goes in brackets)."
        )
    return f"[{bare}]:{port}" if ":" in bare else f"{bare}:{port}"


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
