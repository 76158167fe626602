"""The process in which pages are read that may take long: `python -m rove.parse.reading_process CPU_SECONDS BYTES`.

It takes tasks from its standard input and writes documents to its standard output, one for one. A page on which it
spends more CPU time than it may kills it: no code of ours runs while the parser does, so the kernel's timer does that.
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
from rove.parse.sitemap import children, is_short, listed, read_sitemap
from rove.urls.canonical import CrawlUrl

URLS_AT_ONCE = 500
"""URLs of a sitemap that are decoded in one piece; it may have 50,000."""
READY = b"ready"
"""What it says first: whatever ends it later has to do with a page, or with somebody else."""
LENGTH_BYTES = 4
"""Before each message comes its length."""


class Kind(enum.Enum):
    """What is to be read."""

    HTML = "html"
    PLAIN_TEXT = "plain text"
    SITEMAP = "sitemap"


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A page to be read."""

    answer: PageSource
    kind: Kind
    host: str = ""
    """For which a sitemap lists URLs."""


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """What a sitemap lists."""

    packed: tuple[bytes, ...]
    sitemaps: tuple[CrawlUrl, ...]
    """Those that an index names."""

    def urls(self) -> Iterator[list[CrawlUrl]]:
        """The URLs, some at a time, with room for other work between them."""
        for some in self.packed:
            yield _to_urls.decode(some)


_to_urls = msgspec.msgpack.Decoder(list[CrawlUrl])


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    document: Document | None = None
    listing: Listing | None = None
    failure: str = ""
    """Why there is neither."""


def list_sitemap(answer: PageSource, host: str) -> Listing:
    """What a sitemap may list for the host whose robots.txt named it."""
    url, ignored = answer.url, answer.ignored_params
    sitemap = read_sitemap(answer.body, url=url)
    pages = listed(sitemap, url=url, host=host, ignored=ignored)
    return Listing(
        packed=tuple(
            msgspec.msgpack.encode(pages[start : start + URLS_AT_ONCE])
            for start in range(0, len(pages), URLS_AT_ONCE)
        ),
        sitemaps=tuple(children(sitemap, url=url, host=host, ignored=ignored)),
    )


def list_sitemap_at_once(answer: PageSource, host: str) -> Listing | None:
    """The same for a sitemap that does not take long, and None for one that may."""
    return list_sitemap(answer, host) if is_short(answer.body) else None


def main() -> None:
    """Read pages until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
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
            return Reply(listing=list_sitemap(task.answer, task.host))
        read = read_plain if task.kind is Kind.PLAIN_TEXT else read_html
        return Reply(document=read(task.answer))
    except (MemoryError, SelectolaxError):
        return Reply(failure="it takes too much memory")


if __name__ == "__main__":
    main()
