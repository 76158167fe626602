"""Loops to compare rove with, each run in processes of its own:

    raw         connect, send a GET, count the bytes: the most that the server can do
    fetch       rove's fetcher and nothing else
    bare        rove's fetcher and rove's parser with its links, but no frontier, no store and no politeness
    lexbor      pycurl, Lexbor and joined links, without any code of rove: what a short script would do
    handshakes  rove's fetcher and robots.txt files, each over its own connection: over https, little but TLS

All request different URLs of the small web, spread over its hosts, with the same number of requests in flight. At the
end, each prints one line of JSON with the numbers of pages and of errors.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from typing import Any, cast
from urllib.parse import urlsplit

import uvloop

from benchmarks import lexbor_loop
from benchmarks.web import WebPlan
from rove.config import DEFAULT_MAX_PAGE_SIZE
from rove.crawl.requests import READABLE_TYPES
from rove.fetch.address import AddressGuard
from rove.fetch.connect_to import parse_connect_to
from rove.fetch.contract import Request
from rove.fetch.dns import AresLookup, CachingResolver
from rove.fetch.http import CurlFetcher
from rove.model.outcomes import Fetched
from rove.parse.html import PageSource, read_html
from rove.policy.identity import user_agent
from rove.resources.runtime import tune_process
from rove.urls.canonical import NO_IDS

EMAIL = "bench@crawler.test"
KINDS = ("raw", "fetch", "bare", "lexbor", "handshakes")


class Loop:
    """Fetches URLs in a fixed number of slots until the time is over."""

    def __init__(self, urls: Iterator[str], concurrency: int, seconds: float) -> None:
        self.pages = 0
        self.links = 0
        self.errors = 0
        self._urls = urls
        self._concurrency = concurrency
        self._seconds = seconds

    async def run(self, take: Callable[[str], Awaitable[None]]) -> None:
        """Call `take` with URLs until the time is over."""
        end = asyncio.get_running_loop().time() + self._seconds
        await asyncio.gather(*(self._slot(take, end) for _ in range(self._concurrency)))

    async def _slot(self, take: Callable[[str], Awaitable[None]], end: float) -> None:
        clock = asyncio.get_running_loop().time
        while clock() < end:
            await take(next(self._urls))


async def with_curl(loop: Loop, connect_to: str, *, parse: bool) -> None:
    """Fetch, and optionally parse, with the modules that rove uses."""
    fetcher = CurlFetcher(
        user_agent=user_agent(EMAIL, None),
        resolver=CachingResolver(AresLookup()),
        guard=AddressGuard(allow_private=True),
        connect_to=[parse_connect_to(connect_to)],
    )

    async def take(url: str) -> None:
        parsed = NO_IDS.canonical(url)
        assert parsed is not None
        request = Request(url=parsed, max_bytes=DEFAULT_MAX_PAGE_SIZE, accept_types=READABLE_TYPES)
        outcome = await fetcher.fetch(request)
        if not isinstance(outcome, Fetched):
            loop.errors += 1
            return
        loop.pages += 1
        if parse:
            content_type = outcome.response.header("content-type")
            answer = PageSource(body=outcome.body, url=url, content_type=content_type)
            loop.links += len(read_html(answer, NO_IDS).links)

    await loop.run(take)
    await fetcher.close()


async def with_sockets(loop: Loop, address: str) -> None:
    """Fetch with as little code as possible."""
    host, _, port = address.rpartition(":")
    running = asyncio.get_running_loop()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    async def take(url: str) -> None:
        secure = {"ssl": context, "server_hostname": urlsplit(url).hostname}
        options: dict[str, Any] = secure if url.startswith("https") else {}
        try:
            transport, client = await running.create_connection(lambda: _RawClient(url), host, int(port), **options)
            complete = await client.done
            transport.close()
        except OSError:
            complete = False
        loop.pages += complete
        loop.errors += not complete

    await loop.run(take)


class _RawClient(asyncio.Protocol):
    """One request, whose answer is only counted."""

    def __init__(self, url: str) -> None:
        host, _, path = url.partition("://")[2].partition("/")
        self.done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._request = f"GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        self._head = b""
        self._left: int | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        if self._left is None:
            self._head += data
            head, found, data = self._head.partition(b"\r\n\r\n")
            if not found:
                return
            self._left = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
        self._left -= len(data)
        if self._left <= 0:
            self._end(complete=True)

    def connection_lost(self, error: Exception | None) -> None:
        self._end(complete=False)

    def _end(self, *, complete: bool) -> None:
        if not self.done.done():
            self.done.set_result(complete)


def run(options: argparse.Namespace, share: int) -> Counter[str]:
    """Run one process, set up like one that crawls, on its share of the URLs."""
    tune_process()
    plan = WebPlan(hosts=options.hosts, knobs=tuple(options.set))
    urls: Iterator[str] = islice(plan.urls(), share, None, options.processes)
    if options.kind == "handshakes":
        urls = (f"{url[: url.index('/', 8)]}/robots.txt" for url in urls)
    loop = Loop(urls, max(1, options.concurrency // options.processes), options.seconds)
    if options.kind == "raw":
        uvloop.run(with_sockets(loop, options.address))
    elif options.kind == "lexbor":
        uvloop.run(lexbor_loop.run(loop, options.address))
    else:
        parse = options.kind == "bare"
        uvloop.run(with_curl(loop, f"*.test={options.address}", parse=parse))
    return Counter(pages=loop.pages, errors=loop.errors, links=loop.links)


def main() -> None:
    """Run one of the loops."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--address", required=True)
    parser.add_argument("--hosts", type=int, required=True)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    count = options.processes
    if count == 1:
        sums = run(options, 0)
    else:
        spawned = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(count, mp_context=spawned) as pool:
            shares = [pool.submit(run, options, share) for share in range(count)]
            sums = sum((share.result() for share in shares), Counter())
    print(json.dumps({name: sums[name] for name in ("pages", "errors", "links")}))


if __name__ == "__main__":
    main()
