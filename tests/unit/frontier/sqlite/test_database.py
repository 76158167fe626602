"""The frontier's file is opened, migrated or refused, and sqlite3's errors are mapped to ours."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from rove.errors import DiskFull, FrontierError, UsageError
from rove.frontier.schema import Schema
from rove.frontier.sqlite.database import SqliteDatabase, check_version
from rove.frontier.sqlite.errors import mapped
from rove.frontier.sqlite.file_system import NETWORK_FILE_SYSTEMS, file_system_of

NEWEST = Schema.of("sqlite").newest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "frontier.sqlite"


async def made(path: Path, schema: Schema | None = None) -> None:
    """Create or update a frontier."""
    database = SqliteDatabase(path, schema=schema)
    try:
        await database.open(create=True)
    finally:
        await database.close()


async def refusal(path: Path, *, create: bool = False, **options: Any) -> str:
    """Return the sentence with which a file is refused."""
    database = SqliteDatabase(path, **options)
    try:
        with pytest.raises(UsageError) as caught:
            await database.open(create=create)
    finally:
        await database.close()
    assert caught.value.exit_code == 2
    return str(caught.value)


async def holds_schema(path: Path) -> bool:
    """Return whether both a writer and a reader see a schema."""
    found = set()
    for read_only in (False, True):
        database = SqliteDatabase(path, read_only=read_only)
        found.add(await database.holds_schema())
        await database.close()
    assert len(found) == 1
    return found.pop()


def tell(path: Path, sql: str) -> list[tuple[object, ...]]:
    """Run a statement on the file through a connection of its own."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def content(path: Path) -> bytes | None:
    """Return the content of a file, None if it does not exist."""
    return path.read_bytes() if path.exists() else None


async def test_a_frontier_is_created(path: Path) -> None:
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
    database = SqliteDatabase(path)
    await database.open(create=True)
    connection = database._connection
    assert connection is not None
    full = await database.run(lambda: connection.execute("PRAGMA synchronous").fetchone()[0])
    assert full == 2
    await database.close()


async def test_nothing_is_created_unless_asked_for(path: Path) -> None:
    assert "holds no crawl" in await refusal(path)
    assert "holds no crawl" in await refusal(path, read_only=True)
    assert content(path) is None


async def test_a_reader_does_not_create_tables(path: Path) -> None:
    tell(path, "PRAGMA journal_mode = WAL")
    assert "there is no crawl" in await refusal(path, read_only=True)
    assert tell(path, "SELECT name FROM sqlite_master") == []


async def test_a_newer_schema_is_refused(path: Path) -> None:
    await made(path)
    tell(path, f"PRAGMA user_version = {NEWEST + 1}")
    for read_only in (False, True):
        sentence = await refusal(path, read_only=read_only)
        assert "newer rove" in sentence and str(NEWEST + 1) in sentence and str(path) in sentence
    assert tell(path, "PRAGMA user_version") == [(NEWEST + 1,)]


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM meta WHERE key = 'schema'",
        "UPDATE meta SET value = 'other' WHERE key = 'schema'",
        "DROP TABLE meta",
        "DELETE FROM meta; PRAGMA user_version = 5",
    ],
)
async def test_the_schema_of_a_development_version_is_refused(path: Path, change: str) -> None:
    await made(path)
    for statement in change.split(";"):
        tell(path, statement)
    for create in (False, True):
        sentence = await refusal(path, create=create)
        assert f"{path} was written by a development version" in sentence
        assert "start a new crawl somewhere else" in sentence


FIRST = Schema.of("sqlite").migrations
NEXT = Schema([*FIRST, (NEWEST + 1, "ALTER TABLE meta ADD COLUMN note TEXT NOT NULL DEFAULT 'x';")])


async def test_the_next_version_updates_a_file(path: Path) -> None:
    await made(path)
    tell(path, "INSERT INTO meta VALUES ('key', 'value')")
    assert "resume the crawl once" in await refusal(path, schema=NEXT)
    assert "resume the crawl once" in await refusal(path, schema=NEXT, read_only=True, create=True)
    news: list[str] = []
    for _ in range(2):
        database = SqliteDatabase(path, schema=NEXT, on_news=news.append)
        await database.open(create=True)
        await database.close()
    assert [f"updating {path}" in sentence for sentence in news] == [True]
    assert tell(path, "SELECT value, note FROM meta WHERE key = 'key'") == [("value", "x")]
    assert tell(path, "PRAGMA user_version") == [(NEWEST + 1,)]
    assert "newer rove" in await refusal(path, create=True)


async def test_all_missing_migrations_are_applied_once(path: Path) -> None:
    await made(path)
    more = Schema(
        [
            *FIRST,
            (NEWEST + 1, "CREATE TABLE first (a);\n-- one; comment\nCREATE TABLE second (a);"),
            (NEWEST + 2, "INSERT INTO first VALUES (1); INSERT INTO second VALUES (2);"),
        ]
    )
    await made(path, more)
    await made(path, more)
    assert tell(path, "SELECT a FROM first UNION ALL SELECT a FROM second") == [(1,), (2,)]
    assert tell(path, "PRAGMA user_version") == [(NEWEST + 2,)]


