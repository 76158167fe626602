"""Serves a dashboard until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from socket import socket

import uvicorn

from rove.admin.maintenance import CrawlNamed
from rove.inspect.open_crawl import opened
from rove.observe.dashboard.access import Access
from rove.observe.dashboard.routes import application
from rove.observe.dashboard.watched import WatchedCrawl

MAX_CONNECTIONS = 64
MAX_HEADERS = 32_768
"""Bytes of the head of a request."""
KEEP_ALIVE_SECONDS = 15
LAST_SECONDS = 2
"""How long answers may take after the dashboard was told to stop."""


class _Server(uvicorn.Server):
    """A server that leaves the signals to its caller."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(crawl: CrawlNamed, listener: socket, access: Access, *, name: str, until: asyncio.Event) -> None:
    """Serve the dashboard of a crawl on a bound socket until the event is set."""
    watched = WatchedCrawl(lambda: opened(crawl.data_dir, frontier=crawl.frontier, crawl_name=crawl.crawl_name))
    server = _Server(
        uvicorn.Config(
            application(crawl, watched, access, name=name, ending=until),
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=LAST_SECONDS,
            h11_max_incomplete_event_size=MAX_HEADERS,
        )
    )

    async def stop() -> None:
        await until.wait()
        server.should_exit = True

    stopping = asyncio.create_task(stop())
    try:
        await server.serve(sockets=[listener])
    finally:
        stopping.cancel()
        await watched.close()


def stop_at_signals(event: asyncio.Event) -> None:
    """Set the event at Ctrl-C and at SIGTERM."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number == signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, event.set)
