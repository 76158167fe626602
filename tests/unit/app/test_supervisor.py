"""Several processes under one supervisor; small scripts play the crawling processes."""

from __future__ import annotations

import asyncio
import io
import os
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rove.app import supervisor, worker
from rove.app.supervisor import FIRST_PAUSE, Supervisor, WorkerFailed
from rove.app.worker import NOT_NOW, WorkerReport, WorkOrder
from rove.config import Limits, Settings
from rove.crawl.progress import Progress
from rove.crawl.shutdown import Ending
from rove.datadir import Remote

pytestmark = pytest.mark.system

PATIENCE = 10.0
EXHAUSTED = '{"ending": "exhausted"}'
UNTIL_TOLD = 'cat >/dev/null; echo \'{"ending": "stopped"}\''
"""It crawls until its standard input is closed."""
FIRST_TIME = 'mkdir "$0.life.$number" 2>/dev/null'
"""Whether this place had no process before."""


def order_of(number: int) -> WorkOrder:
    return WorkOrder(
        data_dir="/data",
        remote=Remote(url="postgresql://rove:s3cret@db.test/x", crawl_name="mine"),
        settings=Settings(
            email="me@example.org",
            connect_to=("a.test:80:127.0.0.1:8080",),
            limits=Limits(max_pages=100, max_duration=3.5),
        ),
        run=3,
        number=number,
        concurrency=50 + number,
        seconds_before=12.5,
        started=1234.5,
        log_level="debug",
    )


class Crew:
    """A supervisor with processes that do as a script says, and all that it has said."""

    def __init__(self, script: Path, processes: int, pause: float) -> None:
        self.script = script
        self.said: list[str] = []
        self.news: list[str] = []
        self.deaths: list[int] = []
        self.stops: list[None] = []
        self.supervisor = Supervisor(
            [order_of(number + 1) for number in range(processes)],
            progress=Progress(started=0.0),
            clock=lambda: 0.0,
            on_death=self._bury,
            say=self.said.append,
            on_news=self.news.append,
            on_stop=lambda: self.stops.append(None),
        )
        for member in self.supervisor._members:
            member.pause = pause

    async def _bury(self, process: int) -> None:
        self.deaths.append(process)

    async def run(self, feed: Callable[[], Awaitable[None]] | None = None) -> Ending:
        try:
            async with asyncio.timeout(PATIENCE):
                return await self.supervisor.run(feed or _no_seeds)
        finally:
            await self._bid_farewell()

    async def _bid_farewell(self) -> None:
        """Read what nobody has read: a pipe left open would be held against a later test."""
        for process in [member.process for member in self.supervisor._members]:
            if process is not None and process.stdin is not None and process.stdout is not None:
                process.stdin.close()
                await process.stdout.read()
                await process.wait()

    def wrote(self, name: str) -> bool:
        """Whether a process has left a file of this name."""
        return Path(f"{self.script}.{name}").exists()

    def text(self, name: str) -> str:
        """What a process has written into such a file."""
        return Path(f"{self.script}.{name}").read_text()

    @property
    def progress(self) -> Progress:
        return self.supervisor.progress


async def _no_seeds() -> None:
    pass


