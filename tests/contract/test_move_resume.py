"""A move can be interrupted at any moment and resumed, and refuses a schema that holds anything else."""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rove.errors import FrontierError, UsageError
from rove.frontier.move.mover import SLICE_ROWS, Mover
from rove.frontier.move.source import Source
from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.records import Node
from tests.contract.harness import url
from tests.contract.moved_crawl import (
    MACHINE,
    POLICY,
    Stop,
    Target,
    check_times,
    crawl_in,
    dump,
    enlarge,
    interrupted,
    opened,
)


async def test_interrupted_after_every_slice(tmp_path: Path, target: Target) -> None:
    path, clock = await crawl_in(tmp_path)
    times = 0
    while await interrupted(target, path, 1):
        times += 1
        assert await target.is_moving()
        assert await target.rows("SELECT 1 FROM meta WHERE key = 'settings'") == []
        if times == 12:
            break
    assert times == 12
    again = await target.move(path)
    assert not await target.is_moving()
    await check_times(path, target, clock)
    await _check_same_as_uninterrupted(path, target, again)


async def _check_same_as_uninterrupted(path: Path, target: Target, moved: dict[str, int]) -> None:
    whole = Target(target.url)
    try:
        assert await whole.move(path, slice_rows=SLICE_ROWS) == moved
        assert await dump(whole) == await dump(target)
    finally:
        await whole.drop()


KILLED = """
import asyncio, os, signal, sys, threading
from pathlib import Path
from rove.frontier.records import Node
from rove.frontier.move.mover import move

path, url, schema, messages, pause = sys.argv[1:]
left = int(messages)

def say(text):
    global left
    left -= 1
    if left == 0:
        threading.Timer(float(pause), os.kill, (os.getpid(), signal.SIGKILL)).start()

machine = Node(key="here", host="host", path="/data")
asyncio.run(
    move(Path(path), url, schema, machine, say=say, slice_rows=20, progress_seconds=0.0)
)
"""


async def test_killed_at_random_moments(tmp_path: Path, target: Target) -> None:
    path, clock = await crawl_in(tmp_path)
    await enlarge(path, clock)
    chance = random.Random(4)
    ends = []
    for _ in range(4):
        arguments = [str(path), target.url, target.schema]
        arguments += [str(chance.randrange(1, 30)), str(chance.uniform(0, 0.02))]
        ended = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", KILLED, *arguments], timeout=60)
        ends.append(ended.returncode)
    assert ends.count(-signal.SIGKILL) >= 3, ends
    moved = await target.move(path, slice_rows=SLICE_ROWS)
    await check_times(path, target, clock)
    await _check_same_as_uninterrupted(path, target, moved)


class FlakyDatabase(PostgresDatabase):
    """Loses its connection now and then, before or after a commit."""

    def __init__(self, url: str, schema: str) -> None:
        super().__init__(url, schema, connections=1)
        self.dropped = {"before": 0, "after": 0}
        self._chance = random.Random(2)

    async def transaction(self, what: str, work: Any, **options: Any) -> Any:
        async def dropped_before_commit(session: Any) -> Any:
            result = await work(session)
            if self._drops(what, "before"):
                await session.connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            return result

        return await super().transaction(what, dropped_before_commit, **options)

    async def run(self, what: str, work: Any, **options: Any) -> Any:
        async def dropped_after_commit(session: Any) -> Any:
            result = await work(session)
            if self._drops(what, "after"):
                raise ConnectionResetError
            return result

        return await super().run(what, dropped_after_commit, **options)

    def _drops(self, what: str, when: str) -> bool:
        drops = "move" in what and self._chance.random() < 0.2
        self.dropped[when] += drops
        return drops


async def test_a_server_that_drops_connections(tmp_path: Path, target: Target) -> None:
    """Each slice is written once, whether its commit was lost or only the answer to it."""
    path, clock = await crawl_in(tmp_path)
    await enlarge(path, clock)
    source, database = Source(path), FlakyDatabase(target.url, target.schema)
    await source.open()
    await database.open(create=True)
    try:
        moved = await Mover(source, database, MACHINE, lambda text: None, slice_rows=100).run()
    finally:
        await database.close()
        await source.close()
    assert min(database.dropped.values()) > 2, database.dropped
    await _check_same_as_uninterrupted(path, target, moved)


async def test_repeating_a_finished_move_changes_nothing(tmp_path: Path, target: Target) -> None:
    path, _ = await crawl_in(tmp_path)
    moved = await target.move(path)
    async with target.backend() as there:
        frontier = await there.begin(POLICY, await there.begin_run())
        await frontier.add([url("https://since.test/")])
        await frontier.claim(3)
    before = await dump(target)
    said: list[str] = []
    assert await target.move(path, said.append) == moved
    assert await dump(target) == before
    assert said == []


