"""The WARC files of one kind, one after the other: batches of records that are durable completely or not at all."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from rove.model.ledger import Location
from rove.resources.spare_files import SpareFiles, at_once
from rove.store.files import OpenFile, sync_directory
from rove.store.record import compress, warcinfo_record


class Series:
    """Appends records to a file of a directory, and starts a new file when it is full. All methods may raise OSError.

    A batch begins with `begin`. It is durable after `sync`, and ends with `end`, `roll_back` or `abandon`.
    """

    def __init__(
        self, directory: Path, name: str, info: Mapping[str, str], max_file_bytes: int, spare: SpareFiles | None
    ) -> None:
        """`name` is the prefix of file names; `info` goes into the warcinfo record of each file."""
        self._opened = at_once if spare is None else spare.opened
        self._directory = directory
        self._name = name
        self._info = info
        self._max_file_bytes = max_file_bytes
        self._serial = 0
        self._file: OpenFile | None = None
        self._size_before = 0
        self._touched: list[OpenFile] = []
        """The files of the current batch; the first one may be from an earlier batch."""

    def begin(self) -> None:
        """Begin a batch."""
        self._size_before = self._file.size if self._file else 0
        self._touched = [self._file] if self._file else []

    def append(self, record: bytes) -> Location:
        """Append a record to the batch."""
        if not self._touched or self._touched[-1].size >= self._max_file_bytes:
            self._touched.append(self._begin_file())
        file = self._touched[-1]
        member = compress(record)
        return Location(file=file.name, offset=file.append(member), length=len(member))

    def sync(self) -> None:
        """Make the batch durable, with the names of its files."""
        for file in self._touched:
            file.sync()
        if self._touched and self._touched[-1] is not self._file:
            self._sync_directory()

    def end(self) -> None:
        """End a batch that is durable: finish all its files except the last."""
        if not self._touched:
            return
        for file in self._touched[:-1]:
            file.finish()
        if len(self._touched) > 1:
            self._sync_directory()
        self._file = self._touched[-1]
        self._touched = []

    def roll_back(self) -> None:
        """Restore the files as they were before the batch, as far as possible. A batch that has ended stays."""
        if not self._touched:
            return
        before, self._file = self._file, None
        for file in self._touched:
            if file.closed:
                continue
            if file is not before:
                with suppress(OSError):  # the next recovery cuts it
                    file.discard()
                continue
            try:
                file.cut(self._size_before)
                self._file = file
            except OSError:
                file.close()
        self._touched = []

    def abandon(self) -> None:
        """Leave the files of the batch to the next recovery, because their end or their name is not known any more."""
        self._file = None
        for file in self._touched:
            if not file.closed:
                file.close()
        self._touched = []

    def finish(self) -> None:
        """Finish the open file."""
        file, self._file = self._file, None
        if file is None:
            return
        try:
            file.finish()
        except OSError:
            file.close()
            raise
        self._sync_directory()

    def _begin_file(self) -> OpenFile:
        now = time.time()
        stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(now))
        if not self._directory.exists():
            self._directory.mkdir(parents=True, exist_ok=True)
            sync_directory(self._directory.parent)
        while True:
            path = self._directory / f"{self._name}-{stamp}-{self._serial:05d}.warc.gz"
            self._serial += 1
            try:
                file = self._opened(partial(OpenFile.create, path))
                break
            except FileExistsError:
                continue  # another store used this name in the same second
        opening = warcinfo_record(filename=path.name, created_at=now, fields=self._info)
        file.append(compress(opening))
        return file

    def _sync_directory(self) -> None:
        self._opened(lambda: sync_directory(self._directory))
