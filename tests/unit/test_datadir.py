"""One process at a time uses a data directory, and a crawl that was not created leaves nothing behind."""

from __future__ import annotations

import errno
import fcntl
import io
import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from rove.datadir import DataDir, Remote
from rove.errors import DiskFull, StoreError, UsageError
from rove.model.instructions import Instruction, InstructionKind


@pytest.fixture
def data(tmp_path: Path) -> DataDir:
    return DataDir(tmp_path / "data")


def contents(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_it_is_created_held_and_released(data: DataDir) -> None:
    assert not data.in_use()
    with data.held():
        assert data.root.is_dir()
        assert data.in_use()
        data.frontier.write_text("a crawl")
    assert not data.in_use()
    assert data.frontier.read_text() == "a crawl"


def test_parent_folders_are_created(tmp_path: Path) -> None:
    data = DataDir(tmp_path / "a" / "b" / "data")
    with data.held():
        data.frontier.touch()
    assert data.root.is_dir()


def test_a_second_process_is_told_who_holds_it(data: DataDir) -> None:
    with data.held():
        data.frontier.touch()
        with pytest.raises(UsageError, match=f"process {os.getpid()}") as caught, data.held():
            pytest.fail("held twice")
        assert "in use by a running crawl" in str(caught.value)
        assert data.in_use(), "the first still holds it"


def test_a_second_process_changes_nothing_while_a_crawl_starts(data: DataDir) -> None:
    """The first one is still reading its seeds, so there is no frontier yet."""
    with data.held():
        copy = data.save_seeds(io.BytesIO(b"a.test\n"))
        data.log.write_text("a log")
        before = contents(data.root)
        with pytest.raises(UsageError, match="in use"), data.held():
            pytest.fail("held twice")
        assert contents(data.root) == before
        assert copy.read_bytes() == b"a.test\n"
        assert data.in_use()
        data.frontier.touch()


def test_it_can_be_held_again(data: DataDir) -> None:
    for _ in range(3):
        with data.held():
            data.frontier.touch()
            assert data.in_use()


def test_a_crawl_that_was_not_created_leaves_nothing(data: DataDir, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no seeds"), data.held():
        data.save_seeds(io.BytesIO(b"nothing")).unlink()
        raise UsageError("no seeds")
    assert contents(tmp_path) == []


def test_an_existing_folder_stays_with_its_files(data: DataDir) -> None:
    data.seeds.mkdir(parents=True)
    mine = [data.root / "notes.txt", data.seeds / "0001.txt", data.log]
    for path in mine:
        path.write_text("mine")
    before = contents(data.root)
    with pytest.raises(UsageError), data.held():
        raise UsageError("no")
    assert contents(data.root) == before
    assert all(path.read_text() == "mine" for path in mine)


def test_the_files_of_a_crawl_stay_after_an_error(data: DataDir) -> None:
    with pytest.raises(RuntimeError), data.held():
        data.save_seeds(io.BytesIO(b"a.test"))
        data.frontier.touch()
        raise RuntimeError
    assert {"seeds/0001.txt", "frontier.sqlite"} <= set(contents(data.root))
    assert not data.in_use()


def test_a_file_instead_of_a_folder_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_text("a file")
    for root in (file, file / "below"):
        with pytest.raises(UsageError, match="cannot be used as a data directory"), DataDir(root).held():
            pytest.fail("held a file")
    assert file.read_text() == "a file"


def test_a_directory_that_can_never_be_made_is_refused() -> None:
    """Its start used to try for ever, deaf to every signal."""
    cannot = "/proc/rove cannot be used as a data directory: No such file or directory"
    with pytest.raises(UsageError, match=cannot), DataDir(Path("/proc/rove")).held():
        pytest.fail("held a directory below /proc")


@pytest.mark.parametrize("name", ["lock", "lock.workers", "frontier.sqlite", "rove.log"])
def test_a_folder_in_place_of_a_file_is_refused(data: DataDir, name: str) -> None:
    (data.root / name).mkdir(parents=True)
    with pytest.raises(UsageError, match=f"{name} is a directory, but rove needs a file"), data.held():
        pytest.fail("held")
    assert contents(data.root) == [name], "nothing was created"


@pytest.mark.parametrize("name", ["warc", "seeds", "in-flight"])
def test_a_file_in_place_of_a_folder_is_refused(data: DataDir, name: str) -> None:
    data.root.mkdir()
    (data.root / name).touch()
    with pytest.raises(UsageError, match=f"{name} is a file, but rove needs a directory"), data.held():
        pytest.fail("held")
    assert contents(data.root) == [name], "nothing was created"


def test_a_lock_that_a_failed_start_has_deleted_is_not_enough(data: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that fails deletes its new directory. Another start may have opened the lock in it a moment before."""
    failing = ExitStack()
    failing.enter_context(data.held())
    take, attempts = DataDir._take, 0

    def take_late(self: DataDir, handle: int) -> None:
        nonlocal attempts
        attempts += 1
        failing.close()  # the lock is deleted between the opening and the locking
        take(self, handle)

    monkeypatch.setattr(DataDir, "_take", take_late)
    with data.held():
        assert attempts == 2
        assert data.in_use(), "the lock that others see is held"
        data.frontier.touch()


def test_files_follow_the_umask_and_a_secret_does_not(data: DataDir) -> None:
    before = os.umask(0o002)
    try:
        with data.held():
            data.save_seeds(io.BytesIO(b"a.test"))
            data.remember(Remote(url="postgresql://a:s3cret@b/c", crawl_name="c"))
    finally:
        os.umask(before)
    modes = {str(path.relative_to(data.root)): path.stat().st_mode & 0o777 for path in data.root.rglob("*")}
    assert modes == {"lock": 0o664, "seeds": 0o775, "seeds/0001.txt": 0o664, "frontier.json": 0o600}


def test_checking_whether_it_is_in_use_changes_nothing(data: DataDir) -> None:
    assert not data.in_use()
    assert not data.root.exists()
    with data.held():
        data.frontier.touch()
    handle = os.open(data.root / "lock", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    assert data.in_use()
    os.close(handle)
    assert not data.in_use()


def test_commands_that_look_keep_nobody_out(data: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """They lock the directory for a moment, too."""
    with data.held(), data.worked_in():
        data.frontier.touch()
    for name, kind in (("lock", fcntl.LOCK_SH), ("lock.workers", fcntl.LOCK_EX)):
        looker = os.open(data.root / name, os.O_RDONLY)
        fcntl.flock(looker, kind)
        with monkeypatch.context() as patch:
            patch.setattr("time.sleep", lambda _, looker=looker: os.close(looker))  # the moment is over
            if name == "lock":
                with data.held():
                    pass
            else:
                assert not data.in_use()


def test_a_stop_that_cannot_be_written_names_the_process(data: DataDir) -> None:
    with data.held():
        data.frontier.touch()
        (data.root / "stop.json").mkdir()
        with pytest.raises(StoreError, match=f"Is a directory; stop the crawl with: kill {os.getpid()}"):
            data.instruct(InstructionKind.STOP, Instruction(who="ann", at=0.0))


def test_an_instruction_that_cannot_be_read_is_an_error(data: DataDir) -> None:
    (data.root / "stop.json").mkdir(parents=True)
    with pytest.raises(StoreError, match=r"stop\.json cannot be read: Is a directory"):
        data.instructions()


def test_seeds_are_copied_unchanged_to_one_file_each(data: DataDir) -> None:
    data.root.mkdir()
    texts = [b"\xef\xbb\xbfa.test\r\n", b"", b"\xff\xfe not text" * 100_000]
    paths = [data.save_seeds(io.BytesIO(text)) for text in texts]
    assert [path.name for path in paths] == ["0001.txt", "0002.txt", "0003.txt"]
    assert [path.read_bytes() for path in paths] == texts
    assert contents(data.seeds) == ["0001.txt", "0002.txt", "0003.txt"]


def test_a_copy_of_seeds_never_replaces_another(data: DataDir) -> None:
    data.root.mkdir()
    first = data.save_seeds(io.BytesIO(b"first"))
    second = data.save_seeds(io.BytesIO(b"second"))
    first.unlink()
    (data.seeds / "notes.txt").write_text("mine")
    (data.seeds / "0007.partial").write_text("left by a kill")
    third = data.save_seeds(io.BytesIO(b"third"))
    assert third != second and second.read_bytes() == b"second"


class Failing(io.RawIOBase):
    """Seeds that cannot be copied."""

    def __init__(self, number: int) -> None:
        self._number = number

    def read(self, size: int = -1) -> bytes:
        raise OSError(self._number, os.strerror(self._number))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_reported(data: DataDir, number: int) -> None:
    data.root.mkdir()
    with pytest.raises(DiskFull, match="disk is full"):
        data.save_seeds(Failing(number))


def test_another_error_is_not_reported_as_a_full_disk(data: DataDir) -> None:
    data.root.mkdir()
    with pytest.raises(StoreError, match=os.strerror(errno.EIO)):
        data.save_seeds(Failing(errno.EIO))
