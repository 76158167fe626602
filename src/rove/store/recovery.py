"""Recovery after a crash: truncates open WARC files to whole records and finishes them before the crawl resumes.

Only the end of such a file can be damaged, by a batch for which write() had not returned. After a power cut the damaged
part may contain anything, for instance zeros followed by whole records. So every record is read from the start, and the
file is cut before the first one that is not whole. Nothing is ever appended to a recovered file. The files of an
unfinished purge have other names (see purge.py) and are left to the next purge.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from rove.errors import StoreError
from rove.store.files import OPEN_SUFFIX, hold, store_error, sync_directory
from rove.store.record import NotARecord
from rove.store.scan import scan


class RecoveryReport(NamedTuple):
    """Counts the results of a recovery."""

    files: int = 0
    """Files that were finished."""
    removed: int = 0
    """Files that were deleted because they had no whole record."""
    in_use: int = 0
    """Files that were skipped because a running process writes to them."""
    records: int = 0
    """Records in the finished files."""
    bytes_cut: int = 0


def recover(directory: Path) -> RecoveryReport:
    """Finish every file that a crash left open. Repeating it changes nothing."""
    left_open = sorted(directory.glob(f"*.warc.gz{OPEN_SUFFIX}"))
    if not left_open:
        return RecoveryReport()
    try:
        # ISA-L releases the GIL, so files are read in parallel.
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as threads:
            reports = list(threads.map(_recover_file, left_open))
        sync_directory(directory)
    except OSError as error:
        raise store_error(error, f"write pages to {directory}") from error
    return RecoveryReport(*map(sum, zip(*reports, strict=True)))


def _recover_file(path: Path) -> RecoveryReport:
    try:
        fd = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return RecoveryReport()  # its writer has just finished it
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
        raise StoreError(f"both {final} and {path} exist; move one of them out of the directory")
    if cut:
        os.ftruncate(fd, end)
    os.fsync(fd)
    path.rename(final)
    return RecoveryReport(files=1, records=records, bytes_cut=cut)


def _whole_records(fd: int) -> tuple[int, int]:
    """Return the number of whole records at the start of a file, and their end."""
    records = end = 0
    with suppress(NotARecord):
        for record in scan(fd):
            records += 1
            end = record.end
    return records, end
