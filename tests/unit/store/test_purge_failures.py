"""A purge survives kills, full disks and damaged files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from rove.errors import DiskFull, StoreError
from rove.store.contract import Keep
from rove.store.recovery import RecoveryReport, recover
from tests.unit.store.pages import files, max_file_size, page
from tests.unit.store.purging import (
    PURGED,
    Killed,
    Rows,
    contents,
    kill_after,
    of_domain,
    purge_of,
    run_purge,
    stored,
    three_files,
)


def test_after_a_kill_at_any_change_of_the_disk_the_next_purge_completes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for changes in range(1_000):
        directory = tmp_path / str(changes)
        rows = three_files(directory)
        with monkeypatch.context() as patch:
            kill = kill_after(patch, changes)
            try:
                run_purge(rows)
            except Killed:
                kill.left = -1  # what follows is a new process
        was_killed = kill.left < 0
        rows.check()
        recover(directory)
        rows.check()
        run_purge(rows)
        rows.check_end()
        if not was_killed:
            break
    else:
        raise AssertionError("there is no end of the changes")
    assert changes > 20


def test_after_two_kills_the_next_purge_completes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for first in range(0, 28, 4):
        for second in range(1, 22, 3):
            rows = three_files(tmp_path / f"{first}-{second}")
            for changes in (first, second):
                with monkeypatch.context() as patch:
                    kill = kill_after(patch, changes)
                    try:
                        run_purge(rows)
                    except Killed:
                        kill.left = -1
                rows.check()
            run_purge(rows)
            rows.check_end()


@pytest.mark.parametrize("updated", range(0, 41, 4))
def test_a_move_is_returned_again_until_it_is_finished(tmp_path: Path, updated: int) -> None:
    rows = three_files(tmp_path)
    left = next(purge_of(tmp_path).rewrite())
    rows.update(left, at_most=updated)
    rows.check()
    for _ in range(2):
        assert purge_of(tmp_path).unfinished() == left
    first, _ = run_purge(rows)
    assert first.old == left.old
    assert purge_of(tmp_path).unfinished() is None
    rows.check_end()


def test_the_purge_of_another_domain_completes_this_one_first(tmp_path: Path) -> None:
    rows = three_files(tmp_path)
    left = next(purge_of(tmp_path).rewrite())
    purge = purge_of(tmp_path, lambda url: False)
    given = []
    for done in purge.rewrite():
        rows.update(done)
        purge.finish(done.old)
        given.append(done.old)
    assert given == [left.old]
    rows.check()
    run_purge(rows)
    rows.check_end()


def test_each_step_is_synced_before_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mixed = [of_domain("gone.example", 0), of_domain("kept.example", 1)]
    stored(tmp_path, [mixed])
    (old,) = files(tmp_path)
    new = old.replace(".warc.gz", "-p1.warc.gz")
    steps: list[str] = []
    sync, rename, unlink = os.fsync, Path.rename, Path.unlink

    def noted_sync(fd: int) -> None:
        sync(fd)
        path = Path(f"/proc/self/fd/{fd}").readlink()
        steps.append("sync names" if path == tmp_path else f"sync {path.name}")

    def noted_rename(path: Path, target: Path) -> Path:
        steps.append(f"{path.name} -> {target.name}")
        return rename(path, target)

    def noted_unlink(path: Path, missing_ok: bool = False) -> None:
        if path.exists():
            steps.append(f"delete {path.name}")
        unlink(path, missing_ok)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(Path, "rename", noted_rename)
    monkeypatch.setattr(Path, "unlink", noted_unlink)
    purge = purge_of(tmp_path)
    for done in purge.rewrite():
        steps.append("the database is updated")
        purge.finish(done.old)
    assert steps == [
        f"sync {new}.purge",
        "sync names",
        "sync purge.json.partial",
        "purge.json.partial -> purge.json",
        "sync names",
        f"{new}.purge -> {new}",
        "sync names",
        "the database is updated",
        f"delete {old}",
        "sync names",
        "delete purge.json",
        "sync names",
    ]


def test_a_crawl_may_run_in_the_middle_of_a_purge(tmp_path: Path) -> None:
    rows = three_files(tmp_path)
    next(purge_of(tmp_path).rewrite())
    (tmp_path / "other.warc.gz.purge").write_bytes(b"not decided")
    names = files(tmp_path)
    assert recover(tmp_path) == RecoveryReport()
    assert files(tmp_path) == names
    later = stored(tmp_path, [[of_domain("kept.example", 50), of_domain("gone.example", 51)]])
    rows.locations |= later.locations
    rows.pages |= later.pages
    assert recover(tmp_path) == RecoveryReport()
    assert len(run_purge(rows)) == 3
    rows.check_end()


def test_the_next_file_is_refused_before_this_one_is_finished(tmp_path: Path) -> None:
    three_files(tmp_path)
    purge = purge_of(tmp_path)
    rewriting = purge.rewrite()
    done = next(rewriting)
    with pytest.raises(RuntimeError, match="finish"):
        next(rewriting)
    purge.finish(done.old)
    with pytest.raises(RuntimeError, match="finish"):
        purge.finish(done.old)


KILLED = """
import sys
from pathlib import Path
from rove.store.purge import Purge

