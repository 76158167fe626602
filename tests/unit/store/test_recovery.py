"""Recovery keeps exactly the whole records of an open file, whatever a crash left of it."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rove.errors import StoreError
from rove.model.ledger import Location
from rove.store.contract import Keep
from rove.store.reader import WarcReader
from rove.store.record import compress, text_record
from rove.store.recovery import RecoveryReport, recover
from tests.unit.store.pages import files, page, passes_warcio_check, store, texts, warcio_records, whole_file, write

NAME = "crawl-20240101000000-00000.warc.gz"


def whole_records(directory: Path, count: int, keep: Keep = Keep.TEXT) -> tuple[bytes, list[int]]:
    """Return a file's bytes, and the ends of its records."""
    directory.mkdir()
    pages = [page(n, f"text {n} " * (n % 5)) for n in range(count)]
    stored = write(directory, pages, keep)
    locations = [location for item in stored for location in (item.raw, item.text) if location]
    data = whole_file(directory).read_bytes()
    return data, [locations[0].offset, *(location.offset + location.length for location in locations)]


def recovered(directory: Path, left: bytes) -> tuple[RecoveryReport, bytes | None]:
    """Recover a directory with one open file; return the report and the file's content."""
    path = directory / NAME
    path.unlink(missing_ok=True)
    (directory / f"{NAME}.open").write_bytes(left)
    report = recover(directory)
    assert not (directory / f"{NAME}.open").exists()
    return report, path.read_bytes() if path.exists() else None


def check_cut(directory: Path, data: bytes, ends: list[int], at: int) -> None:
    """Recover a file that was cut at some byte."""
    whole = [end for end in ends if end <= at]
    report, left = recovered(directory, data[:at])
    if whole:
        assert left == data[: whole[-1]]
        assert report == RecoveryReport(files=1, records=len(whole), bytes_cut=at - whole[-1])
    else:
        assert left is None
        assert report == RecoveryReport(removed=1, bytes_cut=at)


@pytest.mark.parametrize("keep", [Keep.TEXT, Keep.RAW])
def test_a_file_cut_at_any_byte_of_its_last_two_records_keeps_the_whole_ones(tmp_path: Path, keep: Keep) -> None:
    data, ends = whole_records(tmp_path / "made", 5, keep)
    for at in range(ends[-3], ends[-1] + 1):
        check_cut(tmp_path, data, ends, at)


def test_a_file_cut_at_any_byte_of_its_first_record_is_removed_or_kept(tmp_path: Path) -> None:
    data, ends = whole_records(tmp_path / "made", 1)
    for at in range(ends[0] + 2):
        check_cut(tmp_path, data, ends, at)


def test_a_file_cut_anywhere_keeps_the_whole_records(tmp_path: Path) -> None:
    data, ends = whole_records(tmp_path / "made", 600)
    chance = random.Random(9309)
    for _ in range(100):
        check_cut(tmp_path, data, ends, chance.randrange(len(data)))


@settings(max_examples=100, deadline=None)
@given(garbage=st.binary(min_size=1, max_size=200) | st.integers(1, 9_000).map(bytes))
def test_garbage_at_the_end_is_cut_off(tmp_path_factory: pytest.TempPathFactory, garbage: bytes) -> None:
    directory = tmp_path_factory.mktemp("garbage")
    data, ends = whole_records(directory / "made", 3)
    report, left = recovered(directory, data + garbage)
    assert left == data
    assert report == RecoveryReport(files=1, records=len(ends), bytes_cut=len(garbage))


def test_whole_records_behind_a_hole_are_cut_off(tmp_path: Path) -> None:
    data, ends = whole_records(tmp_path / "made", 6)
    hole = bytearray(data)
    hole[ends[2] + 5 : ends[3]] = bytes(ends[3] - ends[2] - 5)
    report, left = recovered(tmp_path, bytes(hole))
    assert left == data[: ends[2]]
    assert report == RecoveryReport(files=1, records=3, bytes_cut=len(data) - ends[2])


GOOD = text_record(page(), refers_to=None)


@pytest.mark.parametrize(
    "member",
    [
        compress(b"no record at all"),
        compress(b""),
        compress(GOOD[:-1]),
        compress(GOOD[:-6]),
        compress(GOOD + GOOD),
        compress(GOOD[:-4] + b"abcd"),
        compress(GOOD.replace(b"Content-Length", b"Content-Strength")),
        compress(b"WARC/1.1\r\n" + b"X: y\r\n" * 100_000),
    ],
)
def test_a_whole_member_without_one_whole_record_is_cut_off(tmp_path: Path, member: bytes) -> None:
    data, _ = whole_records(tmp_path / "made", 2)
    report, left = recovered(tmp_path, data + member + compress(GOOD))
    assert left == data
    assert report.records == 3


