"""The log file of a process, which also takes what the interpreter writes when it crashes."""

from __future__ import annotations

import faulthandler
import logging
import os
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from rove.errors import StoreError
from rove.notation.harmless import one_line, some_lines
from rove.notation.humanize import utc_text

LOG_BYTES = 32 * 1024 * 1024
LOG_FILES = 3
STDERR = 2
"""The descriptor of standard error, which libraries in C write to as well."""


class LogFormatter(logging.Formatter):
    """Formats a line of the log. Its time looks as everywhere else, and text from the web is harmless in it."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return utc_text(record.created, milliseconds=True)

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = one_line(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:
        return some_lines(super().formatException(ei))


class LogFile(RotatingFileHandler):
    """A rotated log file that takes the stacks of all threads if the process crashes."""

    def __init__(self, file: Path, *, takes_stderr: bool, max_bytes: int = LOG_BYTES) -> None:
        """With `takes_stderr`, everything that is written to standard error goes into the file too."""
        self._takes_stderr = takes_stderr
        super().__init__(file, maxBytes=max_bytes, backupCount=LOG_FILES, encoding="utf-8")
        self.setFormatter(LogFormatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))

    def _open(self) -> TextIOWrapper:
        """Open the file, at the start and after each rotation."""
        stream = super()._open()
        faulthandler.enable(file=stream)
        if self._takes_stderr:
            os.dup2(stream.fileno(), STDERR)
        return stream


def start_logging(file: Path, level: str, *, takes_stderr: bool = False) -> None:
    """Write the log to a file, which is rotated."""
    try:
        handler = LogFile(file, takes_stderr=takes_stderr)
    except OSError as error:
        raise StoreError(f"the log {file} cannot be written: {error.strerror}") from error
    root = logging.getLogger("rove")
    root.setLevel(level.upper())
    root.addHandler(handler)
