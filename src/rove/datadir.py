"""The data directory: where everything of one crawl lives, and who is using it."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rove.errors import DiskFull, StoreError, UsageError

FULL_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class DataDir:
    """The paths inside a data directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.frontier = root / "frontier.sqlite"
        self.warc = root / "warc"
        self.seeds = root / "seeds"
        self.log = root / "rove.log"
        self._lock = root / "lock"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make the directory this process's own; the kernel gives it back, whatever ends the process."""
        ours = (self._lock, self.seeds, self.root, *self.root.parents)
        new = [path for path in ours if not path.exists()]
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            handle = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise UsageError(
                f"{self.root} cannot be used as a data directory: {error.strerror}"
            ) from error
        try:
            self._take(handle)
            try:
                yield
            finally:
                if not self.frontier.exists():
                    _leave_nothing(new)
        finally:
            os.close(handle)

    def _take(self, handle: int) -> None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"{self.root} is in use by a running crawl (process {self._holder()}); "
                "look at it with 'rove status', or choose another --data-dir"
            ) from None
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())

    def in_use(self) -> bool:
        """Whether a crawl is running here."""
        try:
            handle = os.open(self._lock, os.O_RDONLY)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False

    def keep_seeds(self, source: BinaryIO) -> Path:
        """Copy seeds into the directory, so that the rest can be loaded whatever becomes of the original."""
        taken = {int(p.stem) for p in self.seeds.glob("*.txt") if p.stem.isdigit()}
        path = self.seeds / f"{max(taken, default=0) + 1:04d}.txt"
        partial = path.with_suffix(".partial")
        try:
            self.seeds.mkdir(exist_ok=True)
            with partial.open("wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
                copy.flush()
                os.fsync(copy.fileno())
            partial.rename(path)
            folder = os.open(self.seeds, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        except KeyboardInterrupt:
            partial.unlink(missing_ok=True)
            raise
        except OSError as error:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            if error.errno in FULL_DISK_ERRORS:
                raise DiskFull(
                    f"the disk is full: no room for the seeds in {self.seeds}"
                ) from error
            raise StoreError(
                f"the seeds cannot be kept in {self.seeds}: {error.strerror}"
            ) from error
        return path

    def _holder(self) -> str:
        try:
            return self._lock.read_text().strip() or "unknown"
        except OSError:
            return "unknown"


def _leave_nothing(made: Iterable[Path]) -> None:
    """No crawl came into being: take away what was made for it, and nothing else."""
    for path in made:
        with suppress(OSError):
            path.rmdir() if path.is_dir() else path.unlink()
