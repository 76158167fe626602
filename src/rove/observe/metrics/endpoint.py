"""The endpoint of `--metrics`: it answers requests for the metrics of this machine's part of a crawl."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from http import HTTPStatus

from rove.frontier.clock import steady_seconds
from rove.observe.metrics.collector import ReadingCollector
from rove.observe.metrics.formats import Format, format_for
from rove.observe.metrics.http import Request, Response
from rove.observe.metrics.reading import Reading
from rove.observe.metrics.server import PageServer, ServerLimits

PATH = "/metrics"
FRESH_SECONDS = 1.0
"""Requests within this time get the same answer, so that many of them cost no more than one."""
_HINT = f"The metrics of this rove crawl are at {PATH}\n".encode()


class MetricsEndpoint:
    """Serves the metrics of whatever crawls at the moment."""

    def __init__(
        self,
        read: Callable[[], Reading],
        *,
        clock: Callable[[], float] = steady_seconds,
    ) -> None:
        """`read` returns the figures of this machine."""
        self._read = read
        self._clock = clock
        self._texts: dict[Format, tuple[float, bytes]] = {}
        """The last answer in each format, and when it was made."""
        self._making = asyncio.Lock()

    async def serve(self, listener: socket.socket, limits: ServerLimits | None = None) -> None:
        """Serve on a listening socket until the task is cancelled."""
        await PageServer(listener, self.respond, limits=limits).run()

    async def respond(self, request: Request) -> Response:
        """Answer a request."""
        if request.path == "/":
            return Response(HTTPStatus.OK, _HINT)
        if request.path != PATH:
            return Response.brief(HTTPStatus.NOT_FOUND)
        wanted = format_for(request.headers.get("accept", ""))
        return Response(HTTPStatus.OK, await self._text(wanted), wanted.media_type)

    async def _text(self, wanted: Format) -> bytes:
        async with self._making:
            made_at, text = self._texts.get(wanted, (float("-inf"), b""))
            if self._clock() - made_at >= FRESH_SECONDS:
                reading = self._read()
                # It takes up to 30 ms. In a thread it does not stop the event loop for more than 5 ms at a time.
                text = await asyncio.to_thread(wanted.encoded, ReadingCollector(reading))
                self._texts[wanted] = self._clock(), text
            return text
