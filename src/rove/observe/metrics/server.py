"""A small HTTP server for one page, which a slow or hostile client cannot use to slow down the crawl beside it.

It runs in the event loop of the crawl, so everything that a client could use up is bounded: the connections that are
accepted in a second, those that are open, the size of a request, and the time until the response has been read. If too
many are open, the oldest one is closed, so that idle connections do not lock out others. Each connection serves one
request.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus

from rove.frontier.clock import steady_seconds
from rove.observe.metrics.http import Request, Response, parse_request

BLOCK = 4096

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """What all clients together may use."""

    connections: int = 32
    """Connections that are open at a time."""
    pause: float = 0.02
    """Seconds between two connections that are accepted."""
    head: int = 8192
    """Bytes of a request."""
    seconds: float = 10.0
    """From the begin of a connection to its end."""
    retry: float = 1.0
    """Seconds until the next connection is accepted after that failed, for instance because files ran out."""
    quiet: float = 60.0
    """At most one error in this many seconds is logged."""


class PageServer:
    """Answers GET and HEAD requests."""

    def __init__(
        self,
        listener: socket.socket,
        respond: Callable[[Request], Awaitable[Response]],
        *,
        limits: ServerLimits | None = None,
    ) -> None:
        """`listener` does not block; `respond` is given each request that makes sense."""
        self._listener = listener
        self._respond = respond
        self._limits = limits or ServerLimits()
        self._open: dict[asyncio.Task[None], None] = {}
        """The connections, oldest first."""
        self._logged_at = float("-inf")

    async def run(self) -> None:
        """Serve until the task is cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    connection, _ = await loop.sock_accept(self._listener)
                except OSError as error:
                    self._note("could not accept a connection", error)
                    await asyncio.sleep(self._limits.retry)
                    continue
                if len(self._open) >= self._limits.connections:
                    next(iter(self._open)).cancel()
                task = asyncio.create_task(self._serve(connection))
                self._open[task] = None
                task.add_done_callback(lambda task: self._open.pop(task, None))
                await asyncio.sleep(self._limits.pause)
        finally:
            self._listener.close()
            for task in self._open:
                task.cancel()

    async def _serve(self, connection: socket.socket) -> None:
        """Serve one connection. Nothing that goes wrong with it concerns anything else."""
        try:
            connection.setblocking(False)
            async with asyncio.timeout(self._limits.seconds):
                await self._exchange(connection)
        except (OSError, TimeoutError):
            log.debug("a client was too slow, or has gone")
        except Exception as error:
            self._note("could not answer a request", error)
        finally:
            connection.close()

    async def _exchange(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        head = await self._head(connection)
        if head is None:
            return
        request = parse_request(head, self._limits.head)
        response = await self._answer(request) if isinstance(request, Request) else request
        has_body = not (isinstance(request, Request) and request.is_head)
        await loop.sock_sendall(connection, response.encoded(has_body=has_body))

    async def _answer(self, request: Request) -> Response:
        try:
            return await self._respond(request)
        except Exception as error:
            self._note("could not answer a request", error)
            return Response.brief(HTTPStatus.INTERNAL_SERVER_ERROR)

    async def _head(self, connection: socket.socket) -> bytes | None:
        """Return what the client has sent up to the blank line, or up to the limit; None if it has gone before that."""
        loop = asyncio.get_running_loop()
        head = b""
        while b"\r\n\r\n" not in head and b"\n\n" not in head and len(head) <= self._limits.head:
            received = await loop.sock_recv(connection, BLOCK)
            if not received:
                return None
            head += received
        return head

    def _note(self, what: str, error: Exception) -> None:
        now = steady_seconds()
        if now - self._logged_at >= self._limits.quiet:
            self._logged_at = now
            log.warning("%s: %s", what, error, exc_info=error)
