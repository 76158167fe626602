"""The frontier's SQLite file. One thread opens it, migrates it and runs all statements.

All statements of a process run one after the other in that thread, so that the event loop never waits for the disk and
SQLite never sees two writers of one process. Several processes take turns. SQLite lets a waiting writer sleep and
retry, so that some starve; the lock on a file of its own wakes them in order.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from rove.errors import UsageError
from rove.frontier.clock import Anchor, CrawlClock, anchor_for
from rove.frontier.queries import load_queries
from rove.frontier.query_times import Timings, timing_lines
from rove.frontier.schema import Schema
from rove.frontier.sqlite.errors import damage_text, mapped
from rove.frontier.sqlite.file_system import NETWORK_FILE_SYSTEMS, file_system_of
from rove.frontier.sqlite.many_rows import INSERT_SIZES, for_rows
from rove.frontier.sqlite.read_only import ReadOnlyFile, needs_new_connection

TURN_NAME = "frontier.turn"
OLDEST_SQLITE = (3, 38, 0)  # the ->> operator
CACHE_KIB = 10 * 1024
ROWS_PER_STATEMENT = 2_000
"""Rows that one statement reads as JSON. It needs several times their size while it runs."""
BUSY_SECONDS = 30.0
READ_ATTEMPTS = 5
"""How often a reader repeats a query because the file changed in the middle of it."""
CHECK_SECONDS = 60.0
"""Time limit of the check for damage after an unclean end."""
SCHEMA_KEY = "schema"
"""The key in `meta` of the schema's fingerprint."""

T = TypeVar("T")
Row = tuple[Any, ...]

_encode = msgspec.json.Encoder().encode
QUERIES = load_queries("sqlite")

log = logging.getLogger(__name__)


