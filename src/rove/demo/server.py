"""Serve the small web on a port of this machine.

All hosts share one port of loopback; the Host header tells them apart.

    python -m rove.demo.server --hosts 1000 --profile full --seeds seeds.txt --log requests.log

writes the names of the hosts into seeds.txt, prints `listening on 127.0.0.1:PORT` and serves until SIGTERM, SIGINT or,
with --stop-at-eof, the end of standard input, so that it does not outlive the process that started it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self, cast

import uvloop

from rove.demo.log import LoggedRequest, LogKind, RequestLog
from rove.demo.profile import PROFILES, adjusted
from rove.demo.response import WebResponse, refusal
from rove.demo.web import SmallWeb
from rove.demo.wire import BLANK_LINE, RequestHead, frame, is_not_http, parse_head
from rove.errors import RoveError

ADDRESS = "127.0.0.1"
_BACKLOG = 4_096


class SmallWebServer:
    """Serves a small web in a running event loop."""

    def __init__(
        self,
        web: SmallWeb,
        *,
        log: Path | None = None,
        secured: Callable[[asyncio.Protocol], asyncio.Protocol] | None = None,
    ) -> None:
        """`secured` adds TLS to the protocol of a connection."""
        self.web = web
        self.log = None if log is None else RequestLog(log)
        self.connections: set[_Connection] = set()
        self.port = 0
        self._failed: set[tuple[str, str]] = set()
        """Flaky pages that have failed once."""
        self._secured = secured
        self._server: asyncio.Server | None = None

    async def start(self, listener: socket.socket | None = None) -> None:
        """Listen on a free port of loopback, or on a bound socket."""
        listener = listener or bound_socket(0)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._client, sock=listener, backlog=_BACKLOG)
        self.port = listener.getsockname()[1]

    async def close(self) -> None:
        """Stop listening, drop all connections and complete the log."""
        if self._server is not None:
            self._server.close()
        for connection in list(self.connections):
            connection.drop()
        log, self.log = self.log, None
        if log is not None:
            log.close()

    def _client(self) -> asyncio.Protocol:
        connection = _Connection(self)
        return connection if self._secured is None else self._secured(connection)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def respond(self, request: RequestHead) -> WebResponse:
        """Return the response to a request."""
        if request.method not in ("GET", "HEAD"):
            request.keep_alive = False
            return refusal(405)
        host, target, codings = request.host, request.target, request.codings
        response = self.web.respond(host, target, codings=codings)
        if not response.fails_first:
            return response
        if (host, target) in self._failed:
            return self.web.respond(host, target, codings=codings, again=True)
        self._failed.add((host, target))
        return response


class _Connection(asyncio.Protocol):
    """A connection of one client, which serves its requests one by one."""

    _transport: asyncio.Transport

    def __init__(self, server: SmallWebServer) -> None:
        self._server = server
        self._received = b""
        self._arrived = 0.0
        self._request: RequestHead | None = None
        """The request that is being served."""
        self._response: WebResponse | None = None
        self._sent = 0
        """Bytes of the response given to the transport; 0 while the response is delayed."""
        self._timer: asyncio.TimerHandle | None = None
        self._served = 0
        """The number of logged requests."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        # With a limit of 0 the transport reports when the kernel has taken everything.
        self._transport.set_write_buffer_limits(high=0)
        self._server.connections.add(self)

    def data_received(self, data: bytes) -> None:
        if not self._received:
            self._arrived = time.monotonic()
        self._received += data
        if self._request is None:
            self._take_request()

    def resume_writing(self) -> None:
        if self._request is not None and self._sent and self._finish(time.monotonic()):
            # Closing at this point would close asyncio's transport twice.
            asyncio.get_running_loop().call_soon(self._transport.close)

    def connection_lost(self, error: Exception | None) -> None:
        self._server.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._request is not None:
            self._log_request(time.monotonic(), complete=False)
            self._request = None

    def drop(self) -> None:
        """Abort the connection."""
        self.connection_lost(None)
        self._transport.abort()

    def _take_request(self) -> None:
        if not self._received or self._request is not None or self._transport.is_closing():
            return
        if is_not_http(self._received):
            self._refuse()
            return
        head, blank_line, rest = self._received.partition(BLANK_LINE)
        if not blank_line:
            return
        self._received = rest
        request = parse_head(head)
        if request is None:
            self._refuse()
            return
        self._request = request
        self._response = self._server.respond(request)
        self._sent = 0
        delay = self._response.delay + self._server.web.latency(request.host, request.target)
        if delay:
            self._timer = asyncio.get_running_loop().call_later(delay, self._send)
        else:
            self._send()

    def _send(self) -> None:
        assert self._request is not None and self._response is not None
        data = frame(self._response, self._request)
        self._sent = len(data)
        # Taken before the write. Otherwise a client that counts its delay from the end of the response could seem to
        # be early if this process is interrupted after the write.
        sent_at = time.monotonic()
        self._transport.write(data)
        if not self._transport.get_write_buffer_size() and self._finish(sent_at):
            self._transport.close()

    def _finish(self, ended: float) -> bool:
        """Log the request once the kernel has the whole response; return True if the connection must be closed."""
        assert self._request is not None and self._response is not None
        cut = self._response.cut_after is not None
        keep_alive = self._request.keep_alive and not cut
        self._log_request(ended, complete=not cut)
        self._request = self._response = None
        if keep_alive and self._received:
            asyncio.get_running_loop().call_soon(self._take_request)
        return not keep_alive

    def _refuse(self) -> None:
        if self._server.log is not None:
            now = time.monotonic()
            entry = LoggedRequest(kind=LogKind.NOT_HTTP, start=self._arrived, end=now, size=len(self._received))
            self._server.log.add(entry)
        self._transport.abort()

    def _log_request(self, ended: float, *, complete: bool) -> None:
        if self._server.log is None:
            return
        assert self._request is not None and self._response is not None
        self._server.log.add(
            LoggedRequest(
                start=self._arrived,
                end=ended,
                host=self._request.host,
                path=self._request.target,
                status=self._response.status if self._sent else 0,
                agent=self._request.agent,
                location=self._response.location if self._sent else "",
                size=self._sent,
                complete=complete,
                connected=not self._served,
            )
        )
        self._served += 1


