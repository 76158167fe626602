"""Servers for floods: one that accepts connections and says nothing, and one that many domains share.

Both note what they see, because only the servers' view counts.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import uvloop

from tests.zoo.names import NO_SUCH_NAME, A, message, question

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
_GONE = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that a server saw."""

    at: float
    host: str
    path: str
    at_once: int
    """The connections that were open at that time, this one included."""


@dataclass
class Server:
    """Notes every request, and never answers."""

    requests: list[Seen] = field(default_factory=list)
    open: int = 0
    port: int = 0

    @property
    def most_at_once(self) -> int:
        """The most connections with a request that were open at a time."""
        return max((seen.at_once for seen in self.requests), default=0)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.open += 1
        with suppress(*_GONE):
            await self._serve(reader, writer)
        self.open -= 1
        writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        host = next(line[6:] for line in head if line.lower().startswith("host: "))
        seen = Seen(time.monotonic(), re.sub(r":\d+$", "", host), head[0].split(" ")[1], self.open)
        self.requests.append(seen)
        await self.answer(seen, writer)
        await reader.read()

    async def answer(self, seen: Seen, writer: asyncio.StreamWriter) -> None:
        """Say nothing."""


@dataclass
class Crowd(Server):
    """Answers every request, for any number of domains."""

    seconds: float = 0.0
    """How long an answer takes."""

    @property
    def visits(self) -> list[Seen]:
        """The requests for pages: each domain has one per visit."""
        return [seen for seen in self.requests if seen.path != "/robots.txt"]

    async def answer(self, seen: Seen, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(self.seconds)
        if seen.path == "/robots.txt":
            status, body = "404 Not Found", b""
        else:
            number = int(seen.path.strip("/") or 0)
            links = "".join(f'<a href="/{number + further}">on</a>' for further in range(1, 4))
            status, body = "200 OK", f"<title>{seen.host}{seen.path}</title>{links}".encode()
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode() + body)
        writer.close()


@contextmanager
def serving(server: Server, address: str = "127.0.0.1") -> Iterator[None]:
    """Run a server in a thread of its own."""
    ready, over = threading.Event(), threading.Event()

    async def run() -> None:
        listening = await asyncio.start_server(server, address, 0, backlog=4_096)
        server.port = listening.sockets[0].getsockname()[1]
        ready.set()
        await asyncio.to_thread(over.wait)
        listening.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    thread = threading.Thread(target=uvloop.run, args=(run(),), name="flood")
    thread.start()
    try:
        assert ready.wait(30), "the server did not start"
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def name_server(address_of: Callable[[str], str | None]) -> Iterator[str]:
    """Serve the IPv4 addresses of names; yield the address of the name server."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=_serve_names, args=(server, address_of), name="names")
        thread.start()
        host, port = server.getsockname()
        try:
            yield f"{host}:{port}"
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
                last.sendto(b"", (host, port))
            thread.join()


def _serve_names(server: socket.socket, address_of: Callable[[str], str | None]) -> None:
    """Answer queries until an empty one comes."""
    while True:
        data, client = server.recvfrom(4_096)
        if not data:
            return
        name, type, end = question(data)
        address = address_of(name)
        records = [(A, ipaddress.IPv4Address(address).packed)] if address is not None and type == A else []
        code = NO_SUCH_NAME if address is None else 0
        server.sendto(message(data[:2], data[12:end], code, records), client)
