"""The frontier's file: opened, migrated, refused, and its errors in our words."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from rove.errors import DiskFull, FrontierError, UsageError
from rove.frontier.queries import load_migrations
from rove.frontier.sqlite import database as sqlite_database
from rove.frontier.sqlite.database import (
    NETWORK_FILE_SYSTEMS,
    Database,
    file_system_of,
    mapped,
)

NEWEST = load_migrations("sqlite")[-1][0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "frontier.sqlite"


async def made(path: Path) -> None:
    """Make a frontier."""
    database = Database(path)
    await database.open(create=True)
    await database.close()


async def refusal(path: Path, *, read_only: bool = False, create: bool = False) -> str:
    """The sentence with which a file is refused."""
    database = Database(path, read_only=read_only)
    try:
        with pytest.raises(UsageError) as caught:
            await database.open(create=create)
    finally:
        await database.close()
    assert caught.value.exit_code == 2
    return str(caught.value)


def tell(path: Path, sql: str) -> list[tuple[object, ...]]:
    """Ask the file behind the database's back."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def content(path: Path) -> bytes | None:
    """What is in a file, None where there is none."""
    return path.read_bytes() if path.exists() else None


async def test_a_frontier_is_made_from_nothing(path: Path) -> None:
    await made(path)
    assert tell(path, "PRAGMA user_version") == [(NEWEST,)]
    assert tell(path, "PRAGMA journal_mode") == [("wal",)]
    tables = {name for (name,) in tell(path, "SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert {"domain", "url", "origin", "request", "run", "counter", "meta"} <= tables


async def test_opening_again_changes_nothing(path: Path) -> None:
    await made(path)
    tell(path, "INSERT INTO meta VALUES ('key', 'value')")
    await made(path)
    assert tell(path, "SELECT value FROM meta WHERE key = 'key'") == [("value",)]


async def test_writes_survive_a_power_cut(path: Path) -> None:
    database = Database(path)
    await database.open(create=True)
    connection = database._connection
    assert connection is not None
    full = await database.run(lambda: connection.execute("PRAGMA synchronous").fetchone()[0])
    assert full == 2
    await database.close()


async def test_nothing_is_made_unless_asked_for(path: Path) -> None:
    assert "holds no crawl" in await refusal(path)
    assert "holds no crawl" in await refusal(path, read_only=True)
    assert content(path) is None


async def test_a_file_of_a_newer_version_is_refused_in_words(path: Path) -> None:
    await made(path)
    tell(path, f"PRAGMA user_version = {NEWEST + 1}")
    for read_only in (False, True):
        sentence = await refusal(path, read_only=read_only)
        assert "newer rove" in sentence and str(NEWEST + 1) in sentence and str(path) in sentence
    assert tell(path, "PRAGMA user_version") == [(NEWEST + 1,)]


async def test_a_reader_does_not_migrate(path: Path) -> None:
    tell(path, "PRAGMA journal_mode = WAL")
    assert "older rove" in await refusal(path, read_only=True)
    assert tell(path, "SELECT name FROM sqlite_master") == []


async def test_a_migration_is_whole_or_not_at_all(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await made(path)
    bad = [*load_migrations("sqlite"), (NEWEST + 1, "CREATE TABLE new (a); CREATE TABLE url (a);")]
    monkeypatch.setattr(sqlite_database, "load_migrations", lambda backend: bad)
    database = Database(path)
    with pytest.raises(FrontierError):
        await database.open(create=True)
    await database.close()
    assert tell(path, "PRAGMA user_version") == [(NEWEST,)]
    assert tell(path, "SELECT 1 FROM sqlite_master WHERE name = 'new'") == []


async def test_only_missing_migrations_are_made(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await made(path)
    more = [
        *load_migrations("sqlite"),
        (NEWEST + 1, "CREATE TABLE first (a);"),
        (NEWEST + 2, "INSERT INTO first VALUES (1);"),
    ]
    monkeypatch.setattr(sqlite_database, "load_migrations", lambda backend: more)
    await made(path)
    await made(path)
    assert tell(path, "SELECT a FROM first") == [(1,)]
    assert tell(path, "PRAGMA user_version") == [(NEWEST + 2,)]


@pytest.fixture(params=[b"rubbish " * 1000, b"SQLite format 3\x00" + b"\xff" * 5000])
def rubbish(request: pytest.FixtureRequest, path: Path) -> bytes:
    """A file that is no database, and what is in it."""
    path.write_bytes(request.param)
    return bytes(request.param)


@pytest.mark.parametrize("read_only", [False, True])
async def test_rubbish_is_refused_in_words(path: Path, rubbish: bytes, read_only: bool) -> None:
    assert "not a frontier that rove can read" in await refusal(path, read_only=read_only)
    assert content(path) == rubbish


@pytest.mark.parametrize("kind", sorted(NETWORK_FILE_SYSTEMS))
async def test_a_network_file_system_is_refused_in_words(
    path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(sqlite_database, "file_system_of", lambda folder: kind)
    sentence = await refusal(path, create=True)
    assert "network file system" in sentence and kind in sentence and "--data-dir" in sentence
    assert content(path) is None


@pytest.mark.parametrize("kind", ["ext4", "tmpfs", "overlay", "xfs", "btrfs", ""])
async def test_a_local_file_system_is_taken(
    path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(sqlite_database, "file_system_of", lambda folder: kind)
    await made(path)
    assert content(path) is not None


async def test_a_reader_may_look_from_a_network_file_system(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await made(path)
    monkeypatch.setattr(sqlite_database, "file_system_of", lambda folder: "nfs4")
    reader = Database(path, read_only=True)
    await reader.open()
    assert await reader.run(lambda: reader.get_meta("nothing")) is None
    await reader.close()


async def test_an_old_sqlite_is_refused_in_words(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_database, "OLDEST_SQLITE", (99, 1, 0))
    assert "rove needs 99.1.0 or newer" in await refusal(path, create=True)
    assert content(path) is None


async def test_a_reader_cannot_write_and_does_not_hinder_the_writer(path: Path) -> None:
    writer, reader = Database(path), Database(path, read_only=True)
    await writer.open(create=True)
    await reader.open()

    def write(database: Database, value: str) -> None:
        with database.transaction():
            database.execute("set_meta", key="key", value=value)

    await writer.run(lambda: write(writer, "first"))
    assert await reader.run(lambda: reader.get_meta("key")) == "first"
    with pytest.raises(FrontierError):
        await reader.run(lambda: reader.execute("set_meta", key="key", value="by the reader"))
    await writer.run(lambda: write(writer, "second"))
    assert await reader.run(lambda: reader.get_meta("key")) == "second"
    await reader.close()
    await writer.close()


async def test_a_transaction_is_all_or_nothing(path: Path) -> None:
    database = Database(path)
    await database.open(create=True)

    def fails() -> None:
        with database.transaction():
            database.execute("set_meta", key="key", value="value")
            raise ValueError("in between")

    with pytest.raises(ValueError, match="in between"):
        await database.run(fails)
    assert await database.run(lambda: database.get_meta("key")) is None

    def works() -> None:
        with database.transaction():
            database.execute("set_meta", key="key", value="value")

    await database.run(works)
    assert await database.run(lambda: database.get_meta("key")) == "value"
    await database.close()


async def test_a_full_disk_is_one_of_our_errors_and_nothing_is_lost(path: Path) -> None:
    database = Database(path)
    await database.open(create=True)
    connection = database._connection
    assert connection is not None
    pages = await database.run(lambda: connection.execute("PRAGMA page_count").fetchone()[0])
    await database.run(lambda: connection.execute(f"PRAGMA max_page_count = {pages + 2}"))

    def fill() -> None:
        with database.transaction():
            for number in range(1000):
                database.execute("set_meta", key=str(number), value="x" * 1000)

    with pytest.raises(DiskFull, match=r"the disk is full.*--resume"):
        await database.run(fill)
    assert await database.run(lambda: database.get_meta("0")) is None
    await database.run(lambda: connection.execute("PRAGMA max_page_count = 1000000"))
    await database.run(fill)
    assert await database.run(lambda: database.get_meta("999")) is not None
    await database.close()


def sqlite_error(kind: type[sqlite3.Error], name: str) -> sqlite3.Error:
    error = kind("said so")
    error.sqlite_errorname = name
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (sqlite_error(sqlite3.OperationalError, "SQLITE_FULL"), DiskFull),
        (sqlite_error(sqlite3.OperationalError, "SQLITE_IOERR_WRITE"), DiskFull),
        (sqlite_error(sqlite3.DatabaseError, "SQLITE_NOTADB"), UsageError),
        (sqlite_error(sqlite3.DatabaseError, "SQLITE_CORRUPT"), UsageError),
        (sqlite_error(sqlite3.OperationalError, "SQLITE_BUSY"), FrontierError),
        (sqlite_error(sqlite3.OperationalError, "SQLITE_IOERR_READ"), FrontierError),
        (sqlite3.ProgrammingError("Cannot operate on a closed database."), FrontierError),
    ],
)
def test_errors_are_mapped(error: sqlite3.Error, expected: type[Exception]) -> None:
    ours = mapped(error, Path("/data/frontier.sqlite"))
    assert type(ours) is expected
    assert "/data/frontier.sqlite" in str(ours) and str(error) in str(ours)


async def test_a_database_that_never_opened_can_be_closed(path: Path) -> None:
    await Database(path).close()


async def test_the_clock_is_kept(path: Path) -> None:
    database = Database(path)
    await database.open(create=True)
    first = await database.run(database.clock)
    assert await database.run(lambda: database.get_meta("clock")) is not None
    await database.close()
    again = Database(path)
    await again.open()
    assert (await again.run(again.clock)).anchor == first.anchor
    await again.close()


async def test_a_reader_does_not_keep_a_clock(path: Path) -> None:
    await made(path)
    reader = Database(path, read_only=True)
    await reader.open()
    await reader.run(reader.clock)
    assert await reader.run(lambda: reader.get_meta("clock")) is None
    await reader.close()


def test_the_file_systems_of_this_machine() -> None:
    assert file_system_of(Path("/proc")) == "proc"
    assert file_system_of(Path("/proc/self/fd")) == "proc"
    root = file_system_of(Path("/"))
    assert root and root != "proc"


Mounts = Callable[[str], None]


@pytest.fixture
def mounts(monkeypatch: pytest.MonkeyPatch) -> Mounts:
    """Say what /proc/self/mountinfo says."""

    def say(text: str) -> None:
        monkeypatch.setattr(sqlite_database.Path, "read_text", lambda self, **more: text)

    return say


MOUNTINFO = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:5 / /proc rw shared:2 - proc proc rw
24 22 0:40 / /data rw - nfs4 server:/export rw
25 24 0:41 / /data/local rw - xfs /dev/sdb1 rw
26 22 0:42 / /with\\040space rw - cifs //server/share rw
27 22 0:43 / /r\u00e9seau rw - nfs server:/x rw
28 22 0:44 / /twice rw - nfs server:/x rw
29 22 0:45 / /twice rw master:1 propagate_from:2 - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("/", "ext4"),
        ("/home/me", "ext4"),
        ("/data", "nfs4"),
        ("/data/crawl", "nfs4"),
        ("/data/local", "xfs"),
        ("/data/local/crawl", "xfs"),
        ("/data/locality", "nfs4"),
        ("/database", "ext4"),
        ("/with space/crawl", "cifs"),
        ("/r\u00e9seau/crawl", "nfs"),
        ("/twice/crawl", "tmpfs"),
    ],
)
def test_the_innermost_and_last_mount_counts(mounts: Mounts, folder: str, expected: str) -> None:
    mounts(MOUNTINFO)
    assert file_system_of(Path(folder)) == expected


def test_where_mounts_cannot_be_read_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Path, **more: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(sqlite_database.Path, "read_text", fails)
    assert file_system_of(Path("/")) == ""