def test_a_record_larger_than_any_buffer_is_kept(tmp_path: Path) -> None:
    large = compress(text_record(page(0, os.urandom(3_000_000).hex()), refers_to=None))
    empty = compress(text_record(page(0, "\0" * 50_000_000), refers_to=None))
    report, left = recovered(tmp_path, large + empty + large[:-1])
    assert left == large + empty
    assert report.records == 2


def test_a_recovered_file_is_good_and_recovering_again_changes_nothing(tmp_path: Path) -> None:
    data, ends = whole_records(tmp_path / "made", 4)
    _, left = recovered(tmp_path, data[:-1])
    assert left is not None
    assert recover(tmp_path) == RecoveryReport()
    assert (tmp_path / NAME).read_bytes() == left == data[: ends[-2]]
    assert passes_warcio_check(tmp_path / NAME)
    assert len(texts(left)) == 3


def test_finished_files_and_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "whole.warc.gz").write_bytes(b"not to be looked at")
    (tmp_path / "notes.open").write_bytes(b"not a WARC file")
    assert recover(tmp_path) == RecoveryReport()
    assert files(tmp_path) == ["notes.open", "whole.warc.gz"]


def test_a_missing_directory_has_nothing_to_recover(tmp_path: Path) -> None:
    assert recover(tmp_path / "none") == RecoveryReport()


def test_the_files_of_many_processes_are_recovered(tmp_path: Path) -> None:
    data, ends = whole_records(tmp_path / "made", 20)
    for number in range(6):
        (tmp_path / f"p{number}.warc.gz.open").write_bytes(data[:-number] if number else data)
    (tmp_path / "empty.warc.gz.open").touch()
    report = recover(tmp_path)
    cut = sum(len(data) - n - ends[-2] for n in range(1, 6))
    assert report == RecoveryReport(files=6, removed=1, records=6 * 21 - 5, bytes_cut=cut)
    assert files(tmp_path) == ["made", *(f"p{n}.warc.gz" for n in range(6))]


def test_no_finished_file_is_overwritten(tmp_path: Path) -> None:
    data, _ = whole_records(tmp_path / "made", 2)
    (tmp_path / NAME).write_bytes(data)
    (tmp_path / f"{NAME}.open").write_bytes(data)
    with pytest.raises(StoreError, match="both"):
        recover(tmp_path)
    assert (tmp_path / NAME).read_bytes() == data


def test_a_file_that_cannot_be_recovered_is_reported(tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.open").mkdir()
    with pytest.raises(StoreError, match="Is a directory"):
        recover(tmp_path)


def test_a_file_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    async def run() -> None:
        writer = store(tmp_path)
        await writer.write([page(0, "first")])
        assert recover(tmp_path) == RecoveryReport(in_use=1)
        (stored,) = await writer.write([page(1, "second")])
        await writer.close()
        assert stored.text is not None
        assert WarcReader(tmp_path).read_text(stored.text) == "second"

    asyncio.run(run())
    assert recover(tmp_path) == RecoveryReport()


KILLED = """
import asyncio, sys
from pathlib import Path
from tests.unit.store.pages import page, store
from rove.store.contract import Keep

async def run():
    writer = store(Path(sys.argv[1]), Keep.BOTH, max_file_bytes=200_000)
    number = 0
    while True:
        stored = await writer.write([page(number + n, f"text {number + n}") for n in range(50)])
        for item in stored:
            print(number, item.text.file, item.text.offset, item.text.length, flush=False)
            number += 1
        sys.stdout.flush()

asyncio.run(run())
"""


@pytest.mark.system
@pytest.mark.parametrize("lines", [1, 400, 3_000])
def test_after_a_kill_every_completed_write_is_there(tmp_path: Path, lines: int) -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines_read = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        lines_read += [line for line in process.stdout if line.endswith("\n")]
    report = recover(tmp_path)
    assert report.files + report.removed > 0
    assert report.in_use == 0
    reader = WarcReader(tmp_path)
    for line in lines_read:
        number, file, offset, length = line.split()
        location = Location(file=file, offset=int(offset), length=int(length))
        assert reader.read_text(location, f"https://example.com/{number}") == f"text {number}"
    assert all(passes_warcio_check(path) for path in tmp_path.iterdir())
    headers = [record.rec_headers for path in tmp_path.iterdir() for record, _ in warcio_records(path)]
    responses = {each.get_header("WARC-Record-ID") for each in headers if each.get_header("WARC-Type") == "response"}
    assert {each.get_header("WARC-Refers-To") for each in headers} <= responses | {None}
