"""The data directory: where everything of one crawl lives, and who is using it."""

from __future__ import annotations

import asyncio
import fcntl
import getpass
import os
import secrets
import shutil
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from rove.errors import DiskFull, StoreError, UsageError, is_disk_full

ORPHAN_SECONDS = 60.0
"""How long a start waits for the processes of a supervisor that was killed."""


def this_person() -> str:
    """Who is at work here, for those who ask later."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = str(os.getuid())
    return f"{name}@{socket.gethostname()}"


class Remote(msgspec.Struct, frozen=True, kw_only=True):
    """The crawl in a PostgreSQL that a data directory belongs to."""

    url: str
    crawl_name: str
    machine: str = msgspec.field(default_factory=lambda: secrets.token_hex(8))
    """A name for this data directory that stays, whatever becomes of its path."""
    crawl: str = ""
    """The identity of the crawl, known once this directory has taken part in it."""


class DataDir:
    """The paths inside a data directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.frontier = root / "frontier.sqlite"
        self.warc = root / "warc"
        self.seeds = root / "seeds"
        self.inflight_log = root / "spool"
        self.log = root / "rove.log"
        self.moved = root / "frontier.sqlite.moved"
        self._lock = root / "lock"
        self._workers = root / "lock.workers"
        self._remote = root / "frontier.json"

    def log_of(self, number: int) -> Path:
        """The log file of one of several processes."""
        return self.root / f"rove-{number}.log"

    def remote(self) -> Remote | None:
        """Where the crawl is, if it is not in the directory itself."""
        try:
            return msgspec.json.decode(self._remote.read_bytes(), type=Remote)
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            return None
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{self._remote}, which says where the crawl is, cannot be read: {error}"
            ) from error

    def set_frontier_aside(self) -> None:
        """The frontier was moved to another place: the old file stays, under another name."""
        self.frontier.rename(self.moved)

    def forget(self) -> None:
        """The crawl that was to be somewhere else did not come into being."""
        self._remote.unlink(missing_ok=True)

    def remember(self, remote: Remote) -> None:
        """Note where the crawl is; only its owner may read it, as there may be a password in the URL."""
        partial = self._remote.with_suffix(".partial")
        try:
            partial.unlink(missing_ok=True)
            handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(remote))
                file.flush()
                os.fsync(file.fileno())
            partial.rename(self._remote)
        except OSError as error:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            raise StoreError(f"{self._remote} cannot be written: {error.strerror}") from error

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make the directory this process's own; the kernel gives it back, whatever ends the process."""
        ours = (self._lock, self._workers, self.seeds, self.root, *self.root.parents)
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
                if not self.frontier.exists() and not self._remote.exists():
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
        return not (_is_free(self._lock, fcntl.LOCK_SH) and _is_free(self._workers, fcntl.LOCK_EX))

    @contextmanager
    def worked_in(self) -> Iterator[None]:
        """Be one of the processes that crawl here; known even when the supervisor is gone."""
        handle = os.open(self._workers, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH)
            yield
        finally:
            os.close(handle)

    async def wait_for_workers(self, say: Callable[[str], None]) -> None:
        """Wait until the processes of an earlier start are gone: a killed supervisor leaves them to stop alone."""
        deadline, has_said = time.monotonic() + ORPHAN_SECONDS, False
        while not _is_free(self._workers, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise UsageError(
                    f"{self.root} is in use: processes of an earlier start are still crawling; "
                    "wait for them or stop them"
                )
            if not has_said:
                has_said = True
                say("waiting for the processes of an earlier start to end")
            await asyncio.sleep(0.1)

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
            if is_disk_full(error):
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


def _is_free(lock: Path, kind: int) -> bool:
    """Whether a lock could be had, which nobody notices."""
    try:
        handle = os.open(lock, os.O_RDONLY)
    except OSError:
        return True
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def _leave_nothing(made: Iterable[Path]) -> None:
    """No crawl came into being: take away what was made for it, and nothing else."""
    for path in made:
        with suppress(OSError):
            path.rmdir() if path.is_dir() else path.unlink()
