"""The frontier's SQLite file: opened, migrated and spoken to in one thread of its own.

All statements of a process run in that thread, one after the other, so that the event loop never waits for
the disk and SQLite never sees two writers of one process. Several processes take turns: SQLite lets writers that wait
try again after a sleep, so that some starve; a lock on a file of its own wakes them in order.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from rove.errors import DiskFull, FrontierError, RoveError, UsageError
from rove.frontier.clock import Anchor, CrawlClock, anchor_for
from rove.frontier.queries import load_migrations, load_queries

TURN_NAME = "frontier.turn"
OLDEST_SQLITE = (3, 38, 0)  # the ->> operator
CACHE_KIB = 10 * 1024
ONE_ROW = "(:row)"
INSERT_SIZES = (1024, 256, 64, 16, 4, 1)
"""Rows that an INSERT with VALUES has."""
ROWS_PER_STATEMENT = 2_000
"""Rows that one statement reads as JSON; it keeps several times their size while it runs."""
BUSY_SECONDS = 30.0
NETWORK_FILE_SYSTEMS = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "9p", "ceph", "glusterfs", "lustre"),
        *("fuse.sshfs", "fuse.glusterfs", "fuse.s3fs"),
    }
)

_OCTAL = re.compile(r"\\([0-7]{3})")
"""How a mount point with a space in it is written."""

T = TypeVar("T")
Row = tuple[Any, ...]

_encode = msgspec.json.Encoder().encode
QUERIES = load_queries("sqlite")

log = logging.getLogger(__name__)


class Database:
    """One connection in one thread."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self._read_only = read_only
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="frontier")
        self._connection: sqlite3.Connection | None = None
        self._turn = -1
        """A file whose lock is the right to write."""
        self.on_news: Callable[[str], None] = log.info
        """Told, in the database's thread, of what may take a while."""

    async def run(self, work: Callable[[], T]) -> T:
        """Do work in the database's thread; sqlite3's errors come back as ours."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.Error as error:
            raise mapped(error, self.path) from error

    async def open(self, *, create: bool = False) -> None:
        """Connect; make what is missing and bring the schema up to date if asked to."""
        await self.run(lambda: self._open(create=create))

    async def close(self) -> None:
        """Close the connection and end the thread."""
        if self._connection is not None:
            await self.run(self._connection.close)
            self._connection = None
        if self._turn >= 0:
            os.close(self._turn)
            self._turn = -1
        self._thread.shutdown(wait=True)

    def execute(self, query: str, /, **parameters: Any) -> list[Row]:
        """Run a named query to its end. In the database's thread only."""
        assert self._connection is not None, "the database is not open"
        return self._connection.execute(QUERIES[query], parameters).fetchall()

    def batch(self, query: str, rows: list[Any], /, **parameters: Any) -> list[Row]:
        """Run a named query over a batch, which it reads as JSON. In the database's thread only."""
        found: list[Row] = []
        for start in range(0, len(rows), ROWS_PER_STATEMENT):
            part = _encode(rows[start : start + ROWS_PER_STATEMENT]).decode()
            found += self.execute(query, rows=part, **parameters)
        return found

    def insert(self, query: str, rows: Iterable[Sequence[Any]], /) -> list[Row]:
        """Run a named query that has one row of VALUES, for many rows. In the database's thread only.

        For rows of many columns: each is bound, where a batch would parse the JSON of a row once for every column (15
        instead of 45 µs for a request's 29).
        """
        assert self._connection is not None, "the database is not open"
        found: list[Row] = []
        left = iter(rows)
        while part := list(islice(left, INSERT_SIZES[0])):
            start = 0
            while start < len(part):
                # Few different lengths, so that few statements are prepared.
                count = next(size for size in INSERT_SIZES if size <= len(part) - start)
                values = list(chain.from_iterable(part[start : start + count]))
                found += self._connection.execute(_for_rows(query, count), values).fetchall()
                start += count
        return found

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A write transaction, all or nothing, when it is our turn. In the database's thread only."""
        fcntl.flock(self._turn, fcntl.LOCK_EX)
        try:
            with self._begun("IMMEDIATE"):
                yield
        finally:
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    @contextmanager
    def _begun(self, kind: str) -> Iterator[None]:
        assert self._connection is not None, "the database is not open"
        self._connection.execute(f"BEGIN {kind}")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def snapshot(self) -> AbstractContextManager[None]:
        """A short read transaction: what is read in it fits together. In the database's thread only."""
        return self._begun("DEFERRED")

    def get_meta(self, key: str) -> str | None:
        """A value that the crawl keeps. In the database's thread only."""
        rows = self.execute("get_meta", key=key)
        return rows[0][0] if rows else None

    def clock(self) -> CrawlClock:
        """The crawl's clock, as the frontier keeps it; a writer moves it along after a reboot."""
        kept = self.get_meta("clock")
        previous = msgspec.json.decode(kept, type=Anchor) if kept else None
        anchor = anchor_for(previous, self.execute("last_seen")[0][0] or 0)
        if anchor != previous and not self._read_only:
            with self.transaction():
                self.execute("set_meta", key="clock", value=_encode(anchor).decode())
        return CrawlClock(anchor)

    def _open(self, *, create: bool) -> None:
        if self._connection is not None:
            return
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            wanted = ".".join(map(str, OLDEST_SQLITE))
            raise UsageError(
                f"this Python has SQLite {sqlite3.sqlite_version}; rove needs {wanted} or newer"
            )
        if not create and not self.path.exists():
            raise UsageError(f"{self.path.parent} holds no crawl")
        kind = file_system_of(self.path.parent)
        if kind in NETWORK_FILE_SYSTEMS and not self._read_only:
            raise UsageError(
                f"{self.path.parent} is on a network file system ({kind}), where SQLite's locks cannot be "
                "trusted; choose a --data-dir on a local disk"
            )
        self._connection = sqlite3.connect(
            self.path,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=128,
        )
        if self._read_only:
            self._connection.execute("PRAGMA query_only = ON")
        else:
            # FULL: a claim that a power cut undid would let a domain be asked again too early.
            for pragma in (
                "journal_mode = WAL",
                "synchronous = FULL",
                f"cache_size = -{CACHE_KIB}",
                "temp_store = MEMORY",
                "journal_size_limit = 134217728",
                "wal_autocheckpoint = 25000",
            ):
                self._connection.execute(f"PRAGMA {pragma}")
            self._turn = os.open(self.path.with_name(TURN_NAME), os.O_RDWR | os.O_CREAT, 0o644)
        self._migrate(create=create)

    def _migrate(self, *, create: bool) -> None:
        assert self._connection is not None, "the database is not open"
        migrations = load_migrations("sqlite")
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        newest = migrations[-1][0]
        if version > newest:
            raise UsageError(
                f"{self.path} was written by a newer rove (schema {version}, this one knows {newest}); "
                "use that version or newer"
            )
        if version < newest and (self._read_only or not create):
            raise UsageError(
                f"{self.path} is from an older rove; resume the crawl once to update it"
            )
        scripts = [script for number, script in migrations if number > version]
        if scripts:
            if version:
                self.on_news(
                    f"bringing {self.path}, which is from an older rove, up to date: minutes if it is large"
                )
            # All or nothing: nobody sees a schema that is none.
            self._connection.executescript(
                "\n".join(
                    ["BEGIN IMMEDIATE;", *scripts, f"PRAGMA user_version = {newest};", "COMMIT;"]
                )
            )


