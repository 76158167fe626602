"""Output that cannot stop a crawl, and the signals that do."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from typing import TextIO

REPEAT_SECONDS = 0.5
"""A second signal within this time is the same one: `timeout` and some shells send two."""

log = logging.getLogger(__name__)


class SafeOutput:
    """A text stream that drops what it cannot write: the terminal is closed, the pipe broken, the disk full."""

    def __init__(self, stream: TextIO | None) -> None:
        """`stream` is None if its descriptor was closed at the start."""
        self._stream = stream
        self.error: Exception | None = None
        """The first error of the stream."""

    @property
    def encoding(self) -> str:
        """The encoding of the stream."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Write a text; a text that cannot be written goes into the log."""
        try:
            if self._stream is not None:
                self._stream.write(text)
        except (OSError, ValueError) as error:
            self._note(error)
            log.info("not printed: %s", text.strip())
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        try:
            if self._stream is not None:
                self._stream.flush()
        except (OSError, ValueError) as error:
            self._note(error)

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        try:
            return self._stream is not None and self._stream.isatty()
        except (OSError, ValueError):
            return False

    def fileno(self) -> int:
        """Return the descriptor of the stream."""
        if self._stream is None:
            raise OSError("the stream is closed")
        return self._stream.fileno()

    def _note(self, error: Exception) -> None:
        if self.error is None:
            self.error = error
            log.warning("the terminal or file for messages cannot be written: %s", error)


class StopSignals:
    """Ctrl-C, SIGTERM and a closed terminal: the first one stops the crawl, a later one ends it at once."""

    def __init__(self, stop: Callable[[], None], end_at_once: Callable[[int], None]) -> None:
        self._stop = stop
        self._end_at_once = end_at_once
        self._received_at = 0.0
        self.received: int | None = None
        """The first signal."""

    def install(self) -> None:
        """Handle signals, except those that were ignored at the start (nohup: SIGHUP, background jobs: SIGINT)."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number == signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._handle, number)

    def _handle(self, number: int) -> None:
        now = asyncio.get_running_loop().time()
        if self.received is None:
            self.received, self._received_at = number, now
            self._stop()
        elif now - self._received_at > REPEAT_SECONDS:
            self._end_at_once(number)
