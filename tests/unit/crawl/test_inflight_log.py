"""What a process has asked, in a file that outlives it."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

import rove.crawl.inflight_log
from rove.app.application import _recover_requests
from rove.crawl.inflight_log import InflightLog, Note, _encode, lost_visits, spool_files
from rove.errors import DiskFull, StoreError
from rove.model.ledger import (
    DelaySource,
    RequestKind,
    RequestRow,
    Settlement,
)
from tests.unit.crawl.scripted import World

DELAY = 70.0
T0 = 1_700_000_000_000
ROW = RequestRow(
    visit=1,
    seq=0,
    domain=-5,
    kind=RequestKind.PAGE,
    url="http://a.test/",
    fingerprint=6,
    started=1_700_000_000.25,
    began=T0,
    ended=T0,
    error=Settlement.LOST,
)


def row(visit: int = 1, seq: int = 0, **more: object) -> RequestRow:
    return ROW.replace(visit=visit, seq=seq, **more)  # type: ignore[arg-type]


def begun(visit: int = 1, seq: int = 0) -> Note:
    """A request is about to be made."""
    return Note(visit=visit, domain=-5, row=row(visit, seq))


def ended(visit: int = 1, seq: int = 0, *, after: int = 500, **more: object) -> Note:
    """A request has ended."""
    done = row(visit, seq, ended=T0 + after, error="", status=200)
    return Note(visit=visit, domain=-5, row=done, **more)  # type: ignore[arg-type]


def long(visit: int, size: int = 100_000) -> Note:
    """A note that takes room."""
    return Note(visit=visit, domain=-5, robots=b"x" * size)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@pytest.fixture
def inflight_log(folder: Path) -> Iterator[InflightLog]:
    made = InflightLog(folder, 7)
    yield made
    made.close()


def files(folder: Path) -> dict[str, int]:
    """The files by name, and how many lines each has."""
    return {path.name: path.read_bytes().count(b"\n") for _, path in spool_files(folder)}


def visits(folder: Path) -> list[int]:
    paths = [path for _, path in spool_files(folder)]
    return [lost.visit for lost in lost_visits(7, paths, DELAY)]


class TestWriting:
    """Notes, and the files that they are in."""

    def test_nothing_is_made_before_there_is_something_to_note(self, folder: Path) -> None:
        inflight_log = InflightLog(folder, 7)
        assert not folder.exists()
        inflight_log.settled([1])
        inflight_log.close()
        assert not folder.exists()

    def test_a_note_is_a_line_at_once(self, folder: Path, inflight_log: InflightLog) -> None:
        for number in range(1, 4):
            inflight_log.note(begun(number))
            assert files(folder) == {"requests-7-1.jsonl": number}
        assert visits(folder) == [1, 2, 3]

    def test_notes_survive_a_writer_that_is_abandoned(self, folder: Path) -> None:
        inflight_log = InflightLog(folder, 7)
        inflight_log.note(begun(1))
        inflight_log.note(ended(1))
        del inflight_log
        (lost,) = lost_visits(7, [folder / "requests-7-1.jsonl"], DELAY)
        assert [found.status for found in lost.rows] == [200]

    def test_what_is_settled_is_forgotten_with_its_file(
        self, folder: Path, inflight_log: InflightLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rove.crawl.inflight_log, "FILE_BYTES", 2 * len(_encode(long(1))) + 10)
        for visit in range(4):
            inflight_log.note(long(visit))
        inflight_log.settled([0])
        assert visits(folder) == [0, 1, 2, 3], "not while one of them is not settled"
        inflight_log.settled([1])
        assert visits(folder) == [2, 3]

    def test_the_file_that_is_written_to_stays(
        self, folder: Path, inflight_log: InflightLog
    ) -> None:
        inflight_log.note(begun(1))
        inflight_log.settled([1])
        assert visits(folder) == [1]

    def test_a_visit_noted_again_after_it_was_settled_is_not_settled(
        self, folder: Path, inflight_log: InflightLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rove.crawl.inflight_log, "FILE_BYTES", 1_000_000)
        for visit in (1, 2, 3):
            inflight_log.note(long(visit))
        inflight_log.settled([1, 2])
        inflight_log.note(begun(1))
        inflight_log.settled([3])
        assert set(visits(folder)) == {1, 2, 3}

    def test_what_is_settled_may_be_unknown(self, folder: Path, inflight_log: InflightLog) -> None:
        inflight_log.note(begun(1))
        inflight_log.settled([5, 6])
        inflight_log.settled([])
        assert visits(folder) == [1]

    def test_a_file_that_is_full_is_followed_by_another(
        self, folder: Path, inflight_log: InflightLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rove.crawl.inflight_log, "FILE_BYTES", 300_000)
        for visit in range(5):
            inflight_log.note(long(visit))
        assert files(folder) == {
            f"requests-7-{n}.jsonl": lines for n, lines in [(1, 2), (2, 2), (3, 1)]
        }
        inflight_log.settled([2, 3])
        assert files(folder) == {"requests-7-1.jsonl": 2, "requests-7-3.jsonl": 1}
        inflight_log.settled([0])
        assert visits(folder) == [0, 1, 4]
        inflight_log.settled([1])
        assert visits(folder) == [4]

    def test_a_full_file_of_settled_visits_does_not_stay(
        self, folder: Path, inflight_log: InflightLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rove.crawl.inflight_log, "FILE_BYTES", 300_000)
        inflight_log.note(long(1, 150_000))
        inflight_log.settled([1])
        inflight_log.note(long(2, 150_000))
        assert files(folder) == {"requests-7-2.jsonl": 1}

    def test_a_visit_in_two_files_is_in_both_until_it_is_settled(
        self, folder: Path, inflight_log: InflightLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rove.crawl.inflight_log, "FILE_BYTES", 150_000)
        inflight_log.note(long(1))
        inflight_log.note(long(1))
        inflight_log.note(long(2))
        assert len(files(folder)) == 3
        inflight_log.settled([1])
        assert files(folder) == {"requests-7-3.jsonl": 1}

    def test_a_note_longer_than_a_file_is_written_all_the_same(
        self, folder: Path, inflight_log: InflightLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rove.crawl.inflight_log, "FILE_BYTES", 1_000)
        inflight_log.note(long(1))
        inflight_log.note(long(2))
        assert visits(folder) == [1, 2]

    def test_closing_leaves_only_what_is_not_settled(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rove.crawl.inflight_log, "FILE_BYTES", 150_000)
        inflight_log = InflightLog(folder, 7)
        for visit in (1, 2, 3):
            inflight_log.note(long(visit))
        inflight_log.settled([1, 3])
        inflight_log.close()
        assert files(folder) == {"requests-7-2.jsonl": 1}
        inflight_log.close()

    def test_closing_leaves_nothing_where_all_is_settled(self, folder: Path) -> None:
        inflight_log = InflightLog(folder, 7)
        inflight_log.note(begun(1))
        inflight_log.settled([1])
        inflight_log.close()
        assert list(folder.iterdir()) == []

    def test_two_processes_do_not_meet(self, folder: Path) -> None:
        one, two = InflightLog(folder, 1), InflightLog(folder, 2)
        one.note(begun(10))
        two.note(begun(20))
        one.settled([10, 20])
        one.close()
        assert files(folder) == {"requests-2-1.jsonl": 1}
        two.close()


class TestFiles:
    """Which files there are."""

    def test_where_there_is_no_directory_there_are_none(self, folder: Path) -> None:
        assert spool_files(folder) == []

    def test_they_come_by_process_and_number_and_others_do_not(self, folder: Path) -> None:
        folder.mkdir()
        names = ["requests-2-10.jsonl", "requests-2-9.jsonl", "requests-10-1.jsonl"]
        for name in (
            *names,
            "requests-1.jsonl",
            "notes.txt",
            "xrequests-1-1.jsonl",
            "requests-1-1.jsonl~",
        ):
            (folder / name).touch()
        found = [(process, path.name) for process, path in spool_files(folder)]
        assert found == [
            (2, "requests-2-9.jsonl"),
            (2, "requests-2-10.jsonl"),
            (10, "requests-10-1.jsonl"),
        ]

    @pytest.mark.parametrize(
        ("of", "but", "expected"),
        [
            (None, 0, [1, 2, 3]),
            (None, 2, [1, 3]),
            (None, 9, [1, 2, 3]),
            ([1, 3], 0, [1, 3]),
            ([1, 9], 0, [1]),
            ([], 0, []),
            ([2], 2, [2]),
        ],
    )
    def test_those_of_some_or_of_all_but_one(
        self, folder: Path, of: list[int] | None, but: int, expected: list[int]
    ) -> None:
        folder.mkdir()
        for process in (1, 2, 3):
            (folder / f"requests-{process}-1.jsonl").touch()
        assert [process for process, _ in spool_files(folder, of=of, but=but)] == expected


class TestReading:
    """What is made of the notes of a dead process."""

    @pytest.fixture
    def path(self, inflight_log: InflightLog, folder: Path) -> Path:
        inflight_log.note(begun(1))
        inflight_log.note(ended(1))
        inflight_log.note(begun(2))
        return folder / "requests-7-1.jsonl"

    def test_a_request_that_had_ended_is_there_once_with_its_end(self, path: Path) -> None:
        first, second = lost_visits(7, [path], DELAY)
        assert (first.domain, first.visit) == (-5, 1)
        assert first.rows == [
            row(
                1,
                ended=T0 + 500,
                error="",
                status=200,
                delay=DELAY,
                process=7,
                settlement=Settlement.LOST,
            )
        ]
        assert second.rows == [row(2, delay=DELAY, process=7, settlement=Settlement.LOST)]
        assert second.rows[0].error == Settlement.LOST

    def test_the_domain_may_be_visited_again_after_its_delay(self, path: Path) -> None:
        first, second = lost_visits(7, [path], DELAY)
        assert first.earliest == T0 + 500 + 70_000
        assert second.earliest == T0 + 70_000, "as far as it is known"

    def test_half_a_line_is_none(self, path: Path) -> None:
        whole = path.read_bytes().rstrip(b"\0")
        lines = whole.splitlines(keepends=True)
        for length in range(len(whole) - len(lines[-1]), len(whole) - 1):
            path.write_bytes(whole[:length])
            assert [lost.visit for lost in lost_visits(7, [path], DELAY)] == [1]
        path.write_bytes(whole[:-1])
        assert [lost.visit for lost in lost_visits(7, [path], DELAY)] == [1, 2]

    @pytest.mark.parametrize(
        "rubbish",
        [b"\n", b"{}\n", b"null\n", b"\0" * 100 + b"\n", b"\xff\xfe\n", b'{"visit":"x"}\n'],
    )
    def test_what_is_no_note_is_passed_over(self, path: Path, rubbish: bytes) -> None:
        path.write_bytes(rubbish + path.read_bytes() + rubbish)
        assert [lost.visit for lost in lost_visits(7, [path], DELAY)] == [1, 2]

    def test_an_empty_file_holds_nothing(self, path: Path) -> None:
        path.write_bytes(b"")
        assert lost_visits(7, [path], DELAY) == []

    @pytest.mark.parametrize(
        ("pauses", "delay", "source"),
        [
            ([], DELAY, DelaySource.DELAY),
            ([(5.0, DelaySource.SLOW)], DELAY, DelaySource.DELAY),
            ([(70.0, DelaySource.FAILURES)], DELAY, DelaySource.DELAY),
            ([(300.5, DelaySource.RETRY_AFTER)], 300.5, DelaySource.RETRY_AFTER),
            (
                [
                    (300.0, DelaySource.RETRY_AFTER),
                    (500.0, DelaySource.CRAWL_DELAY),
                    (1.0, DelaySource.SLOW),
                ],
                500.0,
                DelaySource.CRAWL_DELAY,
            ),
        ],
    )
    def test_the_longest_that_was_asked_for_is_kept_to(
        self,
        inflight_log: InflightLog,
        folder: Path,
        pauses: list[tuple[float, DelaySource]],
        delay: float,
        source: DelaySource,
    ) -> None:
        inflight_log.note(begun(1))
        for seq, (pause, pause_from) in enumerate(pauses):
            inflight_log.note(ended(1, seq, after=1_000, pause=pause, pause_from=pause_from))
        (lost,) = lost_visits(7, [folder / "requests-7-1.jsonl"], DELAY)
        assert {(found.delay, found.delay_from) for found in lost.rows} == {(delay, source)}
        last = T0 + (1_000 if pauses else 0)
        assert lost.earliest == last + round(1_000 * delay)

    def test_it_counts_from_the_end_of_the_last_request(
        self, inflight_log: InflightLog, folder: Path
    ) -> None:
        inflight_log.note(ended(1, 0, after=9_000))
        inflight_log.note(ended(1, 1, after=4_000))
        (lost,) = lost_visits(7, [folder / "requests-7-1.jsonl"], DELAY)
        assert lost.earliest == T0 + 9_000 + 70_000
        assert [found.seq for found in lost.rows] == [0, 1]

    def test_the_texts_of_robots_txt_come_along(
        self, inflight_log: InflightLog, folder: Path
    ) -> None:
        texts = [b"", b"User-agent: *\n", bytes(range(256))]
        for text in texts:
            inflight_log.note(Note(visit=1, domain=-5, robots=text))
        inflight_log.note(Note(visit=1, domain=-5, robots=None, pause=500.0))
        (lost,) = lost_visits(7, [folder / "requests-7-1.jsonl"], DELAY)
        assert lost.robots == texts
        assert (lost.rows, lost.earliest) == ([], 0), "nothing is known of when"

    def test_a_visit_in_two_files_is_one(
        self, inflight_log: InflightLog, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rove.crawl.inflight_log, "FILE_BYTES", 10)
        inflight_log.note(begun(1))
        inflight_log.note(ended(1, pause=100.0, pause_from=DelaySource.SLOW))
        paths = [path for _, path in spool_files(folder)]
        (lost,) = lost_visits(7, paths, DELAY)
        assert [(found.status, found.delay) for found in lost.rows] == [(200, 100.0)]

    def test_what_was_noted_is_what_is_read(self, inflight_log: InflightLog, folder: Path) -> None:
        odd = row(
            1,
            url="http://a.test/%00?\u2028",
            other_domain=-(1 << 63),
            fingerprint=(1 << 63) - 1,
            content_hash=-1,
            title='"\n\r\\',
            target="é\x80\x85",
            truncated=True,
            address="::1",
        )
        inflight_log.note(Note(visit=1, domain=-5, row=odd))
        (lost,) = lost_visits(7, [folder / "requests-7-1.jsonl"], DELAY)
        assert lost.rows == [odd.replace(delay=DELAY, process=7, settlement=Settlement.LOST)]


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """A disk that holds no more than so much of a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class TestFullDisk:
    """A note that cannot be written is an error, before anything is asked."""

    def test_a_full_disk_is_said(self, folder: Path, inflight_log: InflightLog) -> None:
        with file_size_limit(1_000), pytest.raises(DiskFull, match=r"requests-7-1\.jsonl"):
            inflight_log.note(begun(1))
        assert files(folder) == {}

    def test_so_is_one_that_fills_up_later(
        self, folder: Path, inflight_log: InflightLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rove.crawl.inflight_log, "FILE_BYTES", 150_000)
        inflight_log.note(long(1))
        with file_size_limit(1_000):
            for _ in range(2):
                with pytest.raises(DiskFull):
                    inflight_log.note(long(2))
        assert visits(folder) == [1]
        inflight_log.note(long(3))
        assert visits(folder) == [1, 3], "when there is room again"

    def test_a_directory_that_cannot_be_made_is_another_error(self, tmp_path: Path) -> None:
        (tmp_path / "spool").write_text("a file")
        with pytest.raises(StoreError, match="cannot be written") as caught:
            InflightLog(tmp_path / "spool", 7).note(begun(1))
        assert not isinstance(caught.value, DiskFull)