def bound_socket(port: int, *, shared: bool = False) -> socket.socket:
    """Bind a socket to a port of loopback; 0 means a free port. Several sockets can have one port if it is shared."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared)
    listener.setblocking(False)
    try:
        listener.bind((ADDRESS, port))
    except OSError:
        listener.close()
        raise
    return listener


async def serve(
    server: SmallWebServer, listener: socket.socket, *, stop_at_eof: int | None = None, announce: bool = True
) -> None:
    """Serve until a signal or the end of a pipe or terminal, given by its file descriptor."""
    _, max_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max_files, max_files))
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, stop.set)
    if stop_at_eof is not None:
        loop.add_reader(stop_at_eof, _stop_if_ended, stop_at_eof, stop)
    await server.start(listener)
    if announce:
        print(f"listening on {ADDRESS}:{server.port}", flush=True)
    await stop.wait()
    if stop_at_eof is not None:
        loop.remove_reader(stop_at_eof)
    await server.close()


def _stop_if_ended(pipe: int, stop: asyncio.Event) -> None:
    if not os.read(pipe, 4_096):
        stop.set()


def main(arguments: list[str] | None = None) -> int:
    """Serve a small web."""
    options = _options().parse_args(arguments)
    try:
        web = SmallWeb(options.seed, options.hosts, adjusted(PROFILES[options.profile], options.set))
        _write_seeds(web, options.seeds)
        listener = bound_socket(options.port)
    except RoveError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"could not listen on port {options.port}: {error.strerror}", file=sys.stderr)
        return 1
    stop_at_eof = sys.stdin.fileno() if options.stop_at_eof else None
    uvloop.run(serve(SmallWebServer(web, log=options.log), listener, stop_at_eof=stop_at_eof))
    return 0


def _write_seeds(web: SmallWeb, path: Path | None) -> None:
    if path is None:
        return
    try:
        path.write_text(web.seed_file())
    except OSError as error:
        raise RoveError(f"could not write {path}: {error.strerror}") from error


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m rove.demo.server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: a free port")
    parser.add_argument("--hosts", type=int, default=1_000, help="number of domains")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", choices=sorted(PROFILES), default="full")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="change a setting of the profile: crawl_delay=1, pages_per_host=3,12, entries.slow=0",
    )
    parser.add_argument("--seeds", type=Path, help="write all hosts to this file, as the seeds of a crawl")
    parser.add_argument("--log", type=Path, help="append a line per request to this file")
    parser.add_argument("--stop-at-eof", action="store_true", help="stop at the end of standard input")
    return parser


if __name__ == "__main__":
    sys.exit(main())
