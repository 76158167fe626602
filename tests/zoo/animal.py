"""What an animal of the zoo is: a name, a misbehaviour, and what a crawl should make of it.

An animal's host is its name under .test. Most are told apart by the Host header on one port; those whose
misbehaviour comes before a request (in TCP or in TLS) have a port of their own. The bytes go out as they are
written here: nothing stands between an animal and the socket.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

CHUNK = 64 * 1024
PAGE = b"<!doctype html><title>%s</title><p>%s</p>"


class Fate(NamedTuple):
    """One way in which a URL may have ended that is as it should be."""

    state: str
    because: str = "*"
    """A pattern: of the reason that the frontier gives, or of the last error where a URL is still pending."""
    mark: str = ""
    """A pattern of what the ledger must say of the answer besides: a mark, or that it was truncated; '' is anything."""


DONE = Fate("done", "")
CUT = Fate("done", "", "truncated")
READ = Fate("read", "")
ABSENT = Fate("absent")
"""It never entered the frontier."""


def failed(because: str) -> Fate:
    """Given up, for a reason that matches."""
    return Fate("failed", because)


def waiting(because: str) -> Fate:
    """Still pending, as its server keeps failing in this way: the crawl does not stay up for it."""
    return Fate("pending", because)


def redirected(to: str = "*") -> Fate:
    """It led elsewhere."""
    return Fate("redirected", to)


Fates = tuple[Fate, ...]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request as the zoo saw it."""

    at: float
    host: str
    """As it was written, with a port where there was one."""
    path: str

    @property
    def url(self) -> str:
        """What was asked for, over http."""
        return f"http://{self.host}{self.path}"


class Wire:
    """A connection from the side of the animal."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        if self.writer.transport.is_closing():
            raise ConnectionResetError
        self.writer.write(data)
        await self.writer.drain()

    async def forever(self, data: bytes) -> None:
        """Send the same until the peer goes."""
        while True:
            await self.send(data)
            await asyncio.sleep(0)

    async def drip(self, data: bytes, seconds: float = 1.0) -> None:
        """Send the same, a byte at a time, until the peer goes."""
        while True:
            for byte in data:
                await self.send(bytes([byte]))
                await asyncio.sleep(seconds)

    async def hold(self) -> None:
        """Send nothing more until the peer goes."""
        while await self.reader.read(CHUNK):
            pass

    def reset(self) -> None:
        """Break the connection."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Answer = Callable[[Asked, Wire], Awaitable[None]]
Greeting = Callable[[Wire], Awaitable[None]]


async def no_robots(_asked: Asked, wire: Wire) -> None:
    """There is no robots.txt: all is allowed."""
    await wire.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


@dataclass(frozen=True, kw_only=True)
class Animal:
    """One kind of misbehaviour."""

    name: str
    what: str
    """What it does, for the table in docs/hostile.md."""
    answer: Answer
    """Answers every request but the one for robots.txt."""
    expects: Mapping[str, Fates]
    """By URL: the ways in which it may end."""
    seeds: tuple[str, ...]
    robots: Answer = no_robots
    most: int | None = None
    """The most requests that a crawl may make here."""
    greets: Greeting | None = None
    """It has a port of its own, and does this to each connection."""
    tls: ssl.SSLContext | None = None
    """It has a port of its own, which speaks TLS."""
    is_full: bool = False
    """It has a port of its own, at which no connection is ever completed."""
    hosts: tuple[str, ...] = field(default=())
    """Patterns of hosts besides its name that are its own."""

    @property
    def has_own_port(self) -> bool:
        """Whether a rule of its own leads there."""
        return self.is_full or self.greets is not None or self.tls is not None


def at(name: str, path: str = "/", *, scheme: str = "http") -> str:
    """The URL of a path on an animal's host."""
    return f"{scheme}://{name}.test{path}"


def single(
    name: str,
    what: str,
    answer: Answer,
    *fates: Fate,
    scheme: str = "http",
    robots: Answer = no_robots,
    greets: Greeting | None = None,
    tls: ssl.SSLContext | None = None,
    is_full: bool = False,
) -> Animal:
    """An animal with a single page, its front page."""
    url = at(name, scheme=scheme)
    return Animal(
        name=name,
        what=what,
        answer=answer,
        expects={url: fates},
        seeds=(url,),
        robots=robots,
        greets=greets,
        tls=tls,
        is_full=is_full,
    )


def head(status: str = "200 OK", *lines: str, type: str = "text/html; charset=utf-8") -> bytes:
    """The head of an answer."""
    given = [f"HTTP/1.1 {status}", f"Content-Type: {type}", "Connection: close", *lines]
    return ("\r\n".join(given) + "\r\n\r\n").encode("latin-1")


def whole(body: bytes, *lines: str, type: str = "text/html; charset=utf-8") -> bytes:
    """An answer as it should be."""
    return head("200 OK", f"Content-Length: {len(body)}", *lines, type=type) + body


def redirect(location: str) -> bytes:
    """A redirect with a Location as it is."""
    return head("302 Found", f"Location: {location}", "Content-Length: 0")


def says(data: bytes) -> Answer:
    """The answer that is always the same."""

    async def answer(_asked: Asked, wire: Wire) -> None:
        await wire.send(data)

    return answer


def linking(title: str, links: Iterable[str]) -> bytes:
    """A page with a title, a sentence and links."""
    anchors = "".join(f'<a href="{link}">{number}</a>' for number, link in enumerate(links))
    return f"<!doctype html><title>{title}</title><p>This is {title}.</p>{anchors}".encode()
