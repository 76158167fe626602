"""What a crash left: open files are cut to their whole records and finished before a crawl goes on.

Only the end of such a file can be torn, by a group that no write() had returned for yet. But after
a power cut the torn part may be anything, zeros with whole records behind them included. So every
member is read, from the first on, and the file ends before the first that is not whole. Nothing is
ever appended to a recovered file.
"""

from __future__ import annotations

import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rove.errors import StoreError
from rove.store.files import OPEN_SUFFIX, hold, store_error, sync_directory
from rove.store.record import (
    GZIP_WBITS,
    HEAD_END,
    RECORD_END,
    NotARecord,
    content_length,
    parse_head,
)

_STEP = 16 * 1024
"""Bytes read at a time: what lies behind a member's end is read again, and most are small."""
_MAX_HEAD = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryReport:
    """What recovery found and did."""

    files: int = 0
    """Finished now."""
    removed: int = 0
    """Without a single whole record."""
    in_use: int = 0
    """Left alone, since a living process is writing to them."""
    records: int = 0
    """Kept in the finished files."""
    bytes_cut: int = 0

    def __add__(self, other: RecoveryReport) -> RecoveryReport:
        return RecoveryReport(
            files=self.files + other.files,
            removed=self.removed + other.removed,
            in_use=self.in_use + other.in_use,
            records=self.records + other.records,
            bytes_cut=self.bytes_cut + other.bytes_cut,
        )


def recover(directory: Path) -> RecoveryReport:
    """Finish every file that a crash left open; doing it again changes nothing."""
    left_open = sorted(directory.glob(f"*.warc.gz{OPEN_SUFFIX}"))
    if not left_open:
        return RecoveryReport()
    try:
        # zlib lets go of the interpreter: the files of many processes are read side by side.
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as threads:
            reports = list(threads.map(_recover_file, left_open))
        sync_directory(directory)
    except OSError as error:
        raise store_error(error, directory) from error
    return sum(reports, RecoveryReport())


def _recover_file(path: Path) -> RecoveryReport:
    try:
        fd = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return RecoveryReport()  # finished by its writer in this moment
    try:
        if not hold(fd):
            return RecoveryReport(in_use=1)
        return _finish(path, fd) if path.exists() else RecoveryReport()
    finally:
        os.close(fd)


def _finish(path: Path, fd: int) -> RecoveryReport:
    records, end = _whole_records(fd)
    cut = os.fstat(fd).st_size - end
    if not records:
        path.unlink()
        return RecoveryReport(removed=1, bytes_cut=cut)
    final = path.with_name(path.name.removesuffix(OPEN_SUFFIX))
    if final.exists():
        raise StoreError(f"both {final} and {path} exist: move one of them out of the directory")
    if cut:
        os.ftruncate(fd, end)
    os.fsync(fd)
    path.rename(final)
    return RecoveryReport(files=1, records=records, bytes_cut=cut)


def _whole_records(fd: int) -> tuple[int, int]:
    """How many whole records a file begins with, and where they end; keeps none in memory."""
    records = end = 0
    while True:
        member = zlib.decompressobj(GZIP_WBITS)
        record = _RecordCheck()
        position = end
        try:
            while not member.eof:
                chunk = os.pread(fd, _STEP, position)
                if not chunk:
                    return records, end
                position += len(chunk)
                record.feed(member.decompress(chunk))
            record.finish()
        except (zlib.error, NotARecord):
            return records, end
        records += 1
        end = position - len(member.unused_data)


class _RecordCheck:
    """Whether bytes that pass by are one whole record."""

    def __init__(self) -> None:
        self._head: bytes | None = b""
        self._left = 0
        self._tail = b""

    def feed(self, data: bytes) -> None:
        """The next bytes."""
        if self._head is not None:
            self._head += data
            head, found, data = self._head.partition(HEAD_END)
            if not found:
                if len(head) > _MAX_HEAD:
                    raise NotARecord("the head does not end")
                return
            self._left = content_length(parse_head(head)) + len(RECORD_END)
            self._head = None
        self._left -= len(data)
        self._tail = (self._tail + data[-len(RECORD_END) :])[-len(RECORD_END) :]

    def finish(self) -> None:
        """No more bytes: NotARecord unless that was exactly one record."""
        if self._head is not None or self._left or self._tail != RECORD_END:
            raise NotARecord("not one whole record")