purge = Purge(Path(sys.argv[1]), lambda url: url.startswith(sys.argv[2]), lambda texts: {})
for done in purge.rewrite():
    print(done.old, flush=True)
    sys.stdin.readline()
"""


@pytest.mark.system
def test_after_a_real_kill_the_next_purge_completes(tmp_path: Path) -> None:
    rows = three_files(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), PURGED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        old = process.stdout.readline().strip()
        process.send_signal(signal.SIGKILL)
    assert (tmp_path / old).exists()
    rows.check()
    first, _ = run_purge(rows)
    assert first.old == old
    rows.check_end()


def damaged(rows: Rows) -> tuple[Path, int]:
    """Damage a record in the file with both kinds of pages; return the file and the record's offset."""
    path = rows.directory / files(rows.directory)[0]
    at = rows.locations["https://kept.example/9", "text"]
    assert at is not None
    data = bytearray(path.read_bytes())
    data[at.offset + at.length // 2] ^= 0xFF
    path.write_bytes(data)
    return path, at.offset


def test_a_damaged_file_stops_the_purge_unchanged(tmp_path: Path) -> None:
    rows = three_files(tmp_path)
    path, offset = damaged(rows)
    before = contents(tmp_path)
    for _ in range(2):
        with pytest.raises(StoreError) as caught:
            run_purge(rows)
        assert str(path) in str(caught.value)
        assert f"byte {offset} " in str(caught.value)
        assert "\n" not in str(caught.value)
        assert contents(tmp_path) == before


@pytest.mark.parametrize("cut", [1, 30])
def test_a_file_that_ends_inside_a_record_is_damaged(tmp_path: Path, cut: int) -> None:
    rows = three_files(tmp_path)
    path = tmp_path / files(tmp_path)[0]
    os.truncate(path, path.stat().st_size - cut)
    before = contents(tmp_path)
    with pytest.raises(StoreError, match="damaged at byte"):
        run_purge(rows)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("room", [0, 10, 1_000, 2_000])
def test_a_full_disk_changes_nothing(tmp_path: Path, room: int) -> None:
    rows = three_files(tmp_path)
    before = contents(tmp_path)
    with max_file_size(room), pytest.raises(DiskFull, match="purge again"):
        run_purge(rows)
    assert contents(tmp_path) == before
    run_purge(rows)
    rows.check_end()


def test_a_disk_too_full_for_purge_json_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = three_files(tmp_path)
    before = contents(tmp_path)
    encode = msgspec.json.encode
    with monkeypatch.context() as patch, max_file_size(100_000):
        patch.setattr(msgspec.json, "encode", lambda step, **hooks: encode(step, **hooks) + b" " * 100_000)
        with pytest.raises(DiskFull):
            run_purge(rows)
    assert contents(tmp_path) == before


def test_an_error_of_the_caller_changes_nothing(tmp_path: Path) -> None:
    three_files(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(ZeroDivisionError):
        next(purge_of(tmp_path, lambda url: bool(1 // 0)).rewrite())
    assert contents(tmp_path) == before


def test_a_missing_new_file_is_reported_and_the_old_one_stays(tmp_path: Path) -> None:
    rows = three_files(tmp_path)
    done = next(purge_of(tmp_path).rewrite())
    assert done.new is not None
    (tmp_path / done.new).unlink()
    with pytest.raises(StoreError, match="missing"):
        run_purge(rows)
    rows.check()


def test_an_unreadable_purge_json_is_reported(tmp_path: Path) -> None:
    three_files(tmp_path)
    (tmp_path / "purge.json").write_bytes(b"{")
    with pytest.raises(StoreError, match=r"could not read .*purge\.json"):
        next(purge_of(tmp_path).rewrite())


@pytest.mark.system
def test_a_large_file_takes_little_memory(tmp_path: Path) -> None:
    """Rewriting a file of 20 MB takes less than half of that in memory."""
    large = [page(n, os.urandom(500_000).hex()) for n in range(40)]
    rows = stored(tmp_path, [[*large, of_domain("gone.example", 0)]], Keep.TEXT)
    assert (tmp_path / files(tmp_path)[0]).stat().st_size > 20_000_000
    measured = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path), PURGED], capture_output=True, text=True, check=True
    )
    assert int(measured.stdout) < 10_000, "KiB"
    (done,) = run_purge(rows)
    assert done.records == 40


MEASURED = """
import resource, sys
from pathlib import Path
from rove.store.purge import Purge

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
next(Purge(Path(sys.argv[1]), lambda url: url.startswith(sys.argv[2]), lambda texts: {}).rewrite())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