async def test_a_failed_migration_leaves_the_file_as_it_was(path: Path) -> None:
    await made(path)
    bad = Schema([*FIRST, (NEWEST + 1, "CREATE TABLE new (a);\nCREATE TABLE url (a);")])
    with pytest.raises(FrontierError):
        await made(path, bad)
    assert tell(path, "PRAGMA user_version") == [(NEWEST,)]
    assert tell(path, "SELECT 1 FROM sqlite_master WHERE name = 'new'") == []
    await made(path)


async def test_two_processes_may_create_a_file_at_once(path: Path) -> None:
    await asyncio.gather(*[made(path) for _ in range(4)])
    assert tell(path, "PRAGMA user_version") == [(NEWEST,)]


async def test_an_empty_file_holds_no_crawl(path: Path) -> None:
    """The process that made it may have been killed at once."""
    assert not await holds_schema(path)
    path.write_bytes(b"")  # noqa: ASYNC240
    assert not await holds_schema(path)
    await made(path)
    assert await holds_schema(path)


@pytest.fixture(params=[b"rubbish " * 1000, b"SQLite format 3\x00" + b"\xff" * 5000])
def rubbish(request: pytest.FixtureRequest, path: Path) -> bytes:
    """Make a file that is no database, and return its content."""
    path.write_bytes(request.param)
    return bytes(request.param)


@pytest.mark.parametrize("read_only", [False, True])
async def test_rubbish_is_refused(path: Path, rubbish: bytes, read_only: bool) -> None:
    assert "not a frontier that rove can read" in await refusal(path, read_only=read_only)
    assert content(path) == rubbish


@pytest.mark.parametrize("kind", sorted(NETWORK_FILE_SYSTEMS))
async def test_a_network_file_system_is_refused(path: Path, kind: str) -> None:
    sentence = await refusal(path, create=True, file_system=lambda folder: kind)
    assert "network file system" in sentence and kind in sentence and "--data-dir" in sentence
    assert content(path) is None


@pytest.mark.parametrize("kind", ["ext4", "tmpfs", "overlay", "xfs", "btrfs", ""])
async def test_a_local_file_system_is_accepted(path: Path, kind: str) -> None:
    database = SqliteDatabase(path, file_system=lambda folder: kind)
    await database.open(create=True)
    await database.close()
    assert content(path) is not None


async def test_a_reader_may_use_a_network_file_system(path: Path) -> None:
    await made(path)
    reader = SqliteDatabase(path, read_only=True, file_system=lambda folder: "nfs4")
    await reader.open()
    assert await reader.run(lambda: reader.get_meta("nothing")) is None
    await reader.close()


def test_an_old_sqlite_is_refused() -> None:
    check_version((3, 38, 0))
    with pytest.raises(UsageError, match=r"SQLite 3\.37\.2; rove needs 3\.38\.0 or newer"):
        check_version((3, 37, 2))


async def test_a_reader_cannot_write_and_does_not_block_the_writer(path: Path) -> None:
    writer, reader = SqliteDatabase(path), SqliteDatabase(path, read_only=True)
    await writer.open(create=True)
    await reader.open()

    def write(database: SqliteDatabase, value: str) -> None:
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
    database = SqliteDatabase(path)
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
    database = SqliteDatabase(path)
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
    await SqliteDatabase(path).close()


async def test_the_clock_is_saved(path: Path) -> None:
    database = SqliteDatabase(path)
    await database.open(create=True)
    first = await database.run(database.clock)
    assert await database.run(lambda: database.get_meta("clock")) is not None
    await database.close()
    again = SqliteDatabase(path)
    await again.open()
    assert (await again.run(again.clock)).anchor == first.anchor
    await again.close()


async def test_a_reader_does_not_save_a_clock(path: Path) -> None:
    await made(path)
    reader = SqliteDatabase(path, read_only=True)
    await reader.open()
    await reader.run(reader.clock)
    assert await reader.run(lambda: reader.get_meta("clock")) is None
    await reader.close()


def test_the_file_systems_of_this_machine() -> None:
    assert file_system_of(Path("/proc")) == "proc"
    assert file_system_of(Path("/proc/self/fd")) == "proc"
    root = file_system_of(Path("/"))
    assert root and root != "proc"


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
def test_the_innermost_and_last_mount_counts(tmp_path: Path, folder: str, expected: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTINFO)
    assert file_system_of(Path(folder), mounts) == expected


def test_without_a_list_of_mounts_the_file_system_is_unknown(tmp_path: Path) -> None:
    assert file_system_of(Path("/"), tmp_path / "absent") == ""
