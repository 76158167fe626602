"""The endpoint of `--metrics`: it answers requests for the metrics of this machine's part of a crawl."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from http import HTTPStatus

from rove.observe.metrics.collector import ReadingCollector
from rove.observe.metrics.formats import Format, format_for
from rove.observe.metrics.http import Request, Response
from rove.observe.metrics.reading import Reading
from rove.observe.metrics.server import PageServer, ServerLimits

PATH = "/metrics"
_HINT = f"The metrics of this rove crawl are at {PATH}\n".encode()


class MetricsEndpoint:
    """Serves the metrics of whatever crawls at the moment."""

    def __init__(self, read: Callable[[], Reading]) -> None:
        """`read` returns the figures of this machine, and the same object as before if none has changed."""
        self._read = read
        self._texts: dict[Format, tuple[Reading, bytes]] = {}
        """The last answer in each format, and what it was made from: many requests cost hardly more than one."""
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
            reading = self._read()
            known = self._texts.get(wanted)
            if known is not None and known[0] is reading:
                return known[1]
            # It takes up to 30 ms. In a thread it does not stop the event loop for more than 5 ms at a time.
            text = await asyncio.to_thread(wanted.encoded, ReadingCollector(reading))
            self._texts[wanted] = reading, text
            return text
