"""Holds open files in reserve, so that a crawl whose fetches use all open files can still write its results.

A process without free file descriptors only has to delay fetches. But a WARC file or an in-flight log that cannot be
opened would end the crawl.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

SPARES = 4
"""More than any caller opens at a time."""
_TOO_MANY_FILES = frozenset({errno.EMFILE, errno.ENFILE})

_T = TypeVar("_T")


class SpareFiles:
    """A few open files, to be closed when others are needed. Any thread may use them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: list[int] = []
        self._fill()

    def opened(self, open_file: Callable[[], _T]) -> _T:
        """Call a function that opens files; if there are too many open files, close the spares and call it again."""
        with self._lock:
            self._fill()
            try:
                return open_file()
            except OSError as error:
                if error.errno not in _TOO_MANY_FILES:
                    raise
                self._empty()
                return open_file()

    def close(self) -> None:
        """Close the spares."""
        with self._lock:
            self._empty()

    def _fill(self) -> None:
        with suppress(OSError):
            while len(self._files) < SPARES:
                self._files.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    def _empty(self) -> None:
        while self._files:
            os.close(self._files.pop())


def at_once(open_file: Callable[[], _T]) -> _T:
    """Call a function that opens files, without spares to close."""
    return open_file()
