"""The supervisor, with small shell scripts in place of the crawling processes."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rove.app.process_samples import ProcessSamples
from rove.app.supervisor import Supervisor, Timing
from rove.app.worker import TRY_LATER, WorkerOrder, WorkerReport
from rove.app.worker_process import WorkerFailed
from rove.config import Limits, Settings
from rove.crawl.limits import RemainingLimits
from rove.crawl.progress import Counters, Progress
from rove.crawl.shutdown import Ending
from rove.datadir import Remote
from rove.model.samples import Distribution, Sample, merged
from rove.policy.concurrency import fixed
from rove.policy.outage import OutageRules

pytestmark = pytest.mark.system

PATIENCE = 10.0
EXHAUSTED = '{"ending": "exhausted"}'
UNTIL_STOPPED = 'cat >/dev/null; echo \'{"ending": "stopped"}\''
"""Crawls until its standard input is closed."""
FIRST_TIME = 'mkdir "$0.life.$number" 2>/dev/null'
"""Succeeds for the first process that gets this order, and fails for later ones."""


def order_of(number: int) -> WorkerOrder:
    return WorkerOrder(
        data_dir=b"/data",
        remote=Remote(url="postgresql://rove:s3cret@db.test/x", crawl_name="mine"),
        settings=Settings(
            email="me@crawler.test",
            connect_to=("a.test:80:127.0.0.1:8080",),
            limits=Limits(max_pages=100, max_duration=3.5),
        ),
        run=3,
        number=number,
        bounds=fixed(50 + number),
        processes=3,
        seconds_before=12.5,
        started=1234.5,
        log_level="debug",
        outage_rules=OutageRules(silence=3.0),
        backoffs_end=1300.5,
    )


class Team:
    """A supervisor whose processes run a script, with everything that it has said."""

    def __init__(
        self, script: Path, processes: int, timing: Timing, clock: Callable[[], float], max_duration: float | None
    ) -> None:
        self.script = script
        self.has_suspect = False
        self.said: list[str] = []
        self.news: list[str] = []
        self.deaths: list[int] = []
        self.stops = 0
        self.oom_kills = 7
        self.oom_kills_per_worker = 0
        self.orders = [order_of(number + 1) for number in range(processes)]
        self.samples = ProcessSamples()
        self.supervisor = Supervisor(
            self.orders,
            progress=Progress(started=0.0),
            clock=clock,
            remaining_limits=RemainingLimits(
                limits=Limits(max_duration=max_duration),
                seconds_before=0.0,
                started=time.monotonic(),
                clock=time.monotonic,
            ),
            on_death=self._on_death,
            on_stop=self._on_stop,
            say=self.said.append,
            on_sample=self.samples.put,
            on_news=self.news.append,
            log_of=lambda name: script.with_name(f"rove-{name}.log"),
            count_oom_kills=self._count_oom_kills,
            command=[str(script), "-m", "rove.app.worker"],
            timing=timing,
        )

    async def _on_death(self, process: int) -> bool:
        self.deaths.append(process)
        return self.has_suspect

    def _count_oom_kills(self) -> list[int]:
        """The counters of the machine and of a control group; only the second one changes."""
        self.oom_kills += self.oom_kills_per_worker
        return [100, self.oom_kills]

    def _on_stop(self) -> None:
        self.stops += 1

    async def run(self, load: Callable[[], Awaitable[None]] | None = None) -> Ending:
        async with asyncio.timeout(PATIENCE):
            return await self.supervisor.run(Seeds(load))

    def wrote(self, name: str) -> bool:
        """Whether a process has made a file of this name."""
        return Path(f"{self.script}.{name}").exists()

    def text(self, name: str) -> str:
        """What a process has written to that file."""
        return Path(f"{self.script}.{name}").read_text()

    @property
    def progress(self) -> Progress:
        return self.supervisor.progress


class Seeds:
    """A loader that calls a function of the test."""

    def __init__(self, load: Callable[[], Awaitable[None]] | None) -> None:
        self._load = load

    async def run(self, on_added: Callable[[], None]) -> None:
        if self._load is not None:
            await self._load()


async def until(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "the condition never held"
        await asyncio.sleep(0.005)


Hire = Callable[..., Team]


@pytest.fixture
def hire(tmp_path: Path) -> Hire:
    """Make a team whose processes read their order and then run the lines given."""

    def make(
        *lines: str,
        processes: int = 1,
        pause: float = 0.01,
        clock: Callable[[], float] = lambda: 0.0,
        max_duration: float | None = None,
        **timing: float,
    ) -> Team:
        script = tmp_path / "python"
        number = "number=${order#*'\"number\":'}; number=${number%%,*}"
        script.write_text("\n".join(["#!/bin/sh", "read -r order", number, *lines, ""]))
        script.chmod(0o755)
        waits = {"first_pause": pause, "mark": 0.01, "stop": 5.0, **timing}
        return Team(script, processes, Timing(**waits), clock, max_duration)

    return make


def says(**report: Any) -> str:
    """Return the line of a script that sends a report."""
    names = [name for name in report if name in Counters.__struct_fields__]
    counters = Counters(**{name: report.pop(name) for name in names})
    return f"echo '{msgspec.json.encode(WorkerReport(counters=counters, **report)).decode()}'"


async def test_each_worker_gets_its_order(hire: Hire) -> None:
    team = hire(
        'printf "%s\\n" "$*" >"$0.called.$number"',
        'printf "%s\\n" "$order" >"$0.order.$number"',
        says(ending="exhausted"),
        processes=3,
    )
    assert await team.run() is Ending.EXHAUSTED
    for order in team.orders:
        written = team.text(f"order.{order.number}")
        assert msgspec.json.decode(written, type=WorkerOrder) == order
        assert team.text(f"called.{order.number}") == "-m rove.app.worker\n"
    assert (team.said, team.deaths) == ([], [])


async def test_the_counters_of_all_workers_are_added_up(hire: Hire) -> None:
    team = hire(
        says(pages=1, in_flight=50, queued=9, request_counters={"dns": 90}),
        "case $number in",
        f"1) {says(pages=5, visits=3, bytes=100, request_counters={'dns': 2})} ;;",
        f"2) {says(pages=7, visits=4, bytes=50, request_counters={'dns': 1, 'tls': 4})} ;;",
        "esac",
        f"[ $number = 1 ] && {says(pages=6, visits=3, ending='exhausted', request_counters={'dns': 3})}",
        f"[ $number = 2 ] && {says(pages=7, visits=4, bytes=50, ending='exhausted')}",
        processes=2,
    )
    await team.run()
    progress = team.progress
    assert (progress.pages, progress.visits, progress.bytes) == (13, 7, 50)
    assert progress.request_counters == Counter({"dns": 3}), "each report counts from the beginning"
    assert (progress.in_flight, progress.queued) == (0, 0)


async def test_progress_is_updated_while_workers_run(hire: Hire) -> None:
    team = hire(says(pages=20, in_flight=3, queued=4), UNTIL_STOPPED, processes=3)
    running = asyncio.create_task(team.run())
    await until(lambda: team.progress.pages == 60)
    assert (team.progress.in_flight, team.progress.queued) == (9, 12)
    team.supervisor.stop()
    await running


async def test_a_dead_worker_is_restarted(hire: Hire) -> None:
    team = hire(
        f"if {FIRST_TIME}; then",
        says(process=41, pages=5),
        "kill -9 $$",
        "fi",
        says(process=42, pages=3, ending="exhausted"),
    )
    assert await team.run() is Ending.EXHAUSTED
    assert team.deaths == [41], "on_death gets its process number"
    why = "killed by SIGKILL; not by the kernel's OOM killer, so somebody sent the signal"
    assert team.said == [f"process 1 died ({why}); restarting it in 0 s"]
    assert team.progress.pages == 8, "the pages of the dead worker still count"


async def test_nothing_of_a_dead_worker_is_in_flight(hire: Hire) -> None:
    team = hire(
        f"if {FIRST_TIME}; then",
        says(process=41, pages=5, in_flight=30, queued=8, request_counters={"dns": 2}),
        "exit 1",
        "fi",
        says(process=42, pages=1, in_flight=2, request_counters={"dns": 1}),
        UNTIL_STOPPED,
    )
    running = asyncio.create_task(team.run())
    await until(lambda: team.progress.pages == 6)
    assert (team.progress.in_flight, team.progress.queued) == (2, 0)
    assert team.progress.request_counters == Counter({"dns": 3})
    team.supervisor.stop()
    await running


async def test_a_worker_that_dies_before_its_first_report_has_no_number(hire: Hire) -> None:
    team = hire(f"{FIRST_TIME} && exit 3", says(ending="exhausted"))
    await team.run()
    assert team.deaths == [0]
    (text,) = team.said
    assert "exit code 3; see rove-1.log" in text


async def test_exiting_without_a_last_report_is_a_death(hire: Hire) -> None:
    """Even with exit code 0."""
    team = hire(f"if {FIRST_TIME}; then", says(process=5), "exit 0", "fi", f"echo '{EXHAUSTED}'")
    await team.run()
    assert team.deaths == [5]


async def test_exiting_before_reading_the_order_is_a_death(hire: Hire) -> None:
    team = hire(says(ending="exhausted"))
    text = team.script.read_text()
    team.script.write_text(text.replace("read -r", 'mkdir "$0.once" 2>/dev/null && exit 1\nread -r'))
    assert await team.run() is Ending.EXHAUSTED
    assert team.deaths == [0]


async def test_a_worker_that_somebody_stopped_is_restarted(hire: Hire) -> None:
    team = hire(
        f"if {FIRST_TIME}; then {says(pages=2, ending='stopped')}; exit 0; fi", says(pages=3, ending="exhausted")
    )
    assert await team.run() is Ending.EXHAUSTED
    assert team.progress.pages == 5


async def test_the_other_workers_continue_when_one_dies(hire: Hire) -> None:
    team = hire(
        f"if [ $number = 2 ] && {FIRST_TIME}; then exit 1; fi", says(pages=1, process=10), UNTIL_STOPPED, processes=3
    )
    running = asyncio.create_task(team.run())
    await until(lambda: team.progress.pages == 3)
    team.supervisor.stop()
    assert await running is Ending.STOPPED
    assert team.deaths == [0]
    assert [text.split("(")[0] for text in team.said] == ["process 2 died "]


async def test_the_pauses_double_up_to_the_longest(hire: Hire) -> None:
    team = hire("exit 1", pause=0.6, longest_pause=1.6)
    running = asyncio.create_task(team.run())
    await until(lambda: len(team.said) == 4)
    team.supervisor.stop()
    assert await running is Ending.STOPPED
    pauses = [text.split(" in ")[1] for text in team.said]
    assert pauses == ["1 s", "1 s", "2 s", "2 s"], "0.6, 1.2, 1.6 and 1.6, rounded"


async def test_after_a_long_life_the_pause_is_short_again(hire: Hire) -> None:
    hours = itertools.count(step=3600.0)
    team = hire("exit 1", pause=0.001, longest_pause=60.0, clock=lambda: next(hours))
    running = asyncio.create_task(team.run())
    # Without the reset the pauses would add up to a minute.
    await until(lambda: len(team.said) == 17)
    team.supervisor.stop()
    assert await running is Ending.STOPPED


async def test_a_death_with_a_suspect_does_not_slow_down_the_restarts(hire: Hire) -> None:
    team = hire("exit 1", pause=0.001, longest_pause=60.0)
    team.has_suspect = True
    running = asyncio.create_task(team.run())
    # Without the suspects the pauses would add up to a minute.
    await until(lambda: len(team.said) == 17)
    team.supervisor.stop()
    assert await running is Ending.STOPPED


@pytest.mark.parametrize(
    ("last", "lived", "has_suspect", "expected"),
    [(0, 5, False, 1), (1, 5, False, 2), (40, 5, False, 60), (60, 5, False, 60), (60, 301, False, 1), (60, 5, True, 1)],
)
def test_the_pause_before_a_restart(last: float, lived: float, has_suspect: bool, expected: float) -> None:
    assert Timing().pause_after(last, lived=lived, has_suspect=has_suspect) == expected


async def test_the_time_limit_holds_while_a_worker_waits_to_be_restarted(hire: Hire) -> None:
    team = hire("exit 1", pause=60.0, max_duration=0.3)
    assert await team.run() is Ending.MAX_DURATION
    assert len(team.said) == 1


async def test_what_another_process_has_done_counts(hire: Hire) -> None:
    team = hire(says(pages=3, ending="exhausted"))
    team.supervisor.count(Counters(pages=4))
    await team.run()
    assert team.progress.pages == 7


async def test_a_worker_that_exits_to_try_later_is_not_reported_as_dead(hire: Hire) -> None:
    """Its news has said why already."""
    team = hire(
        f"if {FIRST_TIME}; then", says(news="the database is away"), f"exit {TRY_LATER}", "fi", says(ending="exhausted")
    )
    assert await team.run() is Ending.EXHAUSTED
    assert (team.said, team.news) == ([], ["the database is away"])
    assert team.deaths == [0]


async def test_news_is_passed_on_and_changes_no_counter(hire: Hire) -> None:
    team = hire(
        says(process=8, pages=5),
        says(process=8, news="the database is away"),
        says(news="the database is back"),
        "exit 1",
    )
    running = asyncio.create_task(team.run())
    await until(lambda: bool(team.deaths))
    team.supervisor.stop()
    await running
    assert team.news[:2] == ["the database is away", "the database is back"]
    assert team.deaths[0] == 8
    assert team.progress.pages == 5 * len(team.deaths)


async def test_samples_are_collected_by_worker(hire: Hire) -> None:
    claim = Distribution(count=1, total=0.5, longest=0.5, buckets={13: 1})
    samples = [
        Sample(node="", ended=ended, seconds=2.0, figures={"visits": 3, "rss.1": ended}, histograms={"claim": claim})
        for ended in (1_000, 3_000)
    ]
    team = hire(*(says(sample=sample) for sample in samples), says(ending="exhausted"))
    await team.run()
    (sample,) = team.samples.take()
    assert (sample.ended, sample.seconds, sample.figures) == (3_000, 4.0, {"visits": 6, "rss.1": 3_000})
    assert sample.histograms == {"claim": merged([claim, claim])}
    assert team.samples.take() == []


async def test_a_stop_closes_the_standard_input_of_all_workers(hire: Hire) -> None:
    team = hire(says(pages=1), "cat >/dev/null", 'mkdir "$0.told.$number"', UNTIL_STOPPED, processes=3)
    running = asyncio.create_task(team.run())
    await until(lambda: team.progress.pages == 3)
    assert not team.wrote("told.1")
    team.supervisor.stop()
    assert await running is Ending.STOPPED
    assert all(team.wrote(f"told.{number}") for number in (1, 2, 3))
    assert (team.said, team.deaths) == ([], [])


async def test_a_stop_does_not_wait_for_a_pause_to_end(hire: Hire) -> None:
    team = hire("exit 1", pause=60.0)
    running = asyncio.create_task(team.run())
    await until(lambda: bool(team.said))
    assert team.said == ["process 1 died (exit code 1; see rove-1.log); restarting it in 60 s"]
    team.supervisor.stop()
    assert await running is Ending.STOPPED
    assert len(team.said) == 1, "it is not restarted"


async def test_workers_are_told_to_pause_and_to_continue(hire: Hire) -> None:
    team = hire(says(pages=1), 'while read -r line; do echo "$line" >>"$0.told.$number"; done', processes=2)
    running = asyncio.create_task(team.run())
    await until(lambda: team.progress.pages == 2)
    team.supervisor.set_paused(True)
    team.supervisor.set_paused(False)
    told = ["told.1", "told.2"]
    await until(lambda: all(team.wrote(name) and team.text(name) == "pause\nunpause\n" for name in told))
    team.supervisor.stop()
    await running


async def test_a_worker_that_starts_while_the_crawl_is_paused_knows_it_from_its_order(hire: Hire) -> None:
    team = hire('printf "%s\\n" "$order" >"$0.order"', says(pages=1), "read -r line || exit 0", "kill -9 $$")
    team.supervisor.set_paused(True)
    running = asyncio.create_task(team.run())
    await until(lambda: team.progress.pages == 1)
    assert msgspec.json.decode(team.text("order"), type=WorkerOrder).is_paused
    team.supervisor.set_paused(False)  # the script takes any line for its end
    await until(lambda: team.progress.pages == 2)
    assert not msgspec.json.decode(team.text("order"), type=WorkerOrder).is_paused, "the next worker need not pause"
    team.supervisor.stop()
    await running


async def test_a_worker_that_dies_while_stopping_is_not_restarted(hire: Hire) -> None:
    team = hire(says(process=4, pages=2), "cat >/dev/null", "kill -9 $$")
    running = asyncio.create_task(team.run())
    await until(lambda: team.progress.pages == 2)
    team.supervisor.stop()
    assert await running is Ending.STOPPED
    assert (team.said, team.deaths, team.progress.pages) == ([], [4], 2)


async def test_a_worker_that_does_not_stop_is_killed(hire: Hire) -> None:
    team = hire(says(process=4, pages=2), "exec sleep 60", stop=0.05)
    running = asyncio.create_task(team.run())
    await until(lambda: team.progress.pages == 2)
    team.supervisor.stop()
    assert await running is Ending.STOPPED
    assert team.deaths == [4]


async def test_all_workers_can_be_killed(hire: Hire) -> None:
    team = hire(says(pages=2), "exec sleep 60", processes=2)
    team.supervisor.kill()  # before any worker was started
    running = asyncio.create_task(team.run())
    await until(lambda: team.progress.pages == 4)
    team.supervisor.stop()
    team.supervisor.kill()
    assert await running is Ending.STOPPED
    assert len(team.deaths) == 2
    team.supervisor.kill()  # after all have ended


async def test_a_worker_gets_its_order_even_if_the_crawl_is_stopping_already(hire: Hire) -> None:
    team = hire('[ -n "$order" ] && mkdir "$0.ordered"', UNTIL_STOPPED)
    team.supervisor.stop()
    assert await team.run() is Ending.STOPPED
    assert team.wrote("ordered")


@pytest.mark.parametrize(
    ("endings", "expected"),
    [
        (["exhausted", "exhausted"], Ending.EXHAUSTED),
        (["exhausted", "page limit reached"], Ending.MAX_PAGES),
        (["time limit reached", "exhausted"], Ending.MAX_DURATION),
        (["time limit reached", "page limit reached"], Ending.MAX_PAGES),
    ],
)
async def test_the_ending_follows_from_those_of_the_workers(hire: Hire, endings: list[str], expected: Ending) -> None:
    first, second = (says(ending=ending) for ending in endings)
    team = hire(f"if [ $number = 1 ]; then {first}; else {second}; fi", processes=2)
    assert await team.run() is expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([Ending.CHANGED], Ending.CHANGED),
        ([Ending.CHANGED, Ending.STOPPED], Ending.CHANGED),
        ([Ending.STOPPED, Ending.CHANGED], Ending.STOPPED),
    ],
)
async def test_the_first_reason_to_stop_counts(hire: Hire, told: list[Ending], expected: Ending) -> None:
    team = hire(UNTIL_STOPPED, processes=2)
    for ending in told:
        team.supervisor.stop(ending)
    assert await team.run() is expected


async def test_a_failure_ends_the_crawl_with_its_exit_code(hire: Hire) -> None:
    team = hire(
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
        await team.run()
    assert (str(caught.value), caught.value.exit_code) == ("the disk is full", 3)
    assert team.wrote("told.1"), "the other worker shuts down"
    assert (team.progress.pages, team.progress.in_flight) == (9, 0)
    assert (team.said, team.deaths) == ([], [])


@pytest.mark.parametrize(
    "rubbish",
    [
        "nonsense",
        "",
        "[]",
        "17",
        '{"counters": {"pages": "many"}}',
        '{"counters": {"request_counters": {"dns": "many"}}}',
        '{"counters": {"pages": 5',
        r"\0377\0376",
        r'{"news": "\0377"}',
    ],
)
async def test_lines_that_are_not_reports_are_ignored(hire: Hire, rubbish: str) -> None:
    team = hire(
        says(process=3, pages=7),
        f"printf '%b\\n' '{rubbish}'",
        f"if {FIRST_TIME}; then exit 1; fi",
        says(pages=1, ending="exhausted"),
    )
    assert await team.run() is Ending.EXHAUSTED
    assert team.deaths == [3], "the last good report counts"
    assert (team.progress.pages, team.news) == (8, [])


async def test_a_line_that_is_too_long_is_ignored(hire: Hire) -> None:
    team = hire("head -c 2000000 /dev/zero", "echo", says(pages=1, ending="exhausted"))
    assert await team.run() is Ending.EXHAUSTED


async def test_unknown_fields_are_ignored(hire: Hire) -> None:
    team = hire("""echo '{"counters": {"pages": 3}, "mood": "good", "ending": "exhausted"}'""")
    assert await team.run() is Ending.EXHAUSTED
    assert team.progress.pages == 3


async def test_the_standard_error_of_workers_is_not_shown(hire: Hire, capfd: pytest.CaptureFixture[str]) -> None:
    team = hire("echo Traceback >&2", says(ending="exhausted"))
    await team.run()
    assert capfd.readouterr() == ("", "")


async def test_seeds_are_loaded_while_workers_run(hire: Hire) -> None:
    team = hire(says(pages=1), UNTIL_STOPPED)
    fed: list[int] = []

    async def load() -> None:
        await until(lambda: team.progress.pages == 1)
        fed.append(team.progress.pages)
        team.supervisor.stop()

    assert await team.run(load) is Ending.STOPPED
    assert fed == [1]


async def test_seeds_that_cannot_be_loaded_end_the_crawl(hire: Hire) -> None:
    team = hire(says(pages=1), "cat >/dev/null", 'mkdir "$0.told"', UNTIL_STOPPED)

    async def load() -> None:
        await until(lambda: team.progress.pages == 1)
        raise OSError("the seeds are gone")

    with pytest.raises(OSError, match="the seeds are gone"):
        await team.run(load)
    assert team.wrote("told"), "the worker shuts down"


async def test_on_stop_is_called_once(hire: Hire) -> None:
    team = hire(says(pages=1), UNTIL_STOPPED)
    running = asyncio.create_task(team.run())
    await until(lambda: team.progress.pages == 1)
    assert team.stops == 0
    team.supervisor.stop()
    team.supervisor.stop()
    await running
    assert team.stops == 1


async def test_a_stop_does_not_wait_for_the_seeds(hire: Hire) -> None:
    """There may be millions of them. The next start loads the rest."""
    team = hire(says(pages=1), UNTIL_STOPPED)
    running = asyncio.create_task(team.run(_never_done))
    await until(lambda: team.progress.pages == 1)
    team.supervisor.stop()
    async with asyncio.timeout(0.5):
        assert await running is Ending.STOPPED


async def test_a_limit_that_is_reached_does_not_wait_for_the_seeds(hire: Hire) -> None:
    team = hire(says(ending="page limit reached"))
    async with asyncio.timeout(0.5):
        assert await team.run(_never_done) is Ending.MAX_PAGES


async def _never_done() -> None:
    await asyncio.Event().wait()


async def test_a_crawl_that_is_cancelled_leaves_no_process_behind(hire: Hire) -> None:
    team = hire(says(pages=1), 'echo $$ >"$0.pid"', "cat >/dev/null", 'mkdir "$0.told"')
    running = asyncio.create_task(team.run())
    await until(lambda: team.progress.pages == 1 and team.wrote("pid"))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert team.wrote("told")
    with pytest.raises(ProcessLookupError):
        os.kill(int(team.text("pid")), 0)


async def test_a_worker_that_is_gone_before_its_order_is_sent_is_a_death(hire: Hire) -> None:
    team = hire(says(ending="exhausted"))
    text = team.script.read_text()
    team.script.write_text(text.replace("read -r", 'mkdir "$0.once" 2>/dev/null && exit 1\nread -r'))

    async def hold_up() -> None:
        """Keep the event loop busy, so that the worker exits before the supervisor writes."""
        while not team.deaths:
            time.sleep(0.05)  # noqa: ASYNC251 - blocking is the purpose
            await asyncio.sleep(0)

    holding = asyncio.create_task(hold_up())
    assert await team.run() is Ending.EXHAUSTED
    await holding
    assert team.deaths == [0]


async def test_a_worker_killed_for_lack_of_memory(hire: Hire) -> None:
    team = hire(
        f"if {FIRST_TIME}; then", says(process=41, resident=900 << 20), "kill -9 $$", "fi", says(ending="exhausted")
    )
    team.oom_kills_per_worker = 1
    await team.run()
    (text,) = team.said
    assert "(killed by SIGKILL with 900.0 MiB of memory; the kernel ran out of memory (OOM killer): lower" in text


async def test_what_a_worker_writes_to_standard_error_is_in_its_log(hire: Hire) -> None:
    team = hire(
        f"if {FIRST_TIME}; then", "echo 'a library complains' >&2", "kill -SEGV $$", "fi", f"echo '{EXHAUSTED}'"
    )
    log_file = team.script.with_name("rove-1.log")
    log_file.write_text("earlier lines\n")
    await team.run()
    assert log_file.read_text() == "earlier lines\na library complains\n"
    assert team.said == ["process 1 died (killed by SIGSEGV; see rove-1.log); restarting it in 0 s"]


async def test_a_log_that_cannot_be_opened_does_not_stop_a_worker(hire: Hire) -> None:
    team = hire("echo lost >&2", says(pages=2, ending="exhausted"))
    team.script.with_name("rove-1.log").mkdir()
    assert await team.run() is Ending.EXHAUSTED
    assert team.progress.pages == 2
