"""Trials of suspects, with small shell scripts in place of the worker processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rove.app.supervisor import Timing
from rove.app.trials import START_EARLY, CrawlWithTrials, Trials
from rove.app.worker import TRY_LATER, WorkerOrder
from rove.app.worker_process import WorkerFailed, WorkerProcess
from rove.crawl.loop import Loader
from rove.crawl.progress import Counters, Progress
from rove.crawl.shutdown import Ending
from rove.errors import FrontierError
from tests.unit.app.test_supervisor import EXHAUSTED, PATIENCE, UNTIL_STOPPED, Seeds, order_of, says, until

pytestmark = pytest.mark.system

DUE = 0.0


class Court:
    """Trials whose worker runs a script, with everything that they have done."""

    def __init__(self, script: Path, timing: Timing) -> None:
        self.script = script
        self.due: list[float | Exception | None] = []
        """What the frontier says, in order; the last answer stays."""
        self.asked = 0
        self.deaths: list[tuple[int, bool]] = []
        self.counters = Counters()
        self.trials = Trials(
            start=self._start,
            reserve=self._reserve,
            on_death=self._on_death,
            count=self._count,
            clock=lambda: 0.0,
            timing=timing,
            poll_seconds=0.01,
        )

    def _start(self) -> WorkerProcess:
        order = msgspec.structs.replace(order_of(0), is_trial=True)
        command = [str(self.script)]
        return WorkerProcess(
            order,
            log_file=self.script.with_name("rove-trial.log"),
            on_news=lambda _: None,
            on_sample=lambda *_: None,
            command=command,
        )

    async def _reserve(self) -> float | None:
        self.asked += 1
        answer = self.due.pop(0) if len(self.due) > 1 else self.due[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _on_death(self, process: int, is_evidence: bool) -> None:
        self.deaths.append((process, is_evidence))

    def _count(self, counters: Counters) -> None:
        self.counters += counters

    @property
    def orders(self) -> list[str]:
        """The orders of all workers so far."""
        started = Path(f"{self.script}.starts")
        return started.read_text().splitlines() if started.exists() else []

    @property
    def starts(self) -> int:
        return len(self.orders)

    @property
    def told(self) -> str:
        """What the workers were told after their order."""
        told = Path(f"{self.script}.told")
        return told.read_text() if told.exists() else ""

    async def run_until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            running = asyncio.create_task(self.trials.run())
            await until(condition)
            self.trials.stop()
            await running


Convene = Callable[..., Court]


@pytest.fixture
def convene(tmp_path: Path) -> Convene:
    """Make trials whose worker reads its order and then runs the lines given."""

    def make(*lines: str, due: list[float | Exception | None], **timing: float) -> Court:
        script = tmp_path / "python"
        script.write_text("\n".join(["#!/bin/sh", "read -r order", 'echo "$order" >>"$0.starts"', *lines, ""]))
        script.chmod(0o755)
        court = Court(script, Timing(**{"first_pause": 0.01, "stop": 5.0, **timing}))
        court.due = due
        return court

    return make


async def test_no_worker_is_started_before_a_suspect_is_due(convene: Convene) -> None:
    court = convene(f"echo '{EXHAUSTED}'", due=[None, 70.0, START_EARLY + 0.1])
    await court.run_until(lambda: court.asked > 5)
    assert court.starts == 0


async def test_a_worker_tries_suspects_until_none_is_due(convene: Convene) -> None:
    court = convene(says(pages=2, in_flight=1, ending="exhausted"), due=[DUE, None])
    await court.run_until(lambda: court.asked > 3)
    assert (court.starts, court.deaths, court.counters.pages, court.counters.in_flight) == (1, [], 2, 0)
    order = msgspec.json.decode(court.orders[0], type=WorkerOrder)
    assert (order.is_trial, order.name) == (True, "trial")


async def test_a_death_is_evidence(convene: Convene) -> None:
    court = convene(says(process=9, pages=1), "kill -9 $$", due=[DUE, DUE, None])
    await court.run_until(lambda: court.asked > 3)
    assert court.deaths == [(9, True), (9, True)]
    assert court.counters.pages == 2


async def test_deaths_slow_down_the_next_trials(convene: Convene) -> None:
    court = convene("exit 1", due=[DUE], first_pause=0.05, longest_pause=60.0)
    await court.run_until(lambda: len(court.deaths) == 3)
    assert court.starts == 3, "the next one would wait for 0.2 s"


async def test_a_worker_that_we_kill_is_no_evidence(convene: Convene) -> None:
    court = convene(says(process=9), "exec sleep 60", due=[DUE, None])
    running = asyncio.create_task(court.trials.run())
    await until(lambda: court.starts == 1)
    court.trials.kill()
    await until(lambda: bool(court.deaths))
    court.trials.stop()
    await running
    assert [is_evidence for _, is_evidence in court.deaths] == [False]


async def test_a_worker_that_does_not_stop_is_no_evidence(convene: Convene) -> None:
    court = convene(says(process=9), "exec sleep 60", due=[DUE], stop=0.05)
    await court.run_until(lambda: court.starts == 1)
    assert court.deaths == [(9, False)]


async def test_a_stop_lets_the_worker_finish(convene: Convene) -> None:
    court = convene(UNTIL_STOPPED, due=[DUE])
    await court.run_until(lambda: court.starts == 1)
    assert court.deaths == []


async def test_no_trial_begins_while_the_crawl_is_paused(convene: Convene) -> None:
    court = convene(f"echo '{EXHAUSTED}'", due=[DUE, None])
    court.trials.set_paused(True)
    running = asyncio.create_task(court.trials.run())
    await asyncio.sleep(0.05)
    assert (court.asked, court.starts) == (0, 0)
    court.trials.set_paused(False)
    await until(lambda: court.starts == 1)
    court.trials.stop()
    await running


async def test_a_worker_is_told_to_pause(convene: Convene) -> None:
    court = convene('while read -r line; do echo "$line" >>"$0.told"; done', due=[DUE])
    running = asyncio.create_task(court.trials.run())
    await until(lambda: court.starts == 1)
    court.trials.set_paused(True)
    court.trials.set_paused(False)
    await until(lambda: court.told == "pause\nunpause\n")
    court.trials.stop()
    await running


async def test_a_frontier_that_fails_is_asked_again(convene: Convene) -> None:
    court = convene(f"echo '{EXHAUSTED}'", due=[FrontierError("away"), DUE, None])
    await court.run_until(lambda: court.starts == 1)


async def test_a_worker_that_cannot_reach_the_database_is_started_again(convene: Convene) -> None:
    court = convene(f"exit {TRY_LATER}", due=[DUE, DUE, None])
    await court.run_until(lambda: court.asked > 3)
    assert court.starts == 2


class FakeCrawl:
    """A crawl that runs until it is stopped."""

    def __init__(self) -> None:
        self.progress = Progress(started=0.0)
        self.counters = Counters()
        self.done: list[object] = []
        self._stopped = asyncio.Event()

    async def run(self, seed_loader: Loader) -> Ending:
        await self._stopped.wait()
        return Ending.EXHAUSTED

    def stop(self, ending: Ending = Ending.STOPPED) -> None:
        self.done.append(ending)
        self._stopped.set()

    def set_paused(self, is_paused: bool) -> None:
        self.done.append(is_paused)

    def accounts(self) -> dict[str, str]:
        return {"crawl": "fake"}

    def kill(self) -> None:
        self.done.append("kill")

    def count(self, counters: Counters) -> None:
        self.counters += counters


async def test_trials_end_with_the_crawl(convene: Convene) -> None:
    court, crawl = convene(UNTIL_STOPPED, due=[DUE]), FakeCrawl()
    both = CrawlWithTrials(crawl, court.trials)
    running = asyncio.create_task(both.run(Seeds(None)))
    await until(lambda: court.starts == 1)
    both.set_paused(True)
    both.stop(Ending.CHANGED)
    async with asyncio.timeout(PATIENCE):
        assert await running is Ending.EXHAUSTED
    assert crawl.done == [True, Ending.CHANGED]
    assert both.progress is crawl.progress


async def test_an_error_that_ends_a_trial_ends_the_crawl(convene: Convene) -> None:
    court, crawl = convene(says(failure="the disk is full", exit_code=1), "exit 1", due=[DUE]), FakeCrawl()
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(WorkerFailed, match="the disk is full"):
            await CrawlWithTrials(crawl, court.trials).run(Seeds(None))
    assert crawl.done == [Ending.STOPPED]
