"""Open files held in reserve, so that a crawl whose fetches have taken all of them can still write down what it has.

A process that may open no more files loses nothing but fetches by it, which wait; but a WARC file or a spool that
cannot be begun would end the crawl. Below everything that opens files while crawling.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

SPARES = 4
"""More than anyone here opens in one go."""
_NO_MORE = frozenset({errno.EMFILE, errno.ENFILE})

_T = TypeVar("_T")


class SpareFiles:
    """A few open files that lead nowhere; any thread may use them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: list[int] = []
        self._fill()

    def opened(self, open_file: Callable[[], _T]) -> _T:
        """What a function returns that opens files, with ours given up for it if there are no others."""
        with self._lock:
            self._fill()
            try:
                return open_file()
            except OSError as error:
                if error.errno not in _NO_MORE:
                    raise
                self._empty()
                return open_file()

    def close(self) -> None:
        """Give them all back."""
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
    """In the place of `SpareFiles.opened` where none are held."""
    return open_file()