async def until(is_so: Callable[[], bool]) -> None:
    """Wait, but not for ever."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to that"
        await asyncio.sleep(0.005)


Hire = Callable[..., Crew]


@pytest.fixture
def hire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hire:
    """Make a crew whose processes read their order and then run the lines given."""

    def make(*lines: str, processes: int = 1, pause: float = 0.01) -> Crew:
        script = tmp_path / "python"
        number = "number=${order#*'\"number\":'}; number=${number%%,*}"
        script.write_text("\n".join(["#!/bin/sh", "read -r order", number, *lines, ""]))
        script.chmod(0o755)
        monkeypatch.setattr(supervisor.sys, "executable", str(script))
        monkeypatch.setattr(supervisor, "MARK_SECONDS", 0.01)
        monkeypatch.setattr(supervisor, "STOP_SECONDS", 5.0)
        return Crew(script, processes, pause)

    return make


def says(**report: Any) -> str:
    """The line of a script that sends a report."""
    return f"echo '{msgspec.json.encode(WorkerReport(**report)).decode()}'"


async def test_a_process_is_given_its_order(hire: Hire) -> None:
    crew = hire(
        'printf "%s\\n" "$*" >"$0.called.$number"',
        'printf "%s\\n" "$order" >"$0.order.$number"',
        says(ending="exhausted"),
        processes=3,
    )
    assert await crew.run() is Ending.EXHAUSTED
    for member in crew.supervisor._members:
        number = member.order.number
        assert msgspec.json.decode(crew.text(f"order.{number}"), type=WorkOrder) == member.order
        assert crew.text(f"called.{number}") == "-P -m rove.app.worker\n"
    assert (crew.said, crew.deaths) == ([], [])


async def test_what_processes_have_done_is_summed_up(hire: Hire) -> None:
    crew = hire(
        says(pages=1, in_flight=50, queued=9, errors={"dns": 90}),
        "case $number in",
        f"1) {says(pages=5, visits=3, requests=8, bytes=100, errors={'dns': 2})} ;;",
        f"2) {says(pages=7, visits=4, requests=9, bytes=50, errors={'dns': 1, 'tls': 4})} ;;",
        "esac",
        f"[ $number = 1 ] && {says(pages=6, visits=3, ending='exhausted', errors={'dns': 3})}",
        f"[ $number = 2 ] && {says(pages=7, visits=4, requests=9, bytes=50, ending='exhausted')}",
        processes=2,
    )
    await crew.run()
    progress = crew.progress
    assert (progress.pages, progress.visits, progress.requests, progress.bytes) == (13, 7, 9, 50)
    assert progress.errors == Counter({"dns": 3}), "each report counts from the beginning"
    assert (progress.in_flight, progress.queued) == (0, 0)


async def test_progress_can_be_seen_on_the_way(hire: Hire) -> None:
    crew = hire(says(pages=20, in_flight=3, queued=4), UNTIL_TOLD, processes=3)
    running = asyncio.create_task(crew.run())
    await until(lambda: crew.progress.pages == 60)
    assert (crew.progress.in_flight, crew.progress.queued) == (9, 12)
    crew.supervisor.stop()
    await running


async def test_one_that_dies_is_started_again(hire: Hire) -> None:
    crew = hire(
        f"if {FIRST_TIME}; then",
        says(process=41, pages=5),
        "kill -9 $$",
        "fi",
        says(process=42, pages=3, ending="exhausted"),
    )
    assert await crew.run() is Ending.EXHAUSTED
    assert crew.deaths == [41], "what it left behind was looked after"
    assert crew.said == ["process 1 died (signal 9); it is started again in 0 s"]
    assert crew.progress.pages == 8, "what the dead one had done still counts"


async def test_what_a_dead_one_was_doing_is_not_under_way_any_more(hire: Hire) -> None:
    crew = hire(
        f"if {FIRST_TIME}; then",
        says(process=41, pages=5, in_flight=30, queued=8, errors={"dns": 2}),
        "exit 1",
        "fi",
        says(process=42, pages=1, in_flight=2, errors={"dns": 1}),
        UNTIL_TOLD,
    )
    running = asyncio.create_task(crew.run())
    await until(lambda: crew.progress.pages == 6)
    assert (crew.progress.in_flight, crew.progress.queued) == (2, 0)
    assert crew.progress.errors == Counter({"dns": 3})
    crew.supervisor.stop()
    await running


async def test_one_that_dies_before_it_says_anything_has_no_number(hire: Hire) -> None:
    crew = hire(f"{FIRST_TIME} && exit 3", says(ending="exhausted"))
    await crew.run()
    assert crew.deaths == [0]
    (text,) = crew.said
    assert "exit code 3; rove-1.log may tell why" in text


async def test_an_end_without_a_word_is_a_death(hire: Hire) -> None:
    """Even with exit code 0."""
    crew = hire(f"if {FIRST_TIME}; then", says(process=5), "exit 0", "fi", f"echo '{EXHAUSTED}'")
    await crew.run()
    assert crew.deaths == [5]


async def test_one_that_does_not_read_its_order_is_a_death(hire: Hire) -> None:
    crew = hire(says(ending="exhausted"))
    text = crew.script.read_text()
    crew.script.write_text(
        text.replace("read -r", 'mkdir "$0.once" 2>/dev/null && exit 1\nread -r')
    )
    assert await crew.run() is Ending.EXHAUSTED
    assert crew.deaths == [0]


async def test_one_that_somebody_stopped_alone_is_started_again(hire: Hire) -> None:
    crew = hire(
        f"if {FIRST_TIME}; then {says(pages=2, ending='stopped')}; exit 0; fi",
        says(pages=3, ending="exhausted"),
    )
    assert await crew.run() is Ending.EXHAUSTED
    assert crew.progress.pages == 5


async def test_the_others_go_on_when_one_dies(hire: Hire) -> None:
    crew = hire(
        f"if [ $number = 2 ] && {FIRST_TIME}; then exit 1; fi",
        says(pages=1, process=10),
        UNTIL_TOLD,
        processes=3,
    )
    running = asyncio.create_task(crew.run())
    await until(lambda: crew.progress.pages == 3)
    crew.supervisor.stop()
    assert await running is Ending.STOPPED
    assert crew.deaths == [0]
    assert [text.split("(")[0] for text in crew.said] == ["process 2 died "]


async def test_the_pauses_grow_up_to_the_longest(
    hire: Hire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "LONGEST_PAUSE", 0.005)
    crew = hire("exit 1", pause=0.001)
    pauses: list[float] = []

    async def note(process: int) -> None:
        pauses.append(crew.supervisor._members[0].pause)
        if len(pauses) == 5:
            crew.supervisor.stop()

    crew.supervisor._on_death = note
    assert await crew.run() is Ending.STOPPED
    assert pauses == pytest.approx([0.001, 0.002, 0.004, 0.005, 0.005])


async def test_after_a_long_life_the_pause_is_short_again(
    hire: Hire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "STEADY_SECONDS", 0.0)
    monkeypatch.setattr(supervisor, "FIRST_PAUSE", 0.01)
    crew = hire(f"{FIRST_TIME} && exit 1", says(ending="exhausted"), pause=60.0)
    assert await crew.run() is Ending.EXHAUSTED


async def test_the_first_pause_is_short(hire: Hire) -> None:
    crew = hire("exit 1")
    assert supervisor._Member(order_of(1)).pause == FIRST_PAUSE == 1.0
    crew.supervisor.stop()
    await crew.run()


async def test_one_that_cannot_begin_yet_is_not_announced(hire: Hire) -> None:
    """It has said itself what it waits for; the pause before it is tried again is the same."""
    crew = hire(
        f"if {FIRST_TIME}; then",
        says(news="the database is away"),
        f"exit {NOT_NOW}",
        "fi",
        says(ending="exhausted"),
    )
    assert await crew.run() is Ending.EXHAUSTED
    assert (crew.said, crew.news) == ([], ["the database is away"])
    assert crew.deaths == [0]


async def test_news_are_passed_on_and_change_no_count(hire: Hire) -> None:
    crew = hire(
        says(process=8, pages=5),
        says(process=8, news="the database is away"),
        says(news="the database is back"),
        "exit 1",
    )
    running = asyncio.create_task(crew.run())
    await until(lambda: bool(crew.deaths))
    crew.supervisor.stop()
    await running
    assert crew.news[:2] == ["the database is away", "the database is back"]
    assert crew.deaths[0] == 8
    assert crew.progress.pages == 5 * len(crew.deaths)


async def test_a_stop_closes_the_input_of_all(hire: Hire) -> None:
    crew = hire(says(pages=1), "cat >/dev/null", 'mkdir "$0.told.$number"', UNTIL_TOLD, processes=3)
    running = asyncio.create_task(crew.run())
    await until(lambda: crew.progress.pages == 3)
    assert not crew.wrote("told.1")
    crew.supervisor.stop()
    assert await running is Ending.STOPPED
    assert all(crew.wrote(f"told.{number}") for number in (1, 2, 3))
    assert (crew.said, crew.deaths) == ([], [])


async def test_a_stop_does_not_wait_for_a_pause_to_end(hire: Hire) -> None:
    crew = hire("exit 1", pause=60.0)
    running = asyncio.create_task(crew.run())
    await until(lambda: bool(crew.said))
    assert crew.said == [
        "process 1 died (exit code 1; rove-1.log may tell why); it is started again in 60 s"
    ]
    crew.supervisor.stop()
    assert await running is Ending.STOPPED
    assert len(crew.said) == 1, "and it is not started again"


async def test_one_that_dies_while_it_is_to_stop_is_not_started_again(hire: Hire) -> None:
    crew = hire(says(process=4, pages=2), "cat >/dev/null", "kill -9 $$")
    running = asyncio.create_task(crew.run())
    await until(lambda: crew.progress.pages == 2)
    crew.supervisor.stop()
    assert await running is Ending.STOPPED
    assert (crew.said, crew.deaths, crew.progress.pages) == ([], [4], 2)


async def test_one_that_does_not_stop_is_killed(
    hire: Hire, monkeypatch: pytest.MonkeyPatch
) -> None:
    crew = hire(says(process=4, pages=2), "exec sleep 60")
    monkeypatch.setattr(supervisor, "STOP_SECONDS", 0.05)
    running = asyncio.create_task(crew.run())
    await until(lambda: crew.progress.pages == 2)
    crew.supervisor.stop()
    assert await running is Ending.STOPPED
    assert crew.deaths == [4]


async def test_all_can_be_killed_at_once(hire: Hire) -> None:
    crew = hire(says(pages=2), "exec sleep 60", processes=2)
    crew.supervisor.kill()  # there is nobody yet
    running = asyncio.create_task(crew.run())
    await until(lambda: crew.progress.pages == 4)
    crew.supervisor.stop()
    crew.supervisor.kill()
    assert await running is Ending.STOPPED
    assert len(crew.deaths) == 2
    crew.supervisor.kill()  # nor any more


async def test_who_is_told_to_stop_before_the_beginning_still_gets_an_order(hire: Hire) -> None:
    crew = hire('[ -n "$order" ] && mkdir "$0.ordered"', UNTIL_TOLD)
    crew.supervisor.stop()
    assert await crew.run() is Ending.STOPPED
    assert crew.wrote("ordered")


@pytest.mark.parametrize(
    ("endings", "expected"),
    [
        (["exhausted", "exhausted"], Ending.EXHAUSTED),
        (["exhausted", "page limit reached"], Ending.MAX_PAGES),
        (["time limit reached", "exhausted"], Ending.MAX_DURATION),
        (["time limit reached", "page limit reached"], Ending.MAX_PAGES),
    ],
)
async def test_the_crawl_ends_as_its_processes_end(
    hire: Hire, endings: list[str], expected: Ending
) -> None:
    first, second = (says(ending=ending) for ending in endings)
    crew = hire(f"if [ $number = 1 ]; then {first}; else {second}; fi", processes=2)
    assert await crew.run() is expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([Ending.CHANGED], Ending.CHANGED),
        ([Ending.CHANGED, Ending.STOPPED], Ending.CHANGED),
        ([Ending.STOPPED, Ending.CHANGED], Ending.STOPPED),
    ],
)
async def test_the_first_reason_to_stop_counts(
    hire: Hire, told: list[Ending], expected: Ending
) -> None:
    crew = hire(UNTIL_TOLD, processes=2)
    for ending in told:
        crew.supervisor.stop(ending)
    assert await crew.run() is expected


async def test_a_failure_ends_the_crawl_with_its_exit_code(hire: Hire) -> None:
    crew = hire(
        "if [ $number = 2 ]; then",
        says(process=9, pages=5, in_flight=3),
        says(failure="the disk is full", exit_code=3),
        "exit 3",
        "fi",
        says(pages=4),
        "cat >/dev/null",
        'mkdir "$0.told.$number"',
        says(pages=4, ending="stopped"),
        processes=2,
    )
    with pytest.raises(WorkerFailed) as caught:
        await crew.run()
    assert (str(caught.value), caught.value.exit_code) == ("the disk is full", 3)
    assert crew.wrote("told.1"), "the other was told to stop in good order"
    assert (crew.progress.pages, crew.progress.in_flight) == (9, 0)
    assert (crew.said, crew.deaths) == ([], [])


@pytest.mark.parametrize(
    "rubbish",
    [
        "nonsense",
        "",
        "[]",
        "17",
        '{"pages": "many"}',
        '{"pages": 5',
        r"\0377\0376",
        r'{"news": "\0377"}',
    ],
)
async def test_rubbish_is_passed_over(hire: Hire, rubbish: str) -> None:
    crew = hire(
        says(process=3, pages=7),
        f"printf '%b\\n' '{rubbish}'",
        f"if {FIRST_TIME}; then exit 1; fi",
        says(pages=1, ending="exhausted"),
    )
    assert await crew.run() is Ending.EXHAUSTED
    assert crew.deaths == [3], "what was said before still counts"
    assert (crew.progress.pages, crew.news) == (8, [])


async def test_rubbish_without_an_end_is_passed_over(hire: Hire) -> None:
    crew = hire(
        "head -c 200000 /dev/zero",
        "echo",
        says(pages=1, ending="exhausted"),
    )
    assert await crew.run() is Ending.EXHAUSTED


async def test_words_of_a_newer_version_are_passed_over(hire: Hire) -> None:
    crew = hire("""echo '{"pages": 3, "mood": "good", "ending": "exhausted"}'""")
    assert await crew.run() is Ending.EXHAUSTED
    assert crew.progress.pages == 3


async def test_what_processes_write_elsewhere_is_not_seen(
    hire: Hire, capfd: pytest.CaptureFixture[str]
) -> None:
    crew = hire("echo Traceback >&2", says(ending="exhausted"))
    await crew.run()
    assert capfd.readouterr() == ("", "")


async def test_the_seeds_are_loaded_meanwhile(hire: Hire) -> None:
    crew = hire(says(pages=1), UNTIL_TOLD)
    fed: list[int] = []

    async def feed() -> None:
        await until(lambda: crew.progress.pages == 1)
        fed.append(crew.progress.pages)
        crew.supervisor.stop()

    assert await crew.run(feed) is Ending.STOPPED
    assert fed == [1]


async def test_seeds_that_cannot_be_loaded_end_the_crawl(hire: Hire) -> None:
    crew = hire(says(pages=1), "cat >/dev/null", 'mkdir "$0.told"', UNTIL_TOLD)

    async def feed() -> None:
        await until(lambda: crew.progress.pages == 1)
        raise OSError("the seeds are gone")

    with pytest.raises(OSError, match="the seeds are gone"):
        await crew.run(feed)
    assert crew.wrote("told"), "the process was told to stop in good order"


async def test_a_stop_is_told_once_to_whoever_waits_for_a_database(hire: Hire) -> None:
    crew = hire(says(pages=1), UNTIL_TOLD)
    running = asyncio.create_task(crew.run())
    await until(lambda: crew.progress.pages == 1)
    assert not crew.stops
    crew.supervisor.stop()
    crew.supervisor.stop()
    await running
    assert len(crew.stops) == 1


async def test_a_stop_does_not_wait_for_the_seeds(hire: Hire) -> None:
    """There may be millions of them; the rest is loaded by the next start."""
    crew = hire(says(pages=1), UNTIL_TOLD)
    running = asyncio.create_task(crew.run(_never_done))
    await until(lambda: crew.progress.pages == 1)
    crew.supervisor.stop()
    async with asyncio.timeout(0.5):
        assert await running is Ending.STOPPED


async def test_a_limit_that_is_reached_does_not_wait_for_the_seeds(hire: Hire) -> None:
    crew = hire(says(ending="page limit reached"))
    async with asyncio.timeout(0.5):
        assert await crew.run(_never_done) is Ending.MAX_PAGES


async def _never_done() -> None:
    await asyncio.Event().wait()


async def test_a_crawl_that_is_cancelled_leaves_no_process_behind(hire: Hire) -> None:
    crew = hire(says(pages=1), "cat >/dev/null", 'mkdir "$0.told"', UNTIL_TOLD)
    running = asyncio.create_task(crew.run())
    await until(lambda: crew.progress.pages == 1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert crew.wrote("told")
    process = crew.supervisor._members[0].process
    assert process is not None and process.returncode == 0


def test_an_order_survives_the_way_to_the_process() -> None:
    for order in (order_of(1), msgspec.structs.replace(order_of(2), remote=None)):
        line = msgspec.json.encode(order)
        assert b"\n" not in line
        assert msgspec.json.decode(line, type=WorkOrder) == order


def test_a_report_survives_the_way_back() -> None:
    report = WorkerReport(
        process=7,
        pages=1,
        visits=2,
        requests=3,
        bytes=1 << 60,
        in_flight=4,
        queued=5,
        trouble="paused: no room",
        errors={"dns": 6, "ä\n": 7},
        news="two\nlines",
        ending=Ending.MAX_PAGES,
        failure="it is “full”",
        exit_code=8,
    )
    line = msgspec.json.encode(report)
    assert b"\n" not in line
    assert msgspec.json.decode(line, type=WorkerReport) == report
    assert all(
        getattr(report, name) != getattr(WorkerReport(), name)
        for name in WorkerReport.__struct_fields__
    )


def test_a_report_says_only_what_there_is_to_say() -> None:
    assert msgspec.json.encode(WorkerReport()) == b"{}"
    assert msgspec.json.encode(WorkerReport(pages=3)) == b'{"pages":3}'


def test_reports_do_not_share_their_errors() -> None:
    one, two = WorkerReport(), WorkerReport()
    one.errors["dns"] = 1
    assert two.errors == {}


@pytest.mark.parametrize("ending", list(Ending))
def test_every_ending_is_understood_at_the_other_end(ending: Ending) -> None:
    line = msgspec.json.encode(WorkerReport(ending=ending))
    assert Ending(msgspec.json.decode(line, type=WorkerReport).ending) is ending


def test_a_report_is_sent_as_one_line_as_long_as_anybody_reads_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader, writer = os.pipe()
    with io.FileIO(reader) as readable, io.FileIO(writer, "w") as writable:
        monkeypatch.setattr(sys, "stdout", writable)
        worker.send(WorkerReport(pages=1))
        worker.send(WorkerReport(news="x"))
        assert readable.read(1000) == b'{"pages":1}\n{"news":"x"}\n'
        readable.close()
        worker.send(WorkerReport(pages=2))  # nobody reads it: no error
        monkeypatch.undo()
