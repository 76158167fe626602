"""Rows of a frontier that are damaged: the URL fails, and everything else goes on."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rove.errors import UsageError
from rove.frontier.sqlite.backend import SqliteBackend
from rove.frontier.sqlite.database import SqliteDatabase
from rove.model.reasons import FailReason
from rove.model.urls import UrlState
from rove.model.visits import OriginRecord, RobotsStatus
from tests.contract.harness import DELAY, PostgresHarness, SqliteHarness, raw, url, visited

DONE = UrlState.DONE
BAD, GOOD = "http://a.test/bad", "http://a.test/good"
NOT_UTF8 = "CAST(x'687474703a2f2f612e746573742fff' AS TEXT)"
"""http://a.test/ and a byte that no text in UTF-8 has."""


def damage(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        changed = connection.execute(sql)
        connection.commit()
        assert changed.rowcount > 0


@pytest.fixture
def sqlite(tmp_path: Path) -> SqliteHarness:
    return SqliteHarness(tmp_path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "frontier.sqlite"


@pytest.mark.parametrize("text", [NOT_UTF8, "'http:/a.test/'", "'\u00e4'", "''", "'http://x@a.test/'"])
async def test_a_damaged_url_fails_and_the_others_go_on(sqlite: SqliteHarness, path: Path, text: str) -> None:
    frontier = await sqlite.open()
    await frontier.add([url(BAD), url(GOOD, depth=1)])
    damage(path, f"UPDATE url SET url = {text} WHERE url = '{BAD}'")
    (lease,) = await frontier.claim(1)
    assert [pending.url for pending in lease.urls] == [GOOD]
    record = await sqlite.reader().url(lease.domain, url(BAD).fingerprint)
    assert record is not None and (record.state, record.reason) == (UrlState.FAILED, FailReason.DAMAGED)
    await frontier.settle([visited(lease, DONE)])
    assert await sqlite.counted_pending() == {lease.domain: (0, 0)}
    counts = await frontier.counts()
    assert (counts.urls[DONE], counts.urls[UrlState.FAILED], counts.domains["idle"]) == (1, 1, 1)
    await sqlite.close()


async def test_a_damaged_url_that_is_the_last_leaves_its_domain_idle(sqlite: SqliteHarness, path: Path) -> None:
    frontier = await sqlite.open()
    await frontier.add([url(BAD)])
    damage(path, f"UPDATE url SET url = {NOT_UTF8}")
    assert await frontier.claim(1) == []
    assert await frontier.next_due() is None
    assert (await frontier.counts()).domains["idle"] == 1
    await sqlite.close()


async def test_damaged_urls_behind_the_first_ones_are_left_out(sqlite: SqliteHarness, path: Path) -> None:
    frontier = await sqlite.open()
    await frontier.add([url(f"http://a.test/{number}") for number in range(5)])
    damage(path, f"UPDATE url SET url = {NOT_UTF8} WHERE url LIKE '%/3'")
    (lease,) = await frontier.claim(1)
    more = await frontier.more(lease, lease.urls[-1], 10)
    assert [pending.url for pending in more] == ["http://a.test/2", "http://a.test/4"]
    await sqlite.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE robots_text SET body = x'ff00'",
        "UPDATE origin SET status = 'r\u00e4les' WHERE origin = 'http://a.test'",
    ],
)
async def test_a_damaged_robots_record_is_fetched_again(sqlite: SqliteHarness, path: Path, change: str) -> None:
    frontier = await sqlite.open()
    await frontier.add([url(BAD)])
    (lease,) = await frontier.claim(1)
    origins = [
        OriginRecord(
            domain=lease.domain, origin="http://a.test", status=RobotsStatus.RULES, valid_for=1000, body=b"Disallow: /"
        ),
        OriginRecord(domain=lease.domain, origin="http://b.test", status=RobotsStatus.NONE, valid_for=1000),
    ]
    await frontier.put_origins(origins)
    damage(path, change)
    found = await frontier.origins([(lease.domain, record.origin) for record in origins])
    assert [record.origin for record in found] == ["http://b.test"]
    await sqlite.close()


async def test_a_damaged_url_fails_on_postgres_too(postgres: PostgresHarness) -> None:
    frontier = await postgres.open()
    await frontier.add([url(BAD), url(GOOD, depth=1)])
    await raw(postgres._databases[-1], "UPDATE url SET url = 'http:/a.test/' WHERE url = $1", BAD)
    (lease,) = await frontier.claim(1)
    assert [pending.url for pending in lease.urls] == [GOOD]
    postgres.advance(DELAY)
    assert await postgres.counted_pending() == {lease.domain: (1, 1)}
    assert (await frontier.counts()).urls[UrlState.FAILED] == 1
    await postgres.close()


async def made(path: Path, *, ends_cleanly: bool) -> None:
    """Make a frontier with one process."""
    database = SqliteDatabase(path)
    await database.open(create=True)
    await database.fetch("begin_process", run=1, pid=1, now=1)
    if ends_cleanly:
        figures = {"pages": 0, "pages_per_s": 0, "in_flight": 0, "at_once": 0, "held_by": "", "paused": 0}
        await database.fetch("note_alive", process=1, now=2, has_left=1, **figures)
    await database.close()


def overwrite_a_page(path: Path) -> None:
    """Damage the root page of the table of URLs."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'url'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : (page - 1) * size + 100] = b"\xff" * 100
    path.write_bytes(content)


@pytest.mark.parametrize("ends_cleanly", [False, True])
async def test_the_file_is_checked_after_an_unclean_end(path: Path, ends_cleanly: bool) -> None:
    await made(path, ends_cleanly=ends_cleanly)
    overwrite_a_page(path)
    backend = SqliteBackend(path)
    await backend.open()
    if ends_cleanly:
        await backend.begin_run()
    else:
        with pytest.raises(UsageError, match=r"frontier\.sqlite is damaged \(.*restore it from a backup, or repair it"):
            await backend.begin_run()
    await backend.close()


async def test_a_sound_file_passes_the_check(path: Path) -> None:
    await made(path, ends_cleanly=False)
    database = SqliteDatabase(path)
    await database.open()
    await database.check()
    await database.check(seconds=-1.0)
    await database.close()
