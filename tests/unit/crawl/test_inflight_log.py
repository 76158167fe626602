"""The in-flight log: requests of a process, in files that survive it."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from rove.app.recovery import recover_requests
from rove.crawl.inflight_log import FILE_BYTES, InflightLog, Note, Reading, inflight_files, lost_visits
from rove.errors import DiskFull, StoreError
from rove.frontier.priority import SUSPECT
from rove.frontier.records import Suspect
from rove.model.ledger import DelaySource, RequestKind, RequestRow, Settlement
from rove.model.urls import PendingUrl
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
    return ROW.replace(visit=visit, seq=seq, **more)


def begun(visit: int = 1, seq: int = 0) -> Note:
    """Return the note of a request that is about to be sent."""
    return Note(row=row(visit, seq))


def ended(visit: int = 1, seq: int = 0, *, after: int = 500, **more: object) -> Note:
    """Return the note of a request that has ended."""
    done = row(visit, seq, ended=T0 + after, error="", status=200)
    return Note(row=done, **more)  # type: ignore[arg-type]


def long(visit: int, size: int = 100_000) -> Note:
    """Return a long note."""
    return Note(row=row(visit), robots=b"x" * size)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "inflight"


@pytest.fixture
def inflight_log(folder: Path, request: pytest.FixtureRequest) -> Iterator[InflightLog]:
    """A log; its files have another size in tests that are marked with `file_bytes`."""
    made = InflightLog(folder, 7, file_bytes=getattr(request, "param", FILE_BYTES))
    yield made
    made.close()


def file_bytes(size: int) -> pytest.MarkDecorator:
    """Give the files of the log this size."""
    return pytest.mark.parametrize("inflight_log", [size], indirect=True)


def files(folder: Path) -> dict[str, int]:
    """Return the number of lines of each file."""
    return {path.name: path.read_bytes().count(b"\n") for _, path in inflight_files(folder)}


def visits(folder: Path) -> list[int]:
    paths = [path for _, path in inflight_files(folder)]
    return [lost.visit for lost in lost_visits(7, paths, DELAY)]


class TestWriting:
    """Notes and their files."""

    def test_no_file_is_created_before_the_first_note(self, folder: Path) -> None:
        inflight_log = InflightLog(folder, 7)
        assert not folder.exists()
        inflight_log.settled([1])
        inflight_log.close()
        assert not folder.exists()

    def test_a_note_is_in_the_file_at_once(self, folder: Path, inflight_log: InflightLog) -> None:
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
        assert [row.status for row in lost.rows] == [200]

    @file_bytes(300_000)
    def test_a_file_is_deleted_when_all_its_visits_are_settled(self, folder: Path, inflight_log: InflightLog) -> None:
        for visit in range(4):
            inflight_log.note(long(visit))
        inflight_log.settled([0])
        assert visits(folder) == [0, 1, 2, 3], "each file has an unsettled visit"
        inflight_log.settled([1])
        assert visits(folder) == [2, 3]

    def test_the_current_file_stays(self, folder: Path, inflight_log: InflightLog) -> None:
        inflight_log.note(begun(1))
        inflight_log.settled([1])
        assert visits(folder) == [1]

    @file_bytes(1_000_000)
    def test_a_visit_noted_again_after_it_was_settled_is_not_settled(
        self, folder: Path, inflight_log: InflightLog
    ) -> None:
        for visit in (1, 2, 3):
            inflight_log.note(long(visit))
        inflight_log.settled([1, 2])
        inflight_log.note(begun(1))
        inflight_log.settled([3])
        assert set(visits(folder)) == {1, 2, 3}

    def test_unknown_visits_may_be_settled(self, folder: Path, inflight_log: InflightLog) -> None:
        inflight_log.note(begun(1))
        inflight_log.settled([5, 6])
        inflight_log.settled([])
        assert visits(folder) == [1]

    @file_bytes(300_000)
    def test_a_file_that_is_full_is_followed_by_another(self, folder: Path, inflight_log: InflightLog) -> None:
        for visit in range(5):
            inflight_log.note(long(visit))
        assert files(folder) == {f"requests-7-{n}.jsonl": lines for n, lines in [(1, 2), (2, 2), (3, 1)]}
        inflight_log.settled([2, 3])
        assert files(folder) == {"requests-7-1.jsonl": 2, "requests-7-3.jsonl": 1}
        inflight_log.settled([0])
        assert visits(folder) == [0, 1, 4]
        inflight_log.settled([1])
        assert visits(folder) == [4]

    @file_bytes(300_000)
    def test_a_full_file_with_only_settled_visits_is_deleted(self, folder: Path, inflight_log: InflightLog) -> None:
        inflight_log.note(long(1, 150_000))
        inflight_log.settled([1])
        inflight_log.note(long(2, 150_000))
        assert files(folder) == {"requests-7-2.jsonl": 1}

    @file_bytes(150_000)
    def test_a_visit_in_two_files_is_in_both_until_it_is_settled(self, folder: Path, inflight_log: InflightLog) -> None:
        inflight_log.note(long(1))
        inflight_log.note(long(1))
        inflight_log.note(long(2))
        assert len(files(folder)) == 3
        inflight_log.settled([1])
        assert files(folder) == {"requests-7-3.jsonl": 1}

    @file_bytes(1_000)
    def test_a_note_may_be_longer_than_a_file(self, folder: Path, inflight_log: InflightLog) -> None:
        inflight_log.note(long(1))
        inflight_log.note(long(2))
        assert visits(folder) == [1, 2]

    def test_closing_leaves_only_files_with_unsettled_visits(self, folder: Path) -> None:
        inflight_log = InflightLog(folder, 7, file_bytes=150_000)
        for visit in (1, 2, 3):
            inflight_log.note(long(visit))
        inflight_log.settled([1, 3])
        inflight_log.close()
        assert files(folder) == {"requests-7-2.jsonl": 1}
        inflight_log.close()

    def test_closing_leaves_no_file_if_all_visits_are_settled(self, folder: Path) -> None:
        inflight_log = InflightLog(folder, 7)
        inflight_log.note(begun(1))
        inflight_log.settled([1])
        inflight_log.close()
        assert list(folder.iterdir()) == []

    def test_two_processes_do_not_share_files(self, folder: Path) -> None:
        one, two = InflightLog(folder, 1), InflightLog(folder, 2)
        one.note(begun(10))
        two.note(begun(20))
        one.settled([10, 20])
        one.close()
        assert files(folder) == {"requests-2-1.jsonl": 1}
        two.close()


class TestFiles:
    """Finding the files."""

    def test_without_a_directory_there_are_none(self, folder: Path) -> None:
        assert inflight_files(folder) == []

    def test_they_are_sorted_by_process_and_number_and_others_are_ignored(self, folder: Path) -> None:
        folder.mkdir()
        names = ["requests-2-10.jsonl", "requests-2-9.jsonl", "requests-10-1.jsonl"]
        for name in (*names, "requests-1.jsonl", "notes.txt", "xrequests-1-1.jsonl", "requests-1-1.jsonl~"):
            (folder / name).touch()
        names_found = [(process, path.name) for process, path in inflight_files(folder)]
        assert names_found == [(2, "requests-2-9.jsonl"), (2, "requests-2-10.jsonl"), (10, "requests-10-1.jsonl")]

    @pytest.mark.parametrize(
        ("processes", "except_process", "expected"),
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
    def test_they_can_be_chosen_by_process(
        self, folder: Path, processes: list[int] | None, except_process: int, expected: list[int]
    ) -> None:
        folder.mkdir()
        for process in (1, 2, 3):
            (folder / f"requests-{process}-1.jsonl").touch()
        assert [
            process for process, _ in inflight_files(folder, processes=processes, except_process=except_process)
        ] == expected


class TestReading:
    """Reading the notes of a dead process."""

    @pytest.fixture
    def path(self, inflight_log: InflightLog, folder: Path) -> Path:
        inflight_log.note(begun(1))
        inflight_log.note(ended(1))
        inflight_log.note(begun(2))
        return folder / "requests-7-1.jsonl"

    def test_a_request_that_had_ended_appears_once_with_its_end(self, path: Path) -> None:
        first, second = lost_visits(7, [path], DELAY)
        assert (first.domain, first.visit) == (-5, 1)
        assert first.rows == [
            row(1, ended=T0 + 500, error="", status=200, delay=DELAY, process=7, settlement=Settlement.LOST)
        ]
        assert second.rows == [row(2, delay=DELAY, process=7, settlement=Settlement.LOST)]
        assert second.rows[0].error == Settlement.LOST

    def test_the_domain_may_be_visited_again_after_its_delay(self, path: Path) -> None:
        first, second = lost_visits(7, [path], DELAY)
        assert first.earliest == T0 + 500 + 70_001
        assert second.earliest == T0 + 70_001, "the end of the request is unknown"

    def test_an_incomplete_line_is_ignored(self, path: Path) -> None:
        whole = path.read_bytes().rstrip(b"\0")
        lines = whole.splitlines(keepends=True)
        for length in range(len(whole) - len(lines[-1]), len(whole) - 1):
            path.write_bytes(whole[:length])
            assert [lost.visit for lost in lost_visits(7, [path], DELAY)] == [1]
        path.write_bytes(whole[:-1])
        assert [lost.visit for lost in lost_visits(7, [path], DELAY)] == [1, 2]

    @pytest.mark.parametrize(
        "garbage", [b"\n", b"{}\n", b"null\n", b"\0" * 100 + b"\n", b"\xff\xfe\n", b'{"visit":"x"}\n']
    )
    def test_garbage_is_ignored(self, path: Path, garbage: bytes) -> None:
        path.write_bytes(garbage + path.read_bytes() + garbage)
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
                [(300.0, DelaySource.RETRY_AFTER), (500.0, DelaySource.CRAWL_DELAY), (1.0, DelaySource.SLOW)],
                500.0,
                DelaySource.CRAWL_DELAY,
            ),
        ],
    )
    def test_the_longest_pause_counts(
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
        assert {(row.delay, row.delay_from) for row in lost.rows} == {(delay, source)}
        last = T0 + (1_000 if pauses else 0)
        assert lost.earliest == last + round(1_000 * delay) + 1

    def test_the_delay_counts_from_the_end_of_the_last_request(self, inflight_log: InflightLog, folder: Path) -> None:
        inflight_log.note(ended(1, 0, after=9_000))
        inflight_log.note(ended(1, 1, after=4_000))
        (lost,) = lost_visits(7, [folder / "requests-7-1.jsonl"], DELAY)
        assert lost.earliest == T0 + 9_000 + 70_001
        assert [row.seq for row in lost.rows] == [0, 1]

    def test_robots_txts_are_included(self, inflight_log: InflightLog, folder: Path) -> None:
        texts = [b"", b"User-agent: *\n", bytes(range(256))]
        for text in texts:
            inflight_log.note(Note(row=ROW, robots=text))
        inflight_log.note(Note(row=ROW, pause=500.0))
        (lost,) = lost_visits(7, [folder / "requests-7-1.jsonl"], DELAY)
        assert lost.robots == texts
        assert lost.earliest == T0 + 500_001

    @file_bytes(10)
    def test_a_visit_in_two_files_is_read_as_one(self, inflight_log: InflightLog, folder: Path) -> None:
        inflight_log.note(begun(1))
        inflight_log.note(ended(1, pause=100.0, pause_from=DelaySource.SLOW))
        paths = [path for _, path in inflight_files(folder)]
        (lost,) = lost_visits(7, paths, DELAY)
        assert [(row.status, row.delay) for row in lost.rows] == [(200, 100.0)]

    def test_unusual_values_survive(self, inflight_log: InflightLog, folder: Path) -> None:
        odd = row(
            1,
            url="http://a.test/%00?\u2028",
            domain=-(1 << 63),
            fingerprint=(1 << 63) - 1,
            content_hash=-1,
            title='"\n\r\\',
            target="é\x80\x85",
            truncated=True,
            address="::1",
        )
        inflight_log.note(Note(row=odd))
        (lost,) = lost_visits(7, [folder / "requests-7-1.jsonl"], DELAY)
        assert lost.rows == [odd.replace(delay=DELAY, process=7, settlement=Settlement.LOST)]


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Limit the size of files, like a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class TestFullDisk:
    """A note that cannot be written raises an error, so that no request is made."""

    def test_a_full_disk_is_an_error(self, folder: Path, inflight_log: InflightLog) -> None:
        with file_size_limit(1_000), pytest.raises(DiskFull, match=r"requests-7-1\.jsonl"):
            inflight_log.note(begun(1))
        assert files(folder) == {}

    @file_bytes(150_000)
    def test_a_disk_that_fills_up_later_is_an_error(self, folder: Path, inflight_log: InflightLog) -> None:
        inflight_log.note(long(1))
        with file_size_limit(1_000):
            for _ in range(2):
                with pytest.raises(DiskFull):
                    inflight_log.note(long(2))
        assert visits(folder) == [1]
        inflight_log.note(long(3))
        assert visits(folder) == [1, 3], "once there is room again"

    def test_a_directory_that_cannot_be_created_is_another_error(self, tmp_path: Path) -> None:
        (tmp_path / "inflight").write_text("a file")
        with pytest.raises(StoreError, match="could not write") as caught:
            InflightLog(tmp_path / "inflight", 7).note(begun(1))
        assert not isinstance(caught.value, DiskFull)


WRITER = """
import os, sys
from pathlib import Path
from rove.model.ledger import RequestKind, RequestRow
from rove.crawl.inflight_log import InflightLog, Note

