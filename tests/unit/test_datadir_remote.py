"""A data directory that belongs to a crawl in PostgreSQL, and the locks of its workers."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from rove.datadir import DataDir, Remote
from rove.errors import StoreError, UsageError

REMOTE = Remote(url="postgresql://rove:s3cret@db.test/x", crawl_name="mine", node_key="00ff")
FILE = "frontier.json"
PATIENCE = 5.0

WORKER = """
import sys
from pathlib import Path
from rove.datadir import DataDir
with DataDir(Path(sys.argv[1])).worked_in():
    print("working", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def data(tmp_path: Path) -> DataDir:
    data = DataDir(tmp_path / "data")
    data.root.mkdir()
    return data


def names(data: DataDir) -> set[str]:
    return {path.name for path in data.root.iterdir()}


def test_a_remote_is_stored_and_read(data: DataDir) -> None:
    assert data.remote() is None
    data.remember(REMOTE)
    assert data.remote() == DataDir(data.root).remote() == REMOTE
    assert names(data) == {FILE}


def test_reading_the_remote_creates_no_directory(tmp_path: Path) -> None:
    data = DataDir(tmp_path / "nothing")
    assert data.remote() is None
    assert not data.root.exists()


def test_a_data_directory_gets_a_key_that_stays(data: DataDir) -> None:
    one, two = (Remote(url="postgresql://h/x", crawl_name="mine") for _ in range(2))
    assert one.node_key != two.node_key
    data.remember(one)
    assert data.remote() == one


@pytest.fixture(params=[0o000, 0o022])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    old = os.umask(request.param)
    yield
    os.umask(old)


@pytest.mark.usefixtures("umask")
def test_only_the_owner_may_read_the_file(data: DataDir) -> None:
    for _ in range(2):
        data.remember(REMOTE)
        assert (data.root / FILE).stat().st_mode & 0o777 == 0o600


def test_a_remote_can_be_replaced(data: DataDir) -> None:
    data.remember(Remote(url="postgresql://" + "long" * 100, crawl_name="mine"))
    data.remember(REMOTE)
    assert data.remote() == REMOTE


def test_a_partial_file_left_by_a_kill_does_no_harm(data: DataDir) -> None:
    (data.root / "frontier.partial").write_text("x" * 1000)
    assert data.remote() is None
    data.remember(REMOTE)
    assert data.remote() == REMOTE


def test_a_remote_can_be_forgotten(data: DataDir) -> None:
    data.remember(REMOTE)
    data.forget()
    assert data.remote() is None
    assert names(data) == set()
    data.forget()  # there is nothing to forget


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"nonsense",
        b'{"url": "postgresql://h/x", "crawl_na',
        b"[]",
        b'{"url": "postgresql://h/x"}',
        b'{"url": 5, "crawl_name": "mine"}',
        b"\xff\xfe",
        b'{"url": "\xff", "crawl_name": "mine"}',
    ],
)
def test_a_damaged_file_is_refused(data: DataDir, text: bytes) -> None:
    (data.root / FILE).write_bytes(text)
    with pytest.raises(UsageError, match="which says where the crawl is, cannot be read"):
        data.remote()
    assert (data.root / FILE).read_bytes() == text


def test_a_folder_instead_of_the_file_is_refused(data: DataDir) -> None:
    (data.root / FILE).mkdir()
    with pytest.raises(UsageError, match="cannot be read"):
        data.remote()
    with pytest.raises(StoreError, match="cannot be written"):
        data.remember(REMOTE)


def test_a_failed_write_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"{FILE} cannot be written: No such file"):
        DataDir(tmp_path / "nothing").remember(REMOTE)


