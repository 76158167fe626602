"""The data directory of a crawl: the paths in it, and the locks that show who is using it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from rove.errors import DiskFull, StoreError, UsageError, is_disk_full
from rove.model.instructions import Instruction, InstructionKind, Instructions, instruction_text, parse_instruction

ORPHAN_SECONDS = 60.0
"""How long a start waits for the workers of a supervisor that was killed."""
_MAX_ATTEMPTS = 100
"""Attempts to make a directory that other starts, which fail, delete at the same moment."""
_MAX_LOCK_ATTEMPTS = 20
_LOCK_PAUSE = 0.01
"""Seconds between two attempts to take a lock. Commands that look whether it is free hold it for some microseconds."""


class Remote(msgspec.Struct, frozen=True, kw_only=True):
    """The crawl in PostgreSQL that a data directory belongs to."""

    url: str
    crawl_name: str
    node_key: str = msgspec.field(default_factory=lambda: secrets.token_hex(8))
    """Identifies this data directory, even if its path changes."""
    crawl: str = ""
    """The identity of the crawl, known once this directory has taken part in it."""


class DataDir:
    """The paths inside a data directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.frontier = root / "frontier.sqlite"
        self.moved = root / "frontier.sqlite.moved"
        """The frontier after it was copied to PostgreSQL."""
        self.warc = root / "warc"
        self.seeds = root / "seeds"
        self.inflight_log = root / "in-flight"
        """Requests that are not in the frontier yet; read after a crash."""
        self.database = root / "database.json"
        """What this directory remembers of its database, to recognise an older copy."""
        self.log = root / "rove.log"
        self._lock = root / "lock"
        self._workers_lock = root / "lock.workers"
        self._remote = root / "frontier.json"

    @property
    def holds_crawl(self) -> bool:
        """Whether a crawl was created here, or this directory takes part in one."""
        return self.frontier.exists() or self._remote.exists()

    @property
    def lock_files(self) -> Sequence[Path]:
        """The files that the processes of a running crawl hold open."""
        return self._lock, self._workers_lock

    @property
    def reports(self) -> Sequence[Path]:
        """The reports about processes that were written so far."""
        return sorted(path for path in self.root.glob("rove*.diagnosis.txt"))

    def log_of(self, worker: str) -> Path:
        """Return the log file of a worker, given by its name."""
        return self.root / f"rove-{worker}.log"

    # The crawl in PostgreSQL

    def remote(self) -> Remote | None:
        """Return where the crawl is, None if it is in the directory itself or does not exist."""
        try:
            return msgspec.json.decode(self._remote.read_bytes(), type=Remote)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except PermissionError as error:
            raise UsageError(
                f"{self._remote} says where the crawl is, and may hold a password, so only its owner can read it; "
                "name the crawl with --frontier POSTGRESQL_URL"
            ) from error
        except (OSError, ValueError) as error:
            raise UsageError(f"{self._remote}, which says where the crawl is, cannot be read: {error}") from error

    def remember(self, remote: Remote) -> None:
        """Store where the crawl is. Only the owner may read the file, because the URL may hold a password."""
        partial = self._remote.with_suffix(".partial")
        try:
            with _replacing(partial, self._remote, mode=0o600) as file:
                file.write(msgspec.json.encode(remote))
        except OSError as error:
            raise StoreError(f"{self._remote} cannot be written: {error.strerror}") from error

    def forget(self) -> None:
        """Undo `remember`, because no crawl was created there."""
        self._remote.unlink(missing_ok=True)

    def set_frontier_aside(self) -> None:
        """Rename the frontier after a move to PostgreSQL, so that nobody opens it again."""
        self.frontier.rename(self.moved)

    # Locks

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the directory for this process; the kernel releases the lock however the process ends."""
        self._check_kinds()
        stop = self._instruction(InstructionKind.STOP)
        ours = (self._lock, self._workers_lock, stop, self.seeds, self.root, *self.root.parents)
        new = [path for path in ours if not path.exists()]
        handle = self._taken_lock()
        try:
            try:
                yield
            finally:
                if not self.holds_crawl:
                    _delete(new)  # no crawl was created
        finally:
            os.close(handle)

    @contextmanager
    def worked_in(self) -> Iterator[None]:
        """Mark this process as a worker; others see it even when the supervisor is gone."""
        handle = os.open(self._workers_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH)
            yield
        finally:
            os.close(handle)

    def in_use(self) -> bool:
        """Whether a crawl is running here."""
        return not (_is_free(self._lock, fcntl.LOCK_SH) and _is_free(self._workers_lock, fcntl.LOCK_EX))

    async def wait_for_workers(self, say: Callable[[str], None], *, patience: float = ORPHAN_SECONDS) -> None:
        """Wait until the workers of an earlier start have ended; those of a killed supervisor stop by themselves."""
        deadline, has_said = time.monotonic() + patience, False
        while not _is_free(self._workers_lock, fcntl.LOCK_EX):
            if not has_said:
                has_said = True
                say("waiting for the processes of an earlier start to end")
            if time.monotonic() > deadline:
                raise UsageError(
                    f"{self.root} is in use: processes of an earlier start are still crawling; "
                    "wait for them or stop them"
                )
            await asyncio.sleep(0.1)

    def _check_kinds(self) -> None:
        """Refuse a directory where a file is needed, and the reverse, before anything is changed."""
        for path in (self._lock, self._workers_lock, self.frontier, self._remote, self.log):
            if path.is_dir():
                raise UsageError(f"{path} is a directory, but rove needs a file there; move it away")
        for path in (self.warc, self.seeds, self.inflight_log):
            if path.exists() and not path.is_dir():
                raise UsageError(f"{path} is a file, but rove needs a directory there; move it away")

    def _taken_lock(self) -> int:
        """Create the directory and its lock, and take it; return its handle."""
        attempts = 0
        while True:
            attempts += 1
            try:
                self.root.mkdir(parents=True, exist_ok=True)
                handle = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError as error:
                # A start that failed may have just deleted the directory. Below /proc, none can ever be made.
                if isinstance(error, FileNotFoundError) and attempts < _MAX_ATTEMPTS:
                    continue
                raise UsageError(f"{self.root} cannot be used as a data directory: {error.strerror}") from error
            try:
                self._take(handle)
                if _has_name(handle, self._lock):
                    return handle
            except BaseException:
                os.close(handle)
                raise
            # A start that failed deleted the file after we had opened it, so our lock keeps nobody out.
            os.close(handle)

    def _take(self, handle: int) -> None:
        if not _is_taken(handle, fcntl.LOCK_EX):
            raise UsageError(
                f"{self.root} is in use by a running crawl (process {self.holder}); "
                "look at it with 'rove status', or choose another --data-dir"
            )
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())

    @property
    def holder(self) -> str:
        """The id of the process that holds the directory, or held it last."""
        try:
            return self._lock.read_text().strip() or "unknown"
        except OSError:
            return "unknown"

    def taken_at(self) -> int:
        """Return when the directory was taken last, in nanoseconds; 0: never. Tells one start from the next."""
        try:
            return self._lock.stat().st_mtime_ns
        except OSError:
            return 0

    # Instructions for this machine

    def instructions(self) -> Instructions:
        """Return what the owner has told the crawl on this machine. Raise StoreError if that cannot be read."""
        return Instructions(**{str(kind): self._read_instruction(kind) for kind in InstructionKind})

    def instruct(self, kind: InstructionKind, instruction: Instruction | None) -> None:
        """Tell the crawl on this machine something; None withdraws what it was told."""
        path = self._instruction(kind)
        try:
            if instruction is None:
                path.unlink(missing_ok=True)
            else:
                with _replacing(path.with_suffix(f".{instruction.id}"), path, mode=0o644) as file:
                    file.write(instruction_text(instruction).encode())
        except PermissionError as error:
            raise UsageError(
                f"no permission to change {path}; run the command as {_owner(self.root)}, who owns the crawl"
            ) from error
        except OSError as error:
            # A full disk must not keep the owner from stopping a crawl.
            advice = f"; stop the crawl with: kill {self.holder}" if kind is InstructionKind.STOP else ""
            raise StoreError(f"{path} cannot be changed: {error.strerror}{advice}") from error

    def _instruction(self, kind: InstructionKind) -> Path:
        return self.root / f"{kind}.json"

    def _read_instruction(self, kind: InstructionKind) -> Instruction | None:
        path = self._instruction(kind)
        try:
            return parse_instruction(path.read_text(errors="replace"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}") from error

    # Seeds

    def save_seeds(self, pieces: Iterable[bytes]) -> Path:
        """Copy seeds into the directory, so that a resumed crawl can load the rest; return the path of the copy."""
        try:
            self.seeds.mkdir(exist_ok=True)
            path = self._new_seeds()
            try:
                with _replacing(path.with_suffix(".partial"), path) as copy:
                    copy.writelines(pieces)
            except BaseException:
                path.unlink(missing_ok=True)
                raise
            folder = os.open(self.seeds, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        except OSError as error:
            if is_disk_full(error):
                raise DiskFull(
                    f"the disk is full: no room to copy the seeds to {self.seeds}; make room and try again"
                ) from error
            raise StoreError(f"the seeds cannot be copied to {self.seeds}: {error.strerror}") from error
        return path

    def _new_seeds(self) -> Path:
        """Create an empty file for a copy of seeds. Several commands may do this at once."""
        numbers = {int(p.stem) for p in self.seeds.glob("*.txt") if p.stem.isdigit()}
        number = max(numbers, default=0) + 1
        while True:
            path = self.seeds / f"{number:04d}.txt"
            try:
                path.touch(exist_ok=False)
                return path
            except FileExistsError:
                number += 1


def report_of(log_file: Path) -> Path:
    """Return the file for reports about a process, beside its log file."""
    return log_file.with_suffix(".diagnosis.txt")


@contextmanager
def _replacing(partial: Path, path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Write a file completely, or leave what was there before."""
    try:
        partial.unlink(missing_ok=True)
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def _owner(path: Path) -> str:
    """Return the name of the user who owns a file."""
    try:
        return path.owner()
    except (OSError, KeyError):
        return "the user"


def _has_name(handle: int, path: Path) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except OSError:
        return False


def _is_free(lock: Path, kind: int) -> bool:
    """Whether a lock can be taken. Takes it for a moment only."""
    try:
        handle = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # it cannot be ruled out that somebody holds it
    try:
        return _is_taken(handle, kind)
    except OSError:
        return True  # a file system without such locks, so nobody can hold one
    finally:
        os.close(handle)


def _is_taken(handle: int, kind: int) -> bool:
    """Take a lock and return whether that was possible. Only an owner keeps it from others for more than a moment."""
    for attempt in range(1, _MAX_LOCK_ATTEMPTS + 1):
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            # What blocks a shared lock is never a command that only looks.
            if kind == fcntl.LOCK_SH or attempt == _MAX_LOCK_ATTEMPTS:
                return False
            time.sleep(_LOCK_PAUSE)
        else:
            return True
    return False


def _delete(paths: Iterable[Path]) -> None:
    """Delete files and empty folders."""
    for path in paths:
        with suppress(OSError):
            path.rmdir() if path.is_dir() else path.unlink()