WRITER = """
import os, sys
from pathlib import Path
import rove.crawl.inflight_log
from rove.model.ledger import RequestKind, RequestRow
from rove.crawl.inflight_log import Note, _encode, InflightLog

rove.crawl.inflight_log.FILE_BYTES = 20_000
spool = InflightLog(Path(sys.argv[1]), 7)
settled = 0
for visit in range(1, 1_000_000):
    row = RequestRow(visit=visit, seq=0, domain=visit, kind=RequestKind.PAGE, url="http://a.test/" + "x" * (visit % 50),
                     fingerprint=1, started=1.0, began=visit, ended=visit)
    spool.note(Note(visit=visit, domain=visit, row=row))
    os.write(1, b"%d\\n" % visit)
    if visit % 30 == 0:
        settled = visit - 17
        os.write(1, b"settled %d\\n" % settled)
        spool.settled(range(settled + 1))
"""


@pytest.mark.parametrize("lines", [1, 10, 777])
def test_every_note_that_was_written_outlives_a_killed_process(folder: Path, lines: int) -> None:
    command = [sys.executable, "-c", WRITER, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        said += process.stdout.readlines()
    assert process.returncode == -signal.SIGKILL
    numbers = [int(line) for line in said if line.strip().isdigit() and line.endswith(b"\n")]
    settled = max((int(line.split()[1]) for line in said if line.startswith(b"settled")), default=0)
    assert len(numbers) >= lines * 30 // 31 - 1
    found = visits(folder)
    assert set(numbers) - set(range(settled + 1)) <= set(found), "none is missing"
    assert set(found) <= {*numbers, numbers[-1] + 1}, "at most one was written and not said"
    assert len(files(folder)) <= 3, "what is settled does not pile up"


async def test_a_request_whose_end_is_in_another_file_is_entered_with_its_end(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is entered first stays: nothing in the ledger is ever changed."""
    monkeypatch.setattr(rove.crawl.inflight_log, "FILE_BYTES", 10)
    world = World(tmp_path)
    await world.open("http://a.test/")
    lease = await world.claim()
    assert lease is not None
    inflight_log = InflightLog(folder, world.frontier.process)
    for note in (begun(lease.token), ended(lease.token, pause=900.0)):
        assert note.row is not None
        whose = note.row.replace(domain=lease.domain)
        inflight_log.note(msgspec.structs.replace(note, domain=lease.domain, row=whose))
    assert len(files(folder)) == 2
    stage = SimpleNamespace(
        data=SimpleNamespace(inflight_log=folder), settings=SimpleNamespace(delay=DELAY)
    )
    next_start = await world.harness.open(delay=DELAY)
    await _recover_requests(cast(Any, stage), next_start, None)
    assert files(folder) == {}
    rows = await world.rows("SELECT status, error, ended - began, delay, settlement FROM request")
    await world.harness.close()
    assert rows == [(200, "", 500, 900_000, "lost")]
