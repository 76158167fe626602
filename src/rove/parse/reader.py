"""Read pages without blocking the event loop: plain ones in the loop, all others in another process.

guard.py decides which pages are plain. The other pages, which are long or may be crafted to take long, go one by one to
a reading process, which is started for the first of them. A page that takes more than MAX_CPU_SECONDS or MAX_MEMORY is
too complex: it kills the process, and the next page gets a new one. Nothing is used of such a page, because its robots
directives are unknown.

The process is started fresh, not forked, so it inherits no connections. It ignores Ctrl-C and ends when its standard
input ends, which is when the crawl ends, for whatever reason.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import signal
import sys
from contextlib import suppress

import msgspec

from rove.parse.html import Document, PageSource, read_html_at_once, read_plain_at_once
from rove.parse.reading_process import LENGTH_BYTES, READY, Kind, Listing, Reply, Task, list_sitemap_at_once
from rove.policy.constants import DEFAULT_MAX_LINKS
from rove.urls.ignored_params import IgnoredParams, ignored_params_with

MAX_CPU_SECONDS = 2.0
"""Ten times what an ordinary page of 5 MiB takes."""
MAX_MEMORY = 1024 * 1024 * 1024
LEAST_MEMORY = 512 * 1024 * 1024
"""Address space of the process. Half of this is in use before it reads anything."""
MAX_SECONDS = 30.0
"""Timeout for one page; the machine may be busy."""
MAX_QUEUE_SECONDS = 120.0
"""Timeout for a page's turn in the queue."""

log = logging.getLogger(__name__)

_to_reply = msgspec.msgpack.Decoder(Reply)


class Unread(enum.Enum):
    """Why a page could not be read."""

    TOO_COMPLEX = enum.auto()
    BUSY = enum.auto()
    """Not the page's fault; the page may be tried again."""


class PageReader:
    """Reads the pages of one crawling process."""

    def __init__(
        self,
        *,
        max_links: int = DEFAULT_MAX_LINKS,
        drop_params: tuple[str, ...] = (),
        max_cpu_seconds: float = MAX_CPU_SECONDS,
        max_memory: int = MAX_MEMORY,
        max_queue_seconds: float = MAX_QUEUE_SECONDS,
    ) -> None:
        """`max_memory`, in bytes, limits the reading process; it is raised to LEAST_MEMORY or lowered to MAX_MEMORY."""
        self.max_links = max_links
        self.drop_params = drop_params
        self._max_cpu_seconds = max_cpu_seconds
        self._max_memory = min(MAX_MEMORY, max(LEAST_MEMORY, max_memory))
        self._max_queue_seconds = max_queue_seconds
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    @property
    def ignored_params(self) -> IgnoredParams:
        """The parameters to remove from URLs."""
        return ignored_params_with(self.drop_params)

    @property
    def process_id(self) -> int | None:
        """The process id of the reading process, or None if it is not running."""
        return None if self._process is None else self._process.pid

    def read_at_once(self, page: PageSource, *, is_plain_text: bool) -> Document | None:
        """Read a page in the event loop, or return None if it must be read in the reading process."""
        return read_plain_at_once(page) if is_plain_text else read_html_at_once(page)

    async def read_apart(self, page: PageSource, *, is_plain_text: bool) -> Document | Unread:
        """Read a page in the reading process."""
        kind = Kind.PLAIN_TEXT if is_plain_text else Kind.HTML
        reply = await self._in_turn(Task(page=page, kind=kind))
        return reply.document or Unread.TOO_COMPLEX if isinstance(reply, Reply) else reply

    async def list_sitemap(self, body: bytes, *, url: str, host: str) -> Listing | Unread:
        """Read what a sitemap lists for a host; a short one in the event loop."""
        page = PageSource(body=body, url=url, content_type=None, drop_params=self.drop_params)
        listing = list_sitemap_at_once(page, host)
        if listing is not None:
            return listing
        reply = await self._in_turn(Task(page=page, kind=Kind.SITEMAP, host=host))
        return reply.listing or Unread.TOO_COMPLEX if isinstance(reply, Reply) else reply

    async def _in_turn(self, task: Task) -> Reply | Unread:
        try:
            # Not wait_for, which can swallow a cancellation before Python 3.12.
            async with asyncio.timeout(self._max_queue_seconds):
                await self._turn.acquire()
        except TimeoutError:
            return Unread.BUSY
        try:
            return await self._ask(task)
        finally:
            self._turn.release()

    async def close(self) -> None:
        """Kill the reading process."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _ask(self, task: Task) -> Reply | Unread:
        """Send a page to the process. If something else killed the process, try once more with a new one."""
        for _ in range(2):
            try:
                process = await self._running()
            except (OSError, EOFError, TimeoutError) as error:
                await self.close()
                reason = str(error) or type(error).__name__
                log.warning("could not start the process that reads long pages: %s", reason)
                return Unread.BUSY
            except BaseException:
                await self.close()  # it is not ready yet
                raise
            try:
                async with asyncio.timeout(MAX_SECONDS):
                    reply = await _exchange(process, task)
            except TimeoutError:
                await self.close()
                break
            except (OSError, EOFError, RuntimeError, msgspec.DecodeError):
                # uvloop raises RuntimeError for a pipe whose reader is gone.
                await self.close()
                if process.returncode == -signal.SIGPROF:
                    break
            except BaseException:
                # Its reply would be taken for that of the next page.
                await self.close()
                raise
            else:
                if reply.failure:
                    log.info("%s: %s", task.page.url, reply.failure)
                    break
                return reply
        log.info("%s is too complex to read", task.page.url)
        return Unread.TOO_COMPLEX

    async def _running(self) -> asyncio.subprocess.Process:
        """Return the process, started if necessary; raise OSError, EOFError or TimeoutError if it does not start."""
        if self._process is not None and self._process.returncode is not None:
            self._process = None
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-P", "-m", "rove.parse.reading_process"),
                *(str(self._max_cpu_seconds), str(self._max_memory)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
            assert self._process.stdout is not None, "stdout is a pipe"
            async with asyncio.timeout(MAX_SECONDS):
                await self._process.stdout.readexactly(len(READY))
        return self._process


async def _exchange(process: asyncio.subprocess.Process, task: Task) -> Reply:
    assert process.stdin is not None and process.stdout is not None, "both are pipes"
    message = msgspec.msgpack.encode(task)
    process.stdin.write(len(message).to_bytes(LENGTH_BYTES))
    process.stdin.write(message)
    await process.stdin.drain()
    length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES))
    return _to_reply.decode(await process.stdout.readexactly(length))
