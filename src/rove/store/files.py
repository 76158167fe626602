"""One WARC file while it is written, and the steps by which its bytes and its name survive a crash.

A file is called `NAME.open` until it is finished; what a crash leaves under that name is for
recovery.py. The copy that a purge makes of a file is called `NAME.purge` until then, see purge.py.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from rove.errors import DiskFull, StoreError, is_disk_full

OPEN_SUFFIX = ".open"
FLUSH_BYTES = 4 * 1024 * 1024
"""Members are handed to the kernel in lumps of about this size."""


class OpenFile:
    """A WARC file that this process is appending to; calls raise OSError as it comes."""

    def __init__(self, path: Path, fd: int) -> None:
        self.name = path.name
        self.size = 0
        """With what is still in the buffer."""
        self._path = path
        self._fd = fd
        self._buffer = bytearray()

    @classmethod
    def create(cls, path: Path) -> OpenFile:
        """Begin the file that will be `path`; FileExistsError if that name is or was in use."""
        opened = open_name(path)
        fd = os.open(opened, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
        taken = FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        if not hold(fd) or os.fstat(fd).st_nlink == 0:
            os.close(fd)  # a recovery saw the empty file first and is taking it away
            raise taken
        if path.exists():
            # A file gives up its '.open' name as it takes the final one: asked earlier, this could
            # miss it.
            os.close(fd)
            opened.unlink()
            raise taken
        return cls(path, fd)

    @property
    def closed(self) -> bool:
        """Nothing more can be done with it here."""
        return self._fd < 0

    def append(self, member: bytes) -> int:
        """Add a member; its offset."""
        offset = self.size
        self._buffer += member
        self.size += len(member)
        if len(self._buffer) >= FLUSH_BYTES:
            self._flush()
        return offset

    def sync(self) -> None:
        """Bring everything to the disk."""
        self._flush()
        os.fdatasync(self._fd)

    def cut(self, size: int) -> None:
        """Go back to an earlier size."""
        self._buffer = bytearray()
        os.ftruncate(self._fd, size)
        self.size = size

    def finish(self) -> None:
        """Give the synced file its final name; the directory is the caller's to sync."""
        os.fsync(self._fd)
        open_name(self._path).rename(self._path)
        self.close()

    def discard(self) -> None:
        """Take the file away."""
        try:
            open_name(self._path).unlink(missing_ok=True)
        finally:
            self.close()

    def close(self) -> None:
        """Let go of the file as it is: if it is not finished, it is recovery's."""
        fd, self._fd = self._fd, -1
        os.close(fd)

    def _flush(self) -> None:
        write_all(self._fd, self._buffer)
        self._buffer = bytearray()


def write_all(fd: int, data: bytes | bytearray) -> None:
    """Hand bytes to the kernel, in as many calls as it takes."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def sync_directory(directory: Path) -> None:
    """Make the names in a directory survive a power cut."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def hold(fd: int) -> bool:
    """Lock a file until it is closed or the process ends; False if another process holds it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks: the crawl's own lock has to do
    return True


def store_error(error: OSError, directory: Path) -> StoreError:
    """The sentence for a person, from what the kernel said."""
    reason = error.strerror or str(error)
    if is_disk_full(error):
        return DiskFull(f"no room left for pages in {directory} ({reason}); make room and resume")
    return StoreError(f"pages cannot be written to {directory}: {reason}")


def open_name(path: Path) -> Path:
    """What a file is called before it is finished."""
    return path.with_name(path.name + OPEN_SUFFIX)
