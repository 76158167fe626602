"""Opens a frontier's file for reading only: without write permission, from a read-only mount or from a snapshot.

SQLite needs two files beside the database: the write-ahead log (`-wal`) and its index (`-shm`), which every reader must
open or create. There are three ways to read:

1. `immutable=1` reads the database file alone, without locks. It is correct only while the log is empty and nobody
   writes. So it is used only if no process holds the crawl, and every answer is checked: if the file or the log has
   changed since, the connection is replaced and the question repeated.
2. `mode=ro` reads the database with its log, also while a crawl writes. It needs an existing `-shm`, or the permission
   to create one.
3. Where neither works, a temporary copy of both files is read. The log is never ignored.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from rove.errors import FrontierError, UsageError
from rove.notation.humanize import size_text

LOG_SUFFIX = "-wal"
COPY_ATTEMPTS = 5
"""How often a copy is begun again because a crawl changed the database during it."""
_UNUSABLE_LOG = ("SQLITE_CANTOPEN", "SQLITE_READONLY")

Stamp = tuple[int, ...]


class ReadOnlyFile:
    """A frontier's file that is read and never changed."""

    def __init__(
        self, path: Path, *, in_use: Callable[[], bool], on_news: Callable[[str], None], timeout: float
    ) -> None:
        """`in_use` tells whether a process holds the crawl; `on_news` is called before a copy is made."""
        self._path = path
        self._log = path.with_name(path.name + LOG_SUFFIX)
        self._in_use = in_use
        self._on_news = on_news
        self._timeout = timeout
        self._unchanged: Stamp | None = None
        """The stamp of the file that is read without locks; None if it is read with them."""

    def connect(self) -> sqlite3.Connection:
        """Connect in the best way that is possible now."""
        self._check_permission()
        self._unchanged = None
        stamp = self._stamp()
        if not self._log_size() and not self._in_use():
            self._unchanged = stamp
            return self._opened("mode=ro&immutable=1")
        try:
            return self._opened("mode=ro")
        except sqlite3.OperationalError as error:
            if not needs_new_connection(error):
                raise
        return self._opened_copy()

    def has_changed(self) -> bool:
        """Whether the file was changed since it was opened in a way that notices no changes."""
        return self._unchanged is not None and (self._log_size() > 0 or self._stamp() != self._unchanged)

    def _check_permission(self) -> None:
        # Not by opening it: closing it again would drop the locks of other connections of this process.
        if not os.access(self._path, os.R_OK, effective_ids=True):
            raise UsageError(f"{self._path} cannot be read: {os.strerror(errno.EACCES)}")

    def _opened(self, parameters: str) -> sqlite3.Connection:
        """Connect and read the schema, because SQLite opens the files only when it needs them."""
        # The path is quoted byte by byte, so that any name works, even one that is not UTF-8.
        connection = self._connection(f"file:{quote(os.fsencode(self._path))}?{parameters}", uri=True)
        try:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA schema_version").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection

    def _connection(self, database: str | Path, *, uri: bool) -> sqlite3.Connection:
        return sqlite3.connect(database, uri=uri, timeout=self._timeout, isolation_level=None, check_same_thread=False)

    def _opened_copy(self) -> sqlite3.Connection:
        size = size_text(self._stamp()[1] + self._log_size())
        self._on_news(
            f"{self._log} cannot be used without write permission; reading a temporary copy "
            f"({size}, in {tempfile.gettempdir()})"
        )
        with tempfile.TemporaryDirectory(prefix="rove-copy-") as folder:
            copy = Path(folder) / self._path.name
            self._copy(copy)
            connection = self._connection(copy, uri=False)
            # With the exclusive lock SQLite needs no -shm file, and with all files open it needs no names. So the copy
            # is deleted here, and nothing stays behind even if the process is killed.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA schema_version").fetchone()
        return connection

    def _copy(self, target: Path) -> None:
        """Copy the database and its log. The copy is consistent if the database did not change during the copy.

        The log may grow during the copy: SQLite ignores a transaction at its end that is not complete.
        """
        log = target.with_name(target.name + LOG_SUFFIX)
        try:
            for _ in range(COPY_ATTEMPTS):
                before = self._stamp()
                shutil.copyfile(self._path, target)
                log.unlink(missing_ok=True)
                if self._log.exists():
                    shutil.copyfile(self._log, log)
                if self._stamp() == before:
                    return
        except OSError as error:
            raise FrontierError(
                f"{self._path} cannot be copied to {target.parent}: {error.strerror}; "
                "set TMPDIR to a folder with more room, or read the crawl as its owner"
            ) from error
        raise FrontierError(f"{self._path} changes too fast to be copied; read the crawl as its owner")

    def _stamp(self) -> Stamp:
        found = self._path.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _log_size(self) -> int:
        try:
            return self._log.stat().st_size
        except FileNotFoundError:
            return 0


def needs_new_connection(error: sqlite3.Error) -> bool:
    """Whether a reader failed because it may not write, so that it must open the file in another way."""
    return getattr(error, "sqlite_errorname", "").startswith(_UNUSABLE_LOG)
