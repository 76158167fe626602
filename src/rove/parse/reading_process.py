"""The process that reads long pages: `python -m rove.parse.reading_process CPU_SECONDS BYTES`.

It reads tasks from its standard input and writes one reply for each to its standard output. If a page takes more than
CPU_SECONDS, a kernel timer kills the process, because no Python code runs while the parser is busy.
"""

from __future__ import annotations

import enum
import resource
import signal
import sys
from collections.abc import Iterator
from typing import BinaryIO

import msgspec
from selectolax.lexbor import SelectolaxError

from rove.parse.html import Document, PageSource, read_html, read_plain
from rove.parse.sitemap import is_short, permitted, read_sitemap
from rove.urls.canonical import CrawlUrl

URLS_AT_ONCE = 500
"""URLs of a sitemap that are decoded together; a sitemap may have 50,000."""
READY = b"ready"
"""The first output. If the process ends later, a page or somebody else killed it."""
LENGTH_BYTES = 4
"""Each message starts with its length."""


class Kind(enum.Enum):
    """The kind of page to read."""

    HTML = "html"
    PLAIN_TEXT = "plain text"
    SITEMAP = "sitemap"


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A page to read."""

    page: PageSource
    kind: Kind
    host: str = ""
    """For a sitemap: the host whose robots.txt named it."""


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The URLs and sitemaps that a sitemap lists."""

    packed: tuple[bytes, ...]
    sitemaps: tuple[CrawlUrl, ...]
    """The sitemaps that a sitemap index lists."""

    def urls(self) -> Iterator[list[CrawlUrl]]:
        """Decode the URLs in batches, so that the event loop can do other work in between."""
        for some in self.packed:
            yield _to_urls.decode(some)


_to_urls = msgspec.msgpack.Decoder(list[CrawlUrl])


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a task: one of the three fields is set."""

    document: Document | None = None
    listing: Listing | None = None
    failure: str = ""
    """Why there is no document and no listing."""


def list_sitemap(page: PageSource, host: str) -> Listing:
    """Read what a sitemap may list for the host whose robots.txt named it."""
    url, ignored = page.url, page.ignored_params
    sitemap = read_sitemap(page.body, url=url)
    pages = permitted(sitemap.urls, url=url, host=host, ignored=ignored)
    return Listing(
        packed=tuple(
            msgspec.msgpack.encode(pages[start : start + URLS_AT_ONCE]) for start in range(0, len(pages), URLS_AT_ONCE)
        ),
        sitemaps=tuple(permitted(sitemap.sitemaps, url=url, host=host, ignored=ignored)),
    )


def list_sitemap_at_once(page: PageSource, host: str) -> Listing | None:
    """Read a sitemap, or return None if that may take long."""
    return list_sitemap(page, host) if is_short(page.body) else None


def main() -> None:
    """Read pages until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    cpu_seconds, memory = float(sys.argv[1]), int(sys.argv[2])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    tasks, documents = sys.stdin.buffer, sys.stdout.buffer
    documents.write(READY)
    documents.flush()
    while (message := _next(tasks)) is not None:
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        reply = msgspec.msgpack.encode(_reply(message))
        signal.setitimer(signal.ITIMER_PROF, 0)
        documents.write(len(reply).to_bytes(LENGTH_BYTES) + reply)
        documents.flush()


def _next(tasks: BinaryIO) -> bytes | None:
    length = tasks.read(LENGTH_BYTES)
    return tasks.read(int.from_bytes(length)) if len(length) == LENGTH_BYTES else None


def _reply(message: bytes) -> Reply:
    task = msgspec.msgpack.decode(message, type=Task)
    try:
        if task.kind is Kind.SITEMAP:
            return Reply(listing=list_sitemap(task.page, task.host))
        read = read_plain if task.kind is Kind.PLAIN_TEXT else read_html
        return Reply(document=read(task.page))
    except (MemoryError, SelectolaxError):
        return Reply(failure="it takes too much memory")


if __name__ == "__main__":
    main()
