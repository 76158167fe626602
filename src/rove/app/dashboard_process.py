"""Starts a dashboard beside a crawl, as a process of its own, and ends it with the crawl.

Whatever happens to it, the crawl goes on: the dashboard may fail to start, crash, or be killed.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from rove.datadir import DataDir
from rove.observe.dashboard.links import Links

OF_CRAWL = "--of-crawl"
"""The option with which a crawl starts its dashboard: it ends when its standard input is closed."""
COMMAND = (sys.executable, "-P", "-m", "rove", "dashboard", OF_CRAWL)
END_SECONDS = 5.0
_MAX_ERROR = 500
"""Bytes of its last error message."""

log = logging.getLogger(__name__)


class DashboardProcess:
    """The dashboard of a crawl."""

    def __init__(
        self,
        data: DataDir,
        listen: str,
        *,
        say: Callable[[str], None],
        show: Callable[[str], None],
        command: Sequence[str] = COMMAND,
    ) -> None:
        """`say` shows a sentence and logs it; `show` shows a secret, which no log may hold."""
        self._data = data
        self._arguments = [*command, "--data-dir", str(data.root), "--listen", listen]
        self._say = say
        self._show = show

    async def run(self) -> None:
        """Start the dashboard and wait until it ends, or end it when this is cancelled."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._arguments,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                start_new_session=True,  # Ctrl-C is meant for the crawl
            )
        except OSError as error:
            self._say(f"there is no dashboard: {error.strerror}")
            return
        try:
            last_words = await self._watch(process)
            self._say(f"the dashboard has ended{last_words}; the crawl goes on")
        finally:
            await _end(process)

    async def _watch(self, process: Process) -> str:
        """Show where the dashboard is, and wait until it ends; return why it did, as the end of a sentence."""
        assert process.stdout is not None and process.stderr is not None, "both are pipes"
        last_line = asyncio.create_task(_last_line(process.stderr))
        try:
            with suppress(msgspec.DecodeError, ValueError):
                links = msgspec.json.decode(await process.stdout.readline(), type=Links)
                log.info("dashboard at %s", links.page)
                self._show(f"dashboard: {links.with_token}")
            code = await process.wait()
            said = await last_line
        finally:
            last_line.cancel()
        return f": {said}" if said else f" with exit code {code}"


async def _last_line(stream: asyncio.StreamReader) -> str:
    """Return the last line that a stream brings, shortened."""
    last = b""
    while part := await stream.read(4096):
        last = (last + part)[-_MAX_ERROR:]
    return last.decode(errors="replace").strip().rpartition("\n")[2].removeprefix("rove: ")


async def _end(process: Process) -> None:
    """End the process, with force if it takes its time."""
    assert process.stdin is not None, "it is a pipe"
    process.stdin.close()
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(END_SECONDS):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