inflight_log = InflightLog(Path(sys.argv[1]), 7, file_bytes=20_000)
settled = 0
for visit in range(1, 1_000_000):
    row = RequestRow(visit=visit, seq=0, domain=visit, kind=RequestKind.PAGE, url="http://a.test/" + "x" * (visit % 50),
                     fingerprint=1, started=1.0, began=visit, ended=visit)
    inflight_log.note(Note(row=row))
    os.write(1, b"%d\\n" % visit)
    if visit % 30 == 0:
        settled = visit - 17
        os.write(1, b"settled %d\\n" % settled)
        inflight_log.settled(range(settled + 1))
"""


@pytest.mark.system
@pytest.mark.parametrize("lines", [1, 10, 777])
def test_every_written_note_survives_a_kill(folder: Path, lines: int) -> None:
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
    survivors = visits(folder)
    assert set(numbers) - set(range(settled + 1)) <= set(survivors), "no note is missing"
    assert set(survivors) <= {*numbers, numbers[-1] + 1}, "at most one was written but not reported"
    assert len(files(folder)) <= 3, "files of settled visits are deleted"


async def test_a_request_whose_end_is_in_another_file_enters_the_ledger_with_its_end(
    tmp_path: Path, folder: Path
) -> None:
    """Both files are read together, because a row in the ledger is never changed."""
    world = World(tmp_path)
    await world.open("http://a.test/")
    held = await world.claim()
    inflight_log = InflightLog(folder, world.frontier.process, file_bytes=10)
    lease = held.lease
    for note in (begun(lease.token), ended(lease.token, pause=900.0)):
        inflight_log.note(msgspec.structs.replace(note, row=note.row.replace(domain=lease.domain)))
    assert len(files(folder)) == 2
    next_start = await world.harness.open(delay=DELAY)
    await recover_requests(next_start, folder, delay=DELAY)
    assert files(folder) == {}
    rows = await world.rows("SELECT status, error, ended - began, delay, settlement FROM request")
    await world.harness.close()
    assert rows == [(200, "", 500, 900_000, "lost")]


def pending(fingerprint: int = 6, priority: int = 0) -> PendingUrl:
    return PendingUrl(fingerprint, "http://a.test/", 0, 0, 0, False, priority, 0)


def suspects(folder: Path, *, is_evidence: bool = False) -> dict[int, Suspect | None]:
    paths = [path for _, path in inflight_files(folder)]
    return {lost.visit: lost.suspect for lost in lost_visits(7, paths, DELAY, is_evidence=is_evidence)}


class TestSuspects:
    """Only what was being read when the process died is suspect."""

    def test_a_visit_that_is_reading(self, folder: Path, inflight_log: InflightLog) -> None:
        for visit in (1, 2, 3):
            inflight_log.note(begun(visit))
            inflight_log.note(ended(visit))
        with Reading(inflight_log, 1, pending()):
            assert suspects(folder) == {1: Suspect(fingerprint=6), 2: None, 3: None}
        assert suspects(folder) == {1: None, 2: None, 3: None}

    def test_reading_ends_with_an_exception_too_and_may_begin_again(
        self, folder: Path, inflight_log: InflightLog
    ) -> None:
        inflight_log.note(begun(1))
        reading = Reading(inflight_log, 1, pending(fingerprint=8))
        with pytest.raises(ZeroDivisionError), reading:
            raise ZeroDivisionError
        assert suspects(folder) == {1: None}
        with reading:
            assert suspects(folder) == {1: Suspect(fingerprint=8)}

    def test_evidence_names_the_deaths_before(self, folder: Path, inflight_log: InflightLog) -> None:
        inflight_log.note(begun(1))
        inflight_log.note(begun(2))
        with Reading(inflight_log, 1, pending(priority=SUSPECT + 2)), Reading(inflight_log, 2, pending()):
            assert suspects(folder)[1] == Suspect(fingerprint=6), "nobody has seen the process die"
            seen = suspects(folder, is_evidence=True)
            assert seen == {1: Suspect(fingerprint=6, deaths=1), 2: Suspect(fingerprint=6)}, "2 is not on trial"

    @file_bytes(700)
    def test_both_lines_are_in_one_file(self, folder: Path, inflight_log: InflightLog) -> None:
        """A file is deleted alone: the end must not disappear before the beginning."""
        for visit in range(40):
            inflight_log.note(begun(visit))
            with Reading(inflight_log, visit, pending()):
                pass
        assert len(files(folder)) > 5
        for _, path in inflight_files(folder):
            text = path.read_bytes()
            assert text.count(b'"reading"') == text.count(b'"read"')

    def test_an_incomplete_line_suspects_nobody(self, folder: Path, inflight_log: InflightLog) -> None:
        inflight_log.note(begun(1))
        with Reading(inflight_log, 1, pending()):
            pass
        (path,) = [path for _, path in inflight_files(folder)]
        whole = path.read_bytes().rstrip(b"\0")
        begins = whole.index(b"\n") + 1
        for size in range(begins, begins + whole[begins:].index(b"\n")):
            path.write_bytes(whole[:size])
            assert suspects(folder) == {1: None}
