"""Serve a web of large pages on loopback: `python -m benchmarks.large_web KIND BYTES AT_ONCE`.

Every host has one page of BYTES bytes of HTML, plain or compressed. The first answers are held until AT_ONCE pages have
been requested. When standard input ends, it prints the peak number of connections and the number of pages sent.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import sys
from typing import Any, ClassVar

import uvloop

PARAGRAPH = (
    '<p>A <b>page</b> of <a href="http://{host}/#part-{number}">many parts</a>, of which this is number {number}: '
    "lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et "
    "dolore magna aliqua, ut enim ad minim veniam, quis nostrud exercitation ullamco laboris.</p>\n"
)


def page(kind: str, size: int, host: str = "large.test") -> bytes:
    """Return a page of this size."""
    number = -(-size // len(PARAGRAPH))
    text = "".join(PARAGRAPH.format(host=host, number=number) for number in range(number))
    body = f"<title>{host}</title>{text}".encode()[:size]
    return gzip.compress(body, 6) if kind == "gzip" else body


class Figures:
    """Counts of requests."""

    asked = 0
    most = 0
    sent = 0


class Connection(asyncio.Protocol):
    """Answers one request."""

    body = b""
    kind = ""
    at_once = 0
    held: ClassVar[list[Connection]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._is_page = False
        self._head = b""

    def data_received(self, data: bytes) -> None:
        self._head += data
        if b"\r\n\r\n" not in self._head:
            return
        if self._head.startswith(b"GET /robots.txt"):
            self._transport.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            self._transport.close()
            return
        self._is_page = True
        Figures.asked += 1
        Figures.most = max(Figures.most, Figures.asked)
        self.held.append(self)
        if Figures.most >= self.at_once:
            for connection in self.held:
                connection.answer()
            self.held.clear()

    def answer(self) -> None:
        """Send the page."""
        coding = b"Content-Encoding: gzip\r\n" if self.kind == "gzip" else b""
        self._transport.writelines(
            [
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n" + coding,
                b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(self.body),
                self.body,
            ]
        )
        self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if self._is_page:
            Figures.asked -= 1
            Figures.sent += error is None


async def serve(kind: str, size: int, at_once: int) -> None:
    """Serve until standard input ends."""
    Connection.kind, Connection.body, Connection.at_once = kind, page(kind, size), at_once
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=4_096)
    print(server.sockets[0].getsockname()[1], flush=True)
    ended = asyncio.Event()

    def read_input() -> None:
        if not os.read(0, 1):
            ended.set()

    loop.add_reader(sys.stdin.fileno(), read_input)
    await ended.wait()
    print(json.dumps({"most": Figures.most, "sent": Figures.sent}), flush=True)
    server.close()


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
