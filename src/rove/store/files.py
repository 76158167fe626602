"""A WARC file while it is written, and the file operations that make its bytes and its name durable.

A file is called `NAME.open` until it is finished. After a crash, recovery.py finishes such files. The copy that a purge
makes of a file is called `NAME.purge` until it is complete (purge.py).
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from rove.errors import DiskFull, StoreError, is_disk_full

OPEN_SUFFIX = ".open"
FLUSH_BYTES = 4 * 1024 * 1024
"""Data is passed to the kernel in chunks of about this size."""


class FileChanged(StoreError):
    """Somebody else changed a WARC file while it was being written."""


class OpenFile:
    """A WARC file that this process appends to. All methods may raise OSError."""

    def __init__(self, path: Path, fd: int) -> None:
        self.name = path.name
        self.size = 0
        """In bytes, including the buffer."""
        self._path = path
        self._fd = fd
        self._buffer = bytearray()

    @classmethod
    def create(cls, path: Path) -> OpenFile:
        """Create a file that gets the name `path` when finished; raise FileExistsError if the name is taken."""
        opened = open_name(path)
        fd = os.open(opened, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
        taken = FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        if not hold(fd) or os.fstat(fd).st_nlink == 0:
            os.close(fd)  # a recovery locked the empty file first and deletes it
            raise taken
        if path.exists():
            # Checked only now, because a file leaves its '.open' name when it takes the final one.
            os.close(fd)
            opened.unlink()
            raise taken
        return cls(path, fd)

    @property
    def closed(self) -> bool:
        """Whether the file is closed."""
        return self._fd < 0

    def append(self, member: bytes) -> int:
        """Append a gzip member and return its offset."""
        offset = self.size
        self._buffer += member
        self.size += len(member)
        if len(self._buffer) >= FLUSH_BYTES:
            self._flush()
        return offset

    def sync(self) -> None:
        """Write everything to the disk; raise FileChanged if somebody else deleted, replaced or truncated the file."""
        self._flush()
        os.fdatasync(self._fd)
        if not self._is_intact():
            raise FileChanged(
                f"{open_name(self._path)} was deleted, replaced or truncated while rove was writing it. Put it back "
                "from a backup if you can: the pages that it held are lost otherwise. Then continue with --resume"
            )

    def _is_intact(self) -> bool:
        """Whether the file has its name and holds exactly what was appended."""
        ours = os.fstat(self._fd)
        try:
            named = open_name(self._path).stat()
        except FileNotFoundError:
            return False
        return (named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino) and ours.st_size == self.size

    def cut(self, size: int) -> None:
        """Truncate the file to an earlier size."""
        self._buffer = bytearray()
        os.ftruncate(self._fd, size)
        self.size = size

    def finish(self) -> None:
        """Give the synced file its final name. The caller syncs the directory."""
        os.fsync(self._fd)
        open_name(self._path).rename(self._path)
        self.close()

    def discard(self) -> None:
        """Delete the file."""
        try:
            open_name(self._path).unlink(missing_ok=True)
        finally:
            self.close()

    def close(self) -> None:
        """Close the file as it is. An unfinished one is left to recovery."""
        fd, self._fd = self._fd, -1
        os.close(fd)

    def _flush(self) -> None:
        write_all(self._fd, self._buffer)
        self._buffer = bytearray()


def write_all(fd: int, data: bytes | bytearray) -> None:
    """Write all bytes, in as many calls as necessary."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def sync_directory(directory: Path) -> None:
    """Make the file names in a directory survive a power cut."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def hold(fd: int) -> bool:
    """Lock a file until it is closed or the process ends; return False if another process has locked it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # the file system has no locks, so the lock of the data directory must suffice
    return True


def store_error(error: OSError, attempt: str, remedy: str = "free some space and resume") -> StoreError:
    """Turn an error of the kernel into one with a message for the user, who can free disk space as `remedy` says."""
    reason = error.strerror or str(error)
    if is_disk_full(error):
        return DiskFull(f"no disk space left to {attempt} ({reason}); {remedy}")
    return StoreError(f"could not {attempt}: {reason}")


def open_name(path: Path) -> Path:
    """Return the name of a file before it is finished."""
    return path.with_name(path.name + OPEN_SUFFIX)
