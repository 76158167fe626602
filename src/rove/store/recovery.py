"""What a crash left: open files are cut to their whole records and finished before a crawl goes on.

Only the end of such a file can be torn, by a group that no write() had returned for yet. But after
a power cut the torn part may be anything, zeros with whole records behind them included. So every
member is read, from the first on, and the file ends before the first that is not whole. Nothing is
ever appended to a recovered file. What a purge has under way has other names (see purge.py), and is
left to the next purge.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rove.errors import StoreError
from rove.store.files import OPEN_SUFFIX, hold, store_error, sync_directory
from rove.store.members import members
from rove.store.record import NotARecord


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
        # ISA-L lets go of the interpreter: the files of many processes are read side by side.
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
    """How many whole records a file begins with, and where they end."""
    records = end = 0
    with suppress(NotARecord):
        for member in members(fd):
            records += 1
            end = member.end
    return records, end
