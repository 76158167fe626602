"""The small web on a port of this machine: sockets, the log, and the processes that share the port.

All hosts are on one port of loopback and the Host header tells them apart. Started by

    python -m rove.demo.server --hosts 1000 --profile full --log requests.log

it prints `listening on 127.0.0.1:PORT` and serves until it is told to stop (SIGTERM, SIGINT, or the
end of its standard input with --stop-at-eof, so that it does not outlive what started it).
"""

from __future__ import annotations

import argparse
import asyncio
import mmap
import os
import resource
import signal
import socket
import ssl
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self, cast

import uvloop

from rove.demo.answer import SiteAnswer, refusal
from rove.demo.draw import number
from rove.demo.log import LoggedRequest, LogKind, encode
from rove.demo.profile import PROFILES, adjusted
from rove.demo.secured import Secured, server_context
from rove.demo.web import SmallWeb
from rove.demo.wire import BLANK_LINE, RequestHead, frame, is_rubbish, parse_head
from rove.errors import RoveError

ADDRESS = "127.0.0.1"
FLUSH_SECONDS = 0.02
_BACKLOG = 4_096


class RequestLog:
    """Lines on their way to a file: gathered for a moment, then appended whole.

    Several processes may share a file: a write is one call, on a file opened for appending.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._waiting: list[LoggedRequest] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, entry: LoggedRequest) -> None:
        """Take an entry; it is in the file within FLUSH_SECONDS."""
        self._waiting.append(entry)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        """Write what is waiting."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines = encode(self._waiting)
        self._waiting.clear()
        while lines:
            lines = lines[os.write(self._file, lines) :]

    def close(self) -> None:
        """Write what is waiting and close the file."""
        self.flush()
        os.close(self._file)


class FirstFailures:
    """Which pages have failed once, as they should, and may now be served.

    A fixed number of bytes shared by all processes that are forked later. Two pages on one byte
    only mean that the second does not fail.
    """

    _SIZE = 1 << 16

    def __init__(self) -> None:
        self._failed = mmap.mmap(-1, self._SIZE)

    def fail_now(self, host: str, path: str) -> bool:
        """Whether this is the first request for a page; the next one is not."""
        place = number(0, host + path) % self._SIZE
        first = not self._failed[place]
        self._failed[place] = 1
        return first


class SmallWebServer:
    """Serves a small web inside of a running event loop."""

    def __init__(
        self,
        web: SmallWeb,
        *,
        log: Path | None = None,
        failures: FirstFailures | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """With `tls` the server speaks https alone."""
        self.web = web
        self.log = None if log is None else RequestLog(log)
        self.connections: set[_Connection] = set()
        self.port = 0
        self._failures = failures or FirstFailures()
        self._tls = tls
        self._server: asyncio.Server | None = None

    async def start(self, listener: socket.socket | None = None) -> None:
        """Listen on a free port of loopback, or on a socket that is bound already."""
        listener = listener or bound_sockets(0, 1)[0]
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._client, sock=listener, backlog=_BACKLOG)
        self.port = listener.getsockname()[1]

    async def close(self) -> None:
        """Stop listening, drop what is under way, and complete the log."""
        if self._server is not None:
            self._server.close()
        for connection in list(self.connections):
            connection.drop()
        log, self.log = self.log, None
        if log is not None:
            log.close()

    def _client(self) -> asyncio.Protocol:
        connection = _Connection(self)
        return connection if self._tls is None else Secured(connection, self._tls)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def answer(self, request: RequestHead) -> SiteAnswer:
        """What to say to a request."""
        if request.method not in ("GET", "HEAD"):
            request.keep_alive = False
            return refusal(405)
        host, target, codings = request.host, request.target, request.codings
        answer = self.web.answer(host, target, codings=codings)
        if answer.fails_first and not self._failures.fail_now(host, target):
            return self.web.answer(host, target, codings=codings, again=True)
        return answer