@lru_cache(maxsize=64)
def _for_rows(query: str, count: int) -> str:
    """A named query with one row of VALUES, for so many."""
    before, values, after = QUERIES[query].partition(f"VALUES {ONE_ROW}")
    assert values, f"{query} has no row of VALUES"
    columns = before[before.index("(") : before.index(")")].count(",") + 1
    row = f"({', '.join('?' * columns)})"
    return f"{before}VALUES {', '.join([row] * count)}{after}"


def holds_schema(path: Path) -> bool:
    """Whether there is more than a file that was made, and its maker killed at once; what is no database counts too."""
    if not path.exists():
        return False
    with closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as connection:
        try:
            return bool(connection.execute("PRAGMA user_version").fetchone()[0])
        except sqlite3.DatabaseError:
            return True


def mapped(error: sqlite3.Error, path: Path) -> RoveError:
    """Our exception for one of sqlite3's."""
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_FULL" or name.startswith("SQLITE_IOERR_WRITE"):
        return DiskFull(
            f"the disk is full: {path} cannot grow ({error}); make room, then use --resume"
        )
    if name in ("SQLITE_NOTADB", "SQLITE_CORRUPT"):
        return UsageError(f"{path} is not a frontier that rove can read ({error})")
    return FrontierError(f"the frontier {path} failed: {error}")


def file_system_of(folder: Path) -> str:
    """The type of the file system that a folder is on, '' where that cannot be told."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    target = folder.resolve()
    best, kind = -1, ""
    for line in mounts:
        left, _, right = line.partition(" - ")
        point = Path(_OCTAL.sub(lambda found: chr(int(found[1], 8)), left.split(" ")[4]))
        if (point == target or point in target.parents) and len(point.parts) >= best:
            best, kind = len(point.parts), right.split(" ")[0]
    return kind
