"""An animal of the zoo: a name, a misbehaviour, and the outcomes that a crawl of it may have.

An animal's host is its name under .test. Most share one port and are told apart by the Host header. Those that
misbehave before a request (in TCP or in TLS) have a port of their own. Animals write raw bytes to the socket.
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
    """One accepted outcome of a URL."""

    state: str
    because: str = "*"
    """A pattern for the reason in the frontier, or for the last error of a pending URL."""
    mark: str = ""
    """A pattern that one of the request's marks in the ledger (or 'truncated') must match; empty matches all."""


DONE = Fate("done", "")
CUT = Fate("done", "", "truncated")
READ = Fate("read", "")
ABSENT = Fate("absent")
"""The URL never entered the frontier."""


def failed(because: str) -> Fate:
    """Return the outcome of a URL that is given up for a reason that matches."""
    return Fate("failed", because)


def waiting(because: str) -> Fate:
    """Return the outcome of a URL that is still pending because its server keeps failing in this way."""
    return Fate("pending", because)


def redirected(to: str = "*") -> Fate:
    """Return the outcome of a URL that redirects."""
    return Fate("redirected", to)


Fates = tuple[Fate, ...]


@dataclass(frozen=True, kw_only=True)
class SeenRequest:
    """A request as the zoo saw it."""

    at: float
    host: str
    """The Host header, including the port if there was one."""
    path: str

    @property
    def url(self) -> str:
        """The requested URL, with http as its scheme."""
        return f"http://{self.host}{self.path}"


class Wire:
    """The animal's side of a connection."""

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
        """Send the same bytes until the client disconnects."""
        while True:
            await self.send(data)
            await asyncio.sleep(0)

    async def drip(self, data: bytes, seconds: float = 1.0) -> None:
        """Send the same bytes one at a time until the client disconnects."""
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


Answer = Callable[[SeenRequest, Wire], Awaitable[None]]
Greeting = Callable[[Wire], Awaitable[None]]


async def no_robots(_request: SeenRequest, wire: Wire) -> None:
    """Answer 404 for robots.txt: everything is allowed."""
    await wire.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


@dataclass(frozen=True, kw_only=True)
class Animal:
    """One kind of misbehaviour."""

    name: str
    what: str
    """A description for the table in docs/hostile.md."""
    answer: Answer
    """Answers every request except the one for robots.txt."""
    expects: Mapping[str, Fates]
    """The accepted outcomes of each URL."""
    seeds: tuple[str, ...]
    robots: Answer = no_robots
    most: int | None = None
    """The most requests that a crawl may make here."""
    greets: Greeting | None = None
    """Handles each connection on a port of its own."""
    tls: ssl.SSLContext | None = None
    """The TLS context of a port of its own."""
    is_full: bool = False
    """Whether it has a port of its own that never completes a connection."""
    hosts: tuple[str, ...] = field(default=())
    """Patterns of further hosts that belong to it."""

    @property
    def has_own_port(self) -> bool:
        """Whether it needs a --connect-to rule of its own."""
        return self.is_full or self.greets is not None or self.tls is not None


def at(name: str, path: str = "/", *, scheme: str = "http") -> str:
    """Return the URL of a path on an animal's host."""
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
    """Return an animal with a single page, its front page."""
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
    """Return the head of an answer."""
    given = [f"HTTP/1.1 {status}", f"Content-Type: {type}", "Connection: close", *lines]
    return ("\r\n".join(given) + "\r\n\r\n").encode("latin-1")


def whole(body: bytes, *lines: str, type: str = "text/html; charset=utf-8") -> bytes:
    """Return a correct answer."""
    return head("200 OK", f"Content-Length: {len(body)}", *lines, type=type) + body


def redirect(location: str) -> bytes:
    """Return a redirect with this Location, unescaped."""
    return head("302 Found", f"Location: {location}", "Content-Length: 0")


def says(data: bytes) -> Answer:
    """Answer every request with the same bytes."""

    async def answer(_request: SeenRequest, wire: Wire) -> None:
        await wire.send(data)

    return answer


def linking(title: str, links: Iterable[str]) -> bytes:
    """Return a page with a title, a sentence and links."""
    anchors = "".join(f'<a href="{link}">{number}</a>' for number, link in enumerate(links))
    return f"<!doctype html><title>{title}</title><p>This is {title}.</p>{anchors}".encode()
