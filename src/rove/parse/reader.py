"""Reads pages without ever holding up the event loop: in it where that is quick for certain, else in a process apart.

Most pages are read at once (guard.py says which). The rest, long ones and such as may be made to take long, go one
after the other to a process of their own, which is started when the first of them comes. A page that costs it more than
MAX_CPU_SECONDS or MAX_MEMORY is too complex: the process dies of it, and the next page gets a new one. Nothing is taken
from such a page, since it is not known what it asks of robots.

The process is a fresh one, not a fork; it inherits no connection, is out of reach of Ctrl-C, and ends when its standard
input does, hence with the crawl, however that ends.
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
from rove.parse.reading_process import (
    LENGTH_BYTES,
    READY,
    Kind,
    Listing,
    Reply,
    Task,
    list_sitemap_at_once,
)
from rove.policy.constants import DEFAULT_MAX_LINKS
from rove.urls.ignored_params import IgnoredParams, ignored_params_with

MAX_CPU_SECONDS = 2.0
"""Ten times what the longest ordinary page takes, 5 MiB."""
MAX_MEMORY = 1024 * 1024 * 1024
LEAST_MEMORY = 512 * 1024 * 1024
"""The address space of the process, of which half is there before it reads anything."""
MAX_SECONDS = 30.0
"""For one page: the machine may be busy."""
LONGEST_WAIT = 120.0
"""For a page's turn, which others have that are longer still."""
TOO_COMPLEX = "html-too-complex"
SITEMAP_TOO_COMPLEX = "sitemap-too-complex"

log = logging.getLogger(__name__)

_to_reply = msgspec.msgpack.Decoder(Reply)


class Unread(enum.Enum):
    """Why there is no document."""

    TOO_COMPLEX = enum.auto()
    BUSY = enum.auto()
    """The page is not to blame; it may be tried again."""


class PageReader:
    """The reader of one crawling process."""

    def __init__(
        self,
        *,
        max_links: int = DEFAULT_MAX_LINKS,
        drop_params: tuple[str, ...] = (),
        max_cpu_seconds: float = MAX_CPU_SECONDS,
        max_memory: int = MAX_MEMORY,
    ) -> None:
        """`max_memory`: bytes that the process apart may take, within LEAST_MEMORY and MAX_MEMORY."""
        self.max_links = max_links
        self.drop_params = drop_params
        self._max_cpu_seconds = max_cpu_seconds
        self._max_memory = min(MAX_MEMORY, max(LEAST_MEMORY, max_memory))
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    @property
    def ignored_params(self) -> IgnoredParams:
        """The parameters removed from URLs."""
        return ignored_params_with(self.drop_params)

    def read_at_once(self, answer: PageSource, *, is_plain_text: bool) -> Document | None:
        """The document, if reading it does not take long; None: it is to be read apart."""
        return read_plain_at_once(answer) if is_plain_text else read_html_at_once(answer)

    async def read_apart(self, answer: PageSource, *, is_plain_text: bool) -> Document | Unread:
        """The document, out of the other process."""
        kind = Kind.PLAIN_TEXT if is_plain_text else Kind.HTML
        reply = await self._in_turn(Task(answer=answer, kind=kind))
        return reply.document or Unread.TOO_COMPLEX if isinstance(reply, Reply) else reply

    async def list_sitemap(self, body: bytes, *, url: str, host: str) -> Listing | Unread:
        """What a sitemap lists for a host; read here if it is short."""
        answer = PageSource(
            body=body,
            url=url,
            content_type=None,
            drop_params=self.drop_params,
        )
        found = list_sitemap_at_once(answer, host)
        if found is not None:
            return found
        reply = await self._in_turn(Task(answer=answer, kind=Kind.SITEMAP, host=host))
        return reply.listing or Unread.TOO_COMPLEX if isinstance(reply, Reply) else reply

    async def _in_turn(self, task: Task) -> Reply | Unread:
        try:
            # Not wait_for: until Python 3.12 it could swallow a cancellation.
            async with asyncio.timeout(LONGEST_WAIT):
                await self._turn.acquire()
        except TimeoutError:
            return Unread.BUSY
        try:
            return await self._ask(task)
        finally:
            self._turn.release()

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _ask(self, task: Task) -> Reply | Unread:
        """Have a page read; a process that was killed by somebody else has a second chance with another one."""
        for _ in range(2):
            try:
                process = await self._running()
            except (OSError, EOFError, TimeoutError) as error:
                await self.close()
                reason = str(error) or type(error).__name__
                log.warning("no process to read long pages in: %s", reason)
                return Unread.BUSY
            except BaseException:
                await self.close()  # it has not said yet that it is ready
                raise
            try:
                async with asyncio.timeout(MAX_SECONDS):
                    reply = await _exchange(process, task)
            except TimeoutError:
                await self.close()
                break
            except (OSError, EOFError, RuntimeError, msgspec.DecodeError):
                # The RuntimeError is uvloop's, of a pipe whose reader is gone.
                await self.close()
                if process.returncode == -signal.SIGPROF:
                    break
            except BaseException:
                # The answer would be taken for that of the next page.
                await self.close()
                raise
            else:
                if reply.failure:
                    log.info("%s: %s", task.answer.url, reply.failure)
                    break
                return reply
        log.info("%s is too complex to be read", task.answer.url)
        return Unread.TOO_COMPLEX

    async def _running(self) -> asyncio.subprocess.Process:
        """The process, started if there is none; what prevents that is an OSError, EOFError or TimeoutError."""
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
            assert self._process.stdout is not None, "it was asked for"
            async with asyncio.timeout(MAX_SECONDS):
                await self._process.stdout.readexactly(len(READY))
        return self._process


async def _exchange(process: asyncio.subprocess.Process, task: Task) -> Reply:
    assert process.stdin is not None and process.stdout is not None, "they were asked for"
    message = msgspec.msgpack.encode(task)
    process.stdin.write(len(message).to_bytes(LENGTH_BYTES))
    process.stdin.write(message)
    await process.stdin.drain()
    length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES))
    return _to_reply.decode(await process.stdout.readexactly(length))