async def test_an_outdated_copy_is_refused(tmp_path: Path, target: Target) -> None:
    path, clock = await crawl_in(tmp_path)
    await target.move(path)
    await enlarge(path, clock)
    with pytest.raises(UsageError, match="earlier copy of this crawl"):
        await target.move(path)


async def test_a_crawl_that_went_on_after_an_interrupted_move_is_moved_again(tmp_path: Path, target: Target) -> None:
    path, clock = await crawl_in(tmp_path)
    assert await interrupted(target, path, 8)
    await enlarge(path, clock)
    said: list[str] = []
    moved = await target.move(path, said.append, slice_rows=SLICE_ROWS)
    assert moved["URLs"] == 3078
    assert any("gone on" in text for text in said)
    await _check_same_as_uninterrupted(path, target, moved)


async def test_a_schema_with_another_crawl_is_refused(tmp_path: Path, target: Target) -> None:
    path, _ = await crawl_in(tmp_path)
    async with target.backend() as there:
        await there.catalog.save("{}", None)
    with pytest.raises(UsageError, match="exists already"):
        await target.move(path)
    await target.rows("DELETE FROM meta")
    await target.rows(
        "INSERT INTO url (domain, fingerprint, position, priority, depth, url) VALUES (1, 2, 3, 0, 0, '')"
    )
    with pytest.raises(UsageError, match="exists already"):
        await target.move(path)
    assert await target.rows("SELECT count(*) FROM domain") == [(0,)]
    assert not await target.is_moving()


async def test_an_unfinished_move_of_another_crawl_is_refused(tmp_path: Path, target: Target) -> None:
    (tmp_path / "other").mkdir()
    other, _ = await crawl_in(tmp_path / "other")
    path, _ = await crawl_in(tmp_path)
    assert await interrupted(target, other, 3)
    with pytest.raises(UsageError, match="unfinished move of another crawl"):
        await target.move(path)
    await target.move(other)
    with pytest.raises(UsageError, match="exists already"):
        await target.move(path)


async def test_a_file_without_a_crawl_is_refused(tmp_path: Path, target: Target) -> None:
    with pytest.raises(UsageError, match="holds no crawl"):
        await target.move(tmp_path / "frontier.sqlite")
    async with opened(tmp_path / "frontier.sqlite"):
        pass
    with pytest.raises(UsageError, match="holds no crawl"):
        await target.move(tmp_path / "frontier.sqlite")
    schemas = await target.rows("SELECT 1 FROM pg_namespace WHERE nspname = $1::text::name", target.schema)
    assert schemas == []


async def test_missing_rows_are_noticed(tmp_path: Path, target: Target) -> None:
    path, _ = await crawl_in(tmp_path)
    assert await interrupted(target, path, 8)
    await target.rows("DELETE FROM url WHERE url = (SELECT min(url) FROM url WHERE state = 0)")
    with pytest.raises(FrontierError, match="URLs: 78 here, 77 there; pending URLs: "):
        await target.move(path)
    assert await target.is_moving()
    assert await target.rows("SELECT 1 FROM meta WHERE key = 'settings'") == []


async def test_two_movers_do_not_mix(tmp_path: Path, target: Target) -> None:
    """A copy of the data directory has the same id. The second process to write a slice gives up."""
    path, _ = await crawl_in(tmp_path)
    assert await interrupted(target, path, 1)
    shutil.copy(path, tmp_path / "copy.sqlite")
    ends = await asyncio.gather(target.move(path), target.move(tmp_path / "copy.sqlite"), return_exceptions=True)
    failures = [end for end in ends if isinstance(end, BaseException)]
    assert all("another process is moving" in str(failure) for failure in failures)
    await _check_same_as_uninterrupted(path, target, await target.move(path))


async def test_a_data_directory_with_a_new_key_keeps_its_rows(tmp_path: Path, target: Target) -> None:
    path, _ = await crawl_in(tmp_path)
    rows = "SELECT m.key FROM process AS p LEFT JOIN machine AS m ON m.id = p.machine"
    for messages, key in ((22, "first"), (1, "second"), (None, "third"), (None, "fourth")):
        machine = Node(key=key, host="h", path="p")
        said: list[str] = []

        def say(text: str, said: list[str] = said, messages: int | None = messages) -> None:
            said.append(text)
            if len(said) == messages:
                raise Stop

        try:
            await target.move(path, say, node=machine)
        except Stop:
            assert messages is not None
        assert await target.rows("SELECT key FROM machine") == [(key,)]
    assert {key for (key,) in await target.rows(rows)} == {"fourth"}