class _Connection(asyncio.Protocol):
    """One client, served one request after the other."""

    _transport: asyncio.Transport

    def __init__(self, server: SmallWebServer) -> None:
        self._server = server
        self._received = b""
        self._arrived = 0.0
        self._request: RequestHead | None = None
        """What is being answered."""
        self._answer: SiteAnswer | None = None
        self._sent = 0
        """Bytes of the answer given to the transport; 0 while the answer is held back."""
        self._timer: asyncio.TimerHandle | None = None
        self._served = 0
        """Requests that were logged."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        # Without a buffer of its own the transport tells when the kernel has taken everything.
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
            # Not here: asyncio's transport would end twice.
            asyncio.get_running_loop().call_soon(self._transport.close)

    def connection_lost(self, error: Exception | None) -> None:
        self._server.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._request is not None:
            self._log_request(time.monotonic(), complete=False)
            self._request = None

    def drop(self) -> None:
        """End the connection, whatever is under way."""
        self.connection_lost(None)
        self._transport.abort()

    def _take_request(self) -> None:
        if not self._received or self._request is not None or self._transport.is_closing():
            return
        if is_rubbish(self._received):
            self._refuse_rubbish()
            return
        head, blank_line, rest = self._received.partition(BLANK_LINE)
        if not blank_line:
            return
        self._received = rest
        request = parse_head(head)
        if request is None:
            self._refuse_rubbish()
            return
        self._request = request
        self._answer = self._server.answer(request)
        self._sent = 0
        delay = self._answer.delay + self._server.web.latency(request.host, request.target)
        if delay:
            self._timer = asyncio.get_running_loop().call_later(delay, self._send)
        else:
            self._send()

    def _send(self) -> None:
        assert self._request is not None and self._answer is not None
        data = frame(self._answer, self._request)
        self._sent = len(data)
        # Before the write: afterwards the client may have gone on already, and who keeps a delay
        # from the end of an answer must not be found early because this process was held up.
        handed_over = time.monotonic()
        self._transport.write(data)
        if not self._transport.get_write_buffer_size() and self._finish(handed_over):
            self._transport.close()

    def _finish(self, ended: float) -> bool:
        """The kernel has all of the answer; True if the connection is to end now."""
        assert self._request is not None and self._answer is not None
        cut = self._answer.cut_after is not None
        keep_alive = self._request.keep_alive and not cut
        self._log_request(ended, complete=not cut)
        self._request = self._answer = None
        if keep_alive and self._received:
            asyncio.get_running_loop().call_soon(self._take_request)
        return not keep_alive

    def _refuse_rubbish(self) -> None:
        if self._server.log is not None:
            now = time.monotonic()
            entry = LoggedRequest(
                kind=LogKind.RUBBISH, start=self._arrived, end=now, size=len(self._received)
            )
            self._server.log.add(entry)
        self._transport.abort()

    def _log_request(self, ended: float, *, complete: bool) -> None:
        if self._server.log is None:
            return
        assert self._request is not None and self._answer is not None
        self._server.log.add(
            LoggedRequest(
                start=self._arrived,
                end=ended,
                host=self._request.host,
                path=self._request.target,
                status=self._answer.status if self._sent else 0,
                agent=self._request.agent,
                location=self._answer.location if self._sent else "",
                size=self._sent,
                complete=complete,
                connected=not self._served,
            )
        )
        self._served += 1


def bound_sockets(port: int, count: int) -> list[socket.socket]:
    """Sockets bound to one port of loopback, which the kernel spreads connections over."""
    listeners: list[socket.socket] = []
    with ExitStack() as opened:
        for _ in range(count):
            listener = opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if count > 1:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listener.setblocking(False)
            listener.bind((ADDRESS, port))
            port = listener.getsockname()[1]
            listeners.append(listener)
        opened.pop_all()
    return listeners


async def serve(
    server: SmallWebServer, listener: socket.socket, *, stop_at_eof: int | None, announce: bool
) -> None:
    """Serve until a signal comes, or the end of what can be read from a pipe or terminal."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for told in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(told, stop.set)
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
    """Serve a small web from one or more processes."""
    options = _options().parse_args(arguments)
    try:
        web = SmallWeb(
            options.seed, options.hosts, adjusted(PROFILES[options.profile], options.set)
        )
        tls = None if options.certificate is None else server_context(options.certificate)
        listeners = bound_sockets(options.port, options.processes)
    except RoveError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"cannot listen on port {options.port}: {error.strerror}", file=sys.stderr)
        return 1
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    failures = FirstFailures()
    lifeline, held_end = os.pipe()
    children = []
    for listener in listeners[1:]:
        child = os.fork()
        if child == 0:
            # When the first process ends, however it does, the lifeline does too.
            os.close(held_end)
            server = SmallWebServer(web, log=options.log, failures=failures, tls=tls)
            uvloop.run(serve(server, listener, stop_at_eof=lifeline, announce=False))
            os._exit(0)
        children.append(child)
        listener.close()
    server = SmallWebServer(web, log=options.log, failures=failures, tls=tls)
    stop_at_eof = sys.stdin.fileno() if options.stop_at_eof else None
    uvloop.run(serve(server, listeners[0], stop_at_eof=stop_at_eof, announce=True))
    os.close(held_end)
    for child in children:
        os.waitpid(child, 0)
    return 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m rove.demo.server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--hosts", type=_at_least_one, default=1_000, help="number of domains")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", choices=sorted(PROFILES), default="full")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KNOB=VALUE",
        help="change the profile: crawl_delay=1, pages_per_host=3,12, entries.slow=0",
    )
    parser.add_argument("--log", type=Path, help="file to append a line per request to")
    parser.add_argument(
        "--certificate",
        type=Path,
        help="PEM with a key: speak https; the web's links are with --set secure=true",
    )
    parser.add_argument(
        "--processes", type=_at_least_one, default=1, help="how many share the port"
    )
    parser.add_argument(
        "--stop-at-eof", action="store_true", help="stop at the end of standard input, a pipe"
    )
    return parser


def _at_least_one(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not at least 1")
    return value


if __name__ == "__main__":
    sys.exit(main())
