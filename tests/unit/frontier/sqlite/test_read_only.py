"""A reader changes no file, creates none, and never gives an answer that a writer has overtaken."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from rove.errors import FrontierError, RoveError, UsageError
from rove.frontier.sqlite.database import SqliteDatabase
from rove.frontier.sqlite.read_only import ReadOnlyFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / os.fsdecode(b"100% caf\xe9 ?mode=rw#")  # a name that is no UTF-8 and has a URI's characters
    folder.mkdir()
    return folder / "frontier.sqlite"


async def made(path: Path, *keys: str) -> None:
    database = SqliteDatabase(path)
    await database.open(create=True)
    for key in keys:
        await database.fetch("set_meta", key=key, value="")
    await database.close()


def reader_of(path: Path, *, in_use: bool = False, news: Callable[[str], None] | None = None) -> SqliteDatabase:
    return SqliteDatabase(path, read_only=True, in_use=lambda: in_use, on_news=news)


async def has(database: SqliteDatabase, key: str) -> bool:
    return bool(await database.fetch("get_meta", key=key))


def names(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir())


async def test_a_crawl_that_ended_is_read_without_creating_a_file(path: Path) -> None:
    await made(path, "a")
    before = names(path)
    reader = reader_of(path)
    assert await reader.holds_schema()
    await reader.open()
    assert await has(reader, "a") and names(path) == before
    await reader.close()
    assert names(path) == before


async def test_a_reader_notices_a_crawl_that_starts_while_it_reads(path: Path) -> None:
    await made(path, "a")
    reader = reader_of(path)
    await reader.open()
    writer = SqliteDatabase(path)
    await writer.open(create=True)
    await writer.fetch("set_meta", key="b", value="")
    assert await has(reader, "b"), "the change is in the log only"
    await writer.close()
    assert await has(reader, "b")
    await reader.close()


async def test_a_reader_notices_a_crawl_that_ran_between_two_queries(path: Path) -> None:
    await made(path, "a")
    reader = reader_of(path)
    await reader.open()
    assert not await has(reader, "b")
    await made(path, "b")  # the log is gone again, and the database has changed
    assert await has(reader, "b")
    await reader.close()


async def test_an_answer_that_is_overtaken_is_read_again(path: Path) -> None:
    await made(path, "a")
    reader, asked = reader_of(path), 0
    await reader.open()

    def work() -> bool:
        nonlocal asked
        asked += 1
        found = bool(reader.execute("get_meta", key="b"))
        if asked == 1:
            with sqlite3.connect(path) as writer:
                writer.execute("INSERT INTO meta VALUES ('b', '')")
            writer.close()
        return found

    assert await reader.run(work) and asked == 2
    await reader.close()


class WithoutIndex(ReadOnlyFile):
    """A file whose log cannot be used, as for a user without write permission."""

    def _opened(self, parameters: str) -> sqlite3.Connection:
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorname = "SQLITE_CANTOPEN"
        raise error


def killed_writer(path: Path) -> sqlite3.Connection:
    """Leave a transaction in the log, as a kill does."""
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("INSERT INTO meta VALUES ('in the log', '')")
    return writer


async def test_a_log_that_cannot_be_used_is_read_in_a_copy(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await made(path, "a")
    writer = killed_writer(path)
    temporary = path.parent.parent / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    news: list[str] = []
    file = WithoutIndex(path, in_use=lambda: False, on_news=news.append, timeout=1)
    connection = file.connect()
    assert "temporary copy" in news[0] and str(temporary) in news[0]
    assert connection.execute("SELECT 1 FROM meta WHERE key = 'in the log'").fetchall()
    assert list(temporary.iterdir()) == [], "a kill would leave the copy behind"
    assert not file.has_changed()
    connection.close()
    writer.close()


async def test_a_copy_that_finds_no_room_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await made(path, "a")
    writer = killed_writer(path)

    def full(source: Path, target: Path) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("shutil.copyfile", full)
    with pytest.raises(FrontierError, match="set TMPDIR"):
        WithoutIndex(path, in_use=lambda: False, on_news=lambda line: None, timeout=1).connect()
    writer.close()


async def test_a_file_that_may_not_be_read_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await made(path)
    monkeypatch.setattr("os.access", lambda *words, **options: False)  # permissions do not bind root
    with pytest.raises(UsageError, match="Permission denied"):
        await reader_of(path).open()


async def test_tables_without_a_version_are_damage(path: Path) -> None:
    await made(path)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 0")
    connection.close()
    for database, create in ((reader_of(path), False), (SqliteDatabase(path), True)):
        assert await database.holds_schema()
        with pytest.raises(UsageError, match="its schema version is 0"):
            await database.open(create=create)
        await database.close()


@pytest.mark.parametrize("seed", range(25))
async def test_noise_in_the_file_is_never_a_bug_of_ours(path: Path, seed: int) -> None:
    await made(path, *(f"key {number} é" for number in range(50)))
    noise = random.Random(seed)
    content = bytearray(path.read_bytes())  # noqa: ASYNC240
    for _ in range(30):
        start = noise.randrange(100, len(content) - 64)
        content[start : start + 64] = noise.randbytes(64)
    path.write_bytes(content)  # noqa: ASYNC240
    for database in (reader_of(path), SqliteDatabase(path)):
        try:
            if await database.holds_schema():
                await database.open()
                await database.fetch("exclusion_history")
        except RoveError as error:
            assert str(path) in str(error)
        await database.close()
