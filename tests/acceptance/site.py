"""Serve a web site whose every answer the test writes, from a thread of the test process."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    """A site's answer to a request."""

    body: bytes | str = b""
    status: int = 200
    type: str = "text/html; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    endless: bool = False
    """Repeat the body until the client disconnects; `Site.sent` counts the bytes."""
    after: float = 0.0
    """Seconds to wait before answering."""
    held: bool = False
    """Do not answer before `Site.release` is set or the site closes."""
    reset: bool = False
    """Reset the connection instead of answering."""
    keep: bool = False
    """Leave the connection open for the next request."""


@dataclass(frozen=True)
class SeenRequest:
    """A request as a site saw it."""

    at: float
    host: str
    path: str
    headers: Mapping[str, str]
    """By lower-case name."""
    ends: list[float] = field(default_factory=list)
    """Holds one time once the site starts to answer or sees that the client has disconnected."""

    @property
    def ended(self) -> float:
        """When the request ended: never later than the client's own view of it."""
        return self.ends[0] if self.ends else time.monotonic()

    @property
    def url(self) -> str:
        """The requested URL."""
        return f"http://{self.host}{self.path}"


Answers = Mapping[str, Reply] | Callable[[str, str], Reply]


class Site:
    """A web server in the test process. The test gives every answer, by host and path or as a function of both."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self.requests: list[SeenRequest] = []
        self.connections = 0
        self.sent: dict[str, int] = {}
        """Bytes of endless bodies that the kernel accepted, by URL."""
        self.release = threading.Event()
        """Set it to answer the requests that are held."""
        self.abandoned: dict[str, float] = {}
        """When clients disconnected before they had an answer, by URL."""
        self.most_unanswered = 0
        """The largest number of connections that waited for an answer at the same time."""
        self.port = 0

    @property
    def reach(self) -> list[str]:
        """The options that make rove connect to this site for every host."""
        return ["--connect-to", f"*=127.0.0.1:{self.port}", "--allow-private-addresses"]

    @property
    def urls(self) -> list[str]:
        """The URLs of all requests, in order."""
        return [request.url for request in self.requests]

    @property
    def pages(self) -> list[str]:
        """The URLs of all requests except those for robots.txt, in order."""
        return [request.url for request in self.requests if request.path != "/robots.txt"]

    def requests_to(self, host: str, path: str | None = None) -> list[SeenRequest]:
        """Return the requests to a host, optionally only those for one path, in order."""
        return [request for request in self.requests if request.host == host and path in (None, request.path)]

    def reply(self, host: str, path: str) -> Reply:
        """Return the answer to a request: 404 if the test gives none."""
        if callable(self._answers):
            return self._answers(host, path)
        return self._answers.get(f"{host}{path}", Reply("Nothing here.", status=404))


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site
    unanswered: set[object]
    """Connections that wait for an answer."""

    def setup(self) -> None:
        super().setup()
        self.site.connections += 1
        self.unanswered.add(self)
        self.site.most_unanswered = max(self.site.most_unanswered, len(self.unanswered))

    def finish(self) -> None:
        self.unanswered.discard(self)
        with suppress(OSError):
            super().finish()

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        host = headers.get("host", "").partition(":")[0]
        request = SeenRequest(time.monotonic(), host, self.path, headers)
        self.site.requests.append(request)
        reply = self.site.reply(host, self.path)
        self.close_connection = not reply.keep
        with suppress(OSError):
            if reply.held or reply.after:
                self._hold(request, reply.after or 120)
            request.ends.append(time.monotonic())
            self.unanswered.discard(self)
            if reply.reset:
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                os.close(self.connection.detach())
                return
            self._send(request, reply)

    def _hold(self, request: SeenRequest, seconds: float) -> None:
        """Wait before answering; raise if the client disconnects first."""
        deadline = time.monotonic() + seconds
        self.connection.settimeout(0.02)
        while time.monotonic() < deadline and not self.site.release.is_set():
            with suppress(TimeoutError):
                if not self.connection.recv(1, socket.MSG_PEEK):
                    break
        else:
            self.connection.settimeout(None)
            return
        request.ends.append(time.monotonic())
        self.site.abandoned[request.url] = request.ends[0]
        raise ConnectionResetError

    def _send(self, request: SeenRequest, reply: Reply) -> None:
        body = reply.body.encode() if isinstance(reply.body, str) else reply.body
        if "Date" in reply.headers:
            self.send_response_only(reply.status)
        else:
            self.send_response(reply.status)
        self.send_header("Content-Type", reply.type)
        if not reply.keep:
            self.send_header("Connection", "close")
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.endless:
            self.end_headers()
            self.site.sent[request.url] = 0
            while True:
                self.wfile.write(body)
                self.site.sent[request.url] += len(body)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""


@contextmanager
def site(answers: Answers, port: int = 0) -> Iterator[Site]:
    """Serve these answers on a port of loopback; 0 means a free port."""
    served = Site(answers)
    handler = type("Connection", (_Connection,), {"site": served, "unanswered": set()})
    with _Server(("127.0.0.1", port), handler) as server:
        served.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield served
        finally:
            served.release.set()
            server.shutdown()
            thread.join()


@contextmanager
def unreachable() -> Iterator[list[str]]:
    """Yield the options that make rove connect every host to a port where nothing listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        yield ["--connect-to", f"*=127.0.0.1:{port}", "--allow-private-addresses"]
