"""Sorts more byte strings than fit into memory."""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

MEMORY = 64 << 20
MOST_RUNS = 64
"""Sorted files that are open at a time. When there are as many, they are merged into one."""
_OVERHEAD = 64
"""Bytes of memory that a byte string takes besides its content."""
_LENGTH_BYTES = 4


class ExternalSort:
    """Takes byte strings in any order and returns them in order, with the help of temporary files.

    The files have no names, so that nothing is left of them, however the process ends.
    """

    def __init__(self, directory: Path | None = None, *, memory: int = MEMORY, most_runs: int = MOST_RUNS) -> None:
        """`directory` is where the files are: that of the output, if the output is a file."""
        self._directory = directory
        self._memory = memory
        self._most_runs = most_runs
        self._items: list[bytes] = []
        self._size = 0
        self._runs: list[BinaryIO] = []

    def add(self, item: bytes) -> None:
        """Take one byte string."""
        self._items.append(item)
        self._size += len(item) + _OVERHEAD
        if self._size >= self._memory:
            self._spill()

    def merged(self) -> Iterator[bytes]:
        """Iterate over all byte strings in order. Nothing can be added afterwards."""
        self._items.sort()
        return heapq.merge(*map(_read, self._runs), self._items)

    def _spill(self) -> None:
        self._items.sort()
        self._runs.append(self._written(self._items))
        self._items, self._size = [], 0
        if len(self._runs) == self._most_runs:
            self._runs = [self._written(heapq.merge(*map(_read, self._runs)))]

    def _written(self, items: Iterable[bytes]) -> BinaryIO:
        file = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115 - it lives as long as the sort
        file.writelines(chain.from_iterable((len(item).to_bytes(_LENGTH_BYTES, "big"), item) for item in items))
        file.flush()
        return file


def _read(run: BinaryIO) -> Iterator[bytes]:
    with run:
        run.seek(0)
        while length := run.read(_LENGTH_BYTES):
            yield run.read(int.from_bytes(length, "big"))