@contextmanager
def full_disk() -> Iterator[None]:
    """Let every fsync fail."""

    def failing(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", failing)
        yield


def test_the_old_remote_stays_when_the_new_one_cannot_be_written(data: DataDir) -> None:
    data.remember(REMOTE)
    with full_disk(), pytest.raises(StoreError, match="No space left"):
        data.remember(Remote(url="postgresql://new.test/x", crawl_name="mine"))
    assert data.remote() == REMOTE


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    data = DataDir(tmp_path / "new")
    with full_disk(), pytest.raises(StoreError), data.held():
        data.remember(REMOTE)
    assert not data.root.exists()


def test_the_data_directory_of_a_crawl_in_postgresql_stays(tmp_path: Path) -> None:
    """Although it holds no frontier."""
    data = DataDir(tmp_path / "new")
    with data.held():
        data.remember(REMOTE)
    assert data.remote() == REMOTE
    assert names(data) == {FILE, "lock"}


def test_a_crawl_in_postgresql_that_was_not_created_leaves_nothing(tmp_path: Path) -> None:
    data = DataDir(tmp_path / "new")
    with pytest.raises(UsageError), data.held():
        data.remember(REMOTE)
        with data.worked_in():
            data.forget()
        raise UsageError("no seeds")
    assert not data.root.exists()


def test_a_moved_frontier_stays_under_another_name(data: DataDir) -> None:
    data.frontier.write_text("a crawl")
    data.set_frontier_aside()
    assert not data.frontier.exists()
    assert data.moved.read_text() == "a crawl"
    assert names(data) == {"frontier.sqlite.moved"}


def test_every_worker_has_its_own_log(data: DataDir) -> None:
    logs = [data.log_of(name) for name in ("1", "10", "trial")]
    assert [log.name for log in logs] == ["rove-1.log", "rove-10.log", "rove-trial.log"]
    assert data.log not in logs


def test_a_directory_with_a_worker_is_in_use(data: DataDir) -> None:
    """Even if nobody holds it."""
    assert not data.in_use()
    with data.worked_in():
        assert data.in_use()
    assert not data.in_use()


def test_several_workers_can_use_it(data: DataDir) -> None:
    with ExitStack() as first:
        first.enter_context(data.worked_in())
        with ExitStack() as second:
            second.enter_context(DataDir(data.root).worked_in())
            first.close()
            assert data.in_use(), "the second worker is still there"
    assert not data.in_use()


def test_it_can_be_held_while_workers_use_it(data: DataDir) -> None:
    """A start holds it first and then waits for the workers."""
    data.frontier.touch()
    with data.held(), data.worked_in():
        assert data.in_use()
    with data.worked_in(), data.held():
        assert data.in_use()
    assert not data.in_use()


def test_checking_for_workers_creates_nothing(data: DataDir) -> None:
    assert not data.in_use()
    assert names(data) == set()


@contextmanager
def working(data: DataDir) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker in another process."""
    command = [sys.executable, "-c", WORKER, str(data.root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"working\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.system
async def test_a_start_waits_until_a_worker_is_killed(data: DataDir) -> None:
    said: list[str] = []
    with working(data) as process:
        assert data.in_use()
        waiting = asyncio.create_task(data.wait_for_workers(said.append))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        process.kill()
        async with asyncio.timeout(PATIENCE):
            await waiting
    assert said == ["waiting for the processes of an earlier start to end"]
    assert not data.in_use()


async def test_a_start_does_not_wait_without_workers(data: DataDir, tmp_path: Path) -> None:
    said: list[str] = []
    with data.worked_in():
        pass
    for folder in (data, DataDir(tmp_path / "nothing")):
        await folder.wait_for_workers(said.append)
    assert said == []


async def test_a_start_waits_for_the_last_worker_and_says_so_once(data: DataDir) -> None:
    said: list[str] = []
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(data.worked_in())
        second.enter_context(data.worked_in())
        waiting = asyncio.create_task(data.wait_for_workers(said.append))
        await asyncio.sleep(0.15)
        first.close()
        await asyncio.sleep(0.15)
        assert not waiting.done()
        second.close()
        async with asyncio.timeout(PATIENCE):
            await waiting
    assert len(said) == 1


async def test_a_start_does_not_wait_for_ever(data: DataDir) -> None:
    said: list[str] = []
    with data.worked_in():
        with pytest.raises(UsageError, match="still crawling"):
            async with asyncio.timeout(PATIENCE):
                await data.wait_for_workers(said.append, patience=0.05)
        assert data.in_use(), "the worker is left alone"
    assert len(said) == 1


def test_a_check_does_not_keep_the_lock(data: DataDir) -> None:
    with data.worked_in():
        pass
    assert not data.in_use()
    with data.worked_in():
        assert data.in_use()