class SqliteDatabase:
    """One connection in one thread."""

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        in_use: Callable[[], bool] = lambda: True,
        on_news: Callable[[str], None] | None = None,
        schema: Schema | None = None,
        file_system: Callable[[Path], str] = file_system_of,
    ) -> None:
        """`in_use` tells a reader whether a crawl is running.

        `on_news` is called in the database's thread before something that may take a while.
        """
        self.path = path
        self._on_news = on_news or log.info
        self._reader = (
            ReadOnlyFile(path, in_use=in_use, on_news=self._on_news, timeout=BUSY_SECONDS) if read_only else None
        )
        self._schema = schema or Schema.of("sqlite")
        self._file_system = file_system
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="frontier")
        self._connection: sqlite3.Connection | None = None
        self.timings = Timings()
        """How long statements, commits and waits for the turn to write took."""
        self._is_checked = False
        """The schema is one that this rove can use."""
        self._turn = -1
        """The file whose lock is the right to write."""

    async def run(self, work: Callable[[], T]) -> T:
        """Run work in the database's thread; map sqlite3's errors to ours."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._repeated, work)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise mapped(error, self.path) from error

    async def write(self, work: Callable[[], T]) -> T:
        """Run work in the database's thread, in one transaction."""

        def whole() -> T:
            with self.transaction():
                return work()

        return await self.run(whole)

    async def fetch(self, query: str, /, **parameters: Any) -> list[Row]:
        """Return the rows of a named query."""
        return await self.run(lambda: self.execute(query, **parameters))

    async def open(self, *, create: bool = False) -> None:
        """Connect; with `create`, create or update the schema."""
        await self.run(lambda: self._open(create=create))

    async def holds_schema(self) -> bool:
        """Return whether the file is more than an empty database; a file that is no database counts too."""
        return await self.run(self._holds_schema)

    async def close(self) -> None:
        """Close the connection and end the thread."""
        if self._connection is not None:
            for line in timing_lines("query-total", self.timings.by_name):
                log.info("%s", line)
            await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.close)
            self._connection = None
        if self._turn >= 0:
            os.close(self._turn)
            self._turn = -1
        self._thread.shutdown(wait=True)

    # Everything below runs in the database's thread only.

    def _repeated(self, work: Callable[[], T]) -> T:
        """Run work. A reader whose connection turns out to be of no use runs it again on a new one."""
        if self._reader is None:
            return work()
        for _ in range(READ_ATTEMPTS - 1):
            try:
                result = work()
            except sqlite3.Error as error:
                if not self._reader.has_changed() and not needs_new_connection(error):
                    raise
            else:
                if not self._reader.has_changed():
                    return result
            if self._connection is not None:
                self._connection.close()
                self._connection = self._reader.connect()
        return work()

    def execute(self, query: str, /, **parameters: Any) -> list[Row]:
        """Run a named query and return all its rows."""
        assert self._connection is not None, "the database is not open"
        started = time.perf_counter()
        try:
            return self._connection.execute(QUERIES[query], parameters).fetchall()
        except sqlite3.OperationalError as error:
            if not _is_undecodable(error) or not QUERIES[query].lstrip().startswith("SELECT"):
                raise
            return self._read_damaged(query, parameters)
        finally:
            self.timings.add(query, time.perf_counter() - started)

    def _read_damaged(self, query: str, parameters: dict[str, Any]) -> list[Row]:
        """Run a query again whose result has a text that is not UTF-8; such bytes become U+FFFD."""
        assert self._connection is not None, "the database is not open"
        log.warning("%s is damaged: a text that the query %s reads is not UTF-8", self.path, query)
        self._connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        try:
            return self._connection.execute(QUERIES[query], parameters).fetchall()
        finally:
            self._connection.text_factory = str

    async def check(self, *, seconds: float = CHECK_SECONDS) -> None:
        """Check the file quickly for damage, for as long as there is time; raise UsageError if it has any."""
        await self.run(lambda: self._check(seconds))

    def batch(self, query: str, rows: Sequence[Any], /, **parameters: Any) -> list[Row]:
        """Run a named query over a batch of rows, which it reads as JSON."""
        results: list[Row] = []
        for start in range(0, len(rows), ROWS_PER_STATEMENT):
            part = _encode(rows[start : start + ROWS_PER_STATEMENT]).decode()
            results += self.execute(query, rows=part, **parameters)
        return results

    def insert(self, query: str, rows: Iterable[Sequence[Any]], /) -> list[Row]:
        """Run a named query that has one row of VALUES for many rows.

        For rows of many columns this is faster than a batch, which would parse the JSON of a row once per column.
        """
        assert self._connection is not None, "the database is not open"
        results: list[Row] = []
        remaining = iter(rows)
        while part := list(islice(remaining, INSERT_SIZES[0])):
            start = 0
            while start < len(part):
                count = next(size for size in INSERT_SIZES if size <= len(part) - start)
                values = list(chain.from_iterable(part[start : start + count]))
                with self.timings.measured(query):
                    results += self._connection.execute(for_rows(QUERIES[query], count), values).fetchall()
                start += count
        return results

    def plan(self, statement: str, parameters: Any) -> list[Row]:
        """Return the plan of a statement: number, number of the step above it, unused, and text of each step."""
        assert self._connection is not None, "the database is not open"
        return self._connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()

    def overwrite_deleted(self) -> None:
        """From now on, overwrite what is deleted with zeros, so that it cannot be found in the file."""
        assert self._connection is not None, "the database is not open"
        self._connection.execute("PRAGMA secure_delete = ON")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Wait for this process's turn, then write in one transaction."""
        with self._own_turn(), self._begun("IMMEDIATE"):
            yield

    @contextmanager
    def _own_turn(self) -> Iterator[None]:
        with self.timings.measured("wait for turn"):
            fcntl.flock(self._turn, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    def snapshot(self) -> AbstractContextManager[None]:
        """Open a short read transaction, so that all reads in it are consistent."""
        return self._begun("DEFERRED")

    @contextmanager
    def _begun(self, kind: str) -> Iterator[None]:
        assert self._connection is not None, "the database is not open"
        self._connection.execute(f"BEGIN {kind}")
        try:
            yield
            with self.timings.measured("commit"):
                self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _check(self, seconds: float) -> None:
        connection = self._connected()
        deadline = time.monotonic() + seconds
        connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
        try:
            found = [row[0] for row in connection.execute("PRAGMA quick_check(1)")]
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorname", "") != "SQLITE_INTERRUPT":
                raise
            log.info("%s is too large to be checked for damage within %.0f s", self.path, seconds)
            return
        finally:
            connection.set_progress_handler(None, 0)
        if found != ["ok"]:
            raise UsageError(damage_text(self.path, found[0].splitlines()[-1]))

    def get_meta(self, key: str) -> str | None:
        """Return a value from `meta`."""
        rows = self.execute("get_meta", key=key)
        return rows[0][0] if rows else None

    def clock(self) -> CrawlClock:
        """Return the crawl's clock. After a reboot, a writer saves its new anchor."""
        saved = self.get_meta("clock")
        previous = msgspec.json.decode(saved, type=Anchor) if saved else None
        anchor = anchor_for(previous, self.execute("last_seen")[0][0] or 0)
        if anchor != previous and self._reader is None:
            with self.transaction():
                self.execute("set_meta", key="clock", value=_encode(anchor).decode())
        return CrawlClock(anchor)

    def _open(self, *, create: bool) -> None:
        if self._is_checked:
            return
        check_version(sqlite3.sqlite_version_info)
        if not create and not self.path.exists():
            raise UsageError(f"{self.path.parent} holds no crawl")
        kind = self._file_system(self.path.parent)
        if kind in NETWORK_FILE_SYSTEMS and self._reader is None:
            raise UsageError(
                f"{self.path.parent} is on a network file system ({kind}), where SQLite's locks cannot be "
                "trusted; choose a --data-dir on a local disk"
            )
        self._migrate(self._connected(), create=create)
        self._is_checked = True

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None and self._reader is not None:
            self._connection = self._reader.connect()
        elif self._connection is None:
            with suppress(FileExistsError):
                # SQLite would create it with mode 0644, even if the umask lets a group write.
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
            self._connection = sqlite3.connect(
                self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=128
            )
            self._connection.execute("PRAGMA schema_version")  # leave no file beside one that is no database
            self._turn = self._opened_turn()
            with self._own_turn():
                self._configure(self._connection)
        return self._connection

    def _opened_turn(self) -> int:
        path = self.path.with_name(TURN_NAME)
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise UsageError(f"{path} cannot be opened: {error.strerror}") from error

    def _holds_schema(self) -> bool:
        if not self.path.exists():
            return False
        try:
            if self._reader is not None:
                return _is_made(self._connected())
            with closing(sqlite3.connect(self.path, timeout=BUSY_SECONDS)) as connection:
                return _is_made(connection)
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            return True

    def _configure(self, connection: sqlite3.Connection) -> None:
        # Two processes must not switch a new file to WAL at once: SQLite fails there without waiting.
        # FULL: if a power cut undid a claim, its domain could be visited again too early.
        for pragma in (
            "journal_mode = WAL",
            "synchronous = FULL",
            f"cache_size = -{CACHE_KIB}",
            "temp_store = MEMORY",
            "journal_size_limit = 134217728",
            "wal_autocheckpoint = 25000",
        ):
            connection.execute(f"PRAGMA {pragma}")

    def _migrate(self, connection: sqlite3.Connection, *, create: bool) -> None:
        if not self._missing_migrations(connection, create=create):
            return
        newest = self._schema.newest
        with self.transaction():
            # Another process may have migrated while this one waited for its turn.
            for _, script in self._missing_migrations(connection, create=create):
                for statement in statements(script):
                    connection.execute(statement)
            self.execute("set_meta", key=SCHEMA_KEY, value=self._schema.fingerprint(newest))
            connection.execute(f"PRAGMA user_version = {newest}")

    def _missing_migrations(self, connection: sqlite3.Connection, *, create: bool) -> list[tuple[int, str]]:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        has_meta = bool(self.execute("has_table", name="meta"))
        missing = self._schema.missing(
            str(self.path),
            version,
            self.get_meta(SCHEMA_KEY) if has_meta else None,
            migrate=create and self._reader is None,
        )
        if missing and version and not connection.in_transaction:
            self._on_news(f"updating {self.path} to a new schema, which takes minutes if it is large")
        return missing


def _is_undecodable(error: sqlite3.OperationalError) -> bool:
    return str(error).startswith("Could not decode to UTF-8")


def statements(script: str) -> Iterator[str]:
    """Split a script into statements, because executescript would commit the transaction around it."""
    statement = ""
    for part in script.split(";")[:-1]:
        statement += part + ";"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def check_version(version: tuple[int, int, int]) -> None:
    """Refuse a SQLite library that is too old."""
    if version < OLDEST_SQLITE:
        given, wanted = (".".join(map(str, numbers)) for numbers in (version, OLDEST_SQLITE))
        raise UsageError(f"this Python has SQLite {given}; rove needs {wanted} or newer")


def _is_made(connection: sqlite3.Connection) -> bool:
    """Return whether a database has tables or a version."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    return bool(version) or bool(connection.execute(QUERIES["has_any_table"]).fetchall())
