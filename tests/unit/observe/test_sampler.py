"""The sampler: one sample of the machine at a time, none lost while the database is away, and no harm to the crawl."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rove.errors import FrontierError
from rove.model.counts import Counts
from rove.model.samples import Distribution, Sample
from rove.model.urls import UrlState
from rove.observe.machine import Machine
from rove.observe.sampler import BUFFERED, Sampler
from rove.resources.network import NetworkBytes

INTERVAL = 0.02
PATIENCE = 60.0
COUNTS = Counts(
    urls={state: 10 * state for state in UrlState},
    domains={"idle": 1, "waiting": 6, "ready": 3, "leased": 3, "excluded": 0},
    pages=5,
    bytes=0,
)


class Database:
    """A frontier that only takes samples. It may be away, refuse, or have a bug."""

    def __init__(self) -> None:
        self.node = "here"
        self.samples: list[Sample] = []
        self.is_back = asyncio.Event()
        self.is_back.set()
        self.error: Exception | None = None
        self.count_error: Exception | None = None
        self.is_away = False
        self.due: float | None = -2.5
        self.rolled_up: list[int] = []

    async def add_samples(self, samples: Sequence[Sample]) -> None:
        await self.is_back.wait()
        if self.error is not None:
            raise self.error
        self.samples += samples

    async def roll_up_samples(self, now: int) -> bool:
        self.rolled_up.append(now)
        return True

    def troubles(self) -> dict[str, str]:
        return {"database": "it is away"} if self.is_away else {}

    async def counts(self) -> Counts:
        if self.count_error is not None:
            raise self.count_error
        return COUNTS

    async def due_in(self) -> float | None:
        return self.due


@pytest.fixture
def database() -> Database:
    return Database()


def of_process(name: str, **figures: float) -> Sample:
    times = Distribution(count=1, total=0.5, longest=0.5, buckets={13: 1})
    return Sample(
        node="",
        ended=1,
        seconds=10.0,
        figures={"visits": 2, "in_flight": 3, f"cpu.{name}": 1.5, **figures},
        histograms={"claim": times},
    )


def sampler(database: Any, folder: Path, take: Callable[[], list[Sample]] = list, **options: Any) -> Sampler:
    networks = iter([NetworkBytes(100, 10), NetworkBytes(150, 40)])
    machine = Machine(folder, measure_network=lambda: next(networks, None))
    chosen: dict[str, Any] = {"is_loading": lambda: False, "interval": INTERVAL, **options}
    return Sampler(database, machine, take=take, **chosen)


async def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to that"
        await asyncio.sleep(INTERVAL / 4)


async def test_a_sample_is_of_all_processes_the_machine_and_the_crawl(database: Database, tmp_path: Path) -> None:
    now = [1_000.0]
    taken = [of_process("1"), of_process("2")]
    made = sampler(
        database,
        tmp_path,
        take=lambda: taken,
        is_loading=lambda: True,
        clock=lambda: now[0],
        wall_clock=lambda: 1_700_000_000.0,
        interval=1e9,
    )
    async with made.running():
        now[0] += 8.0
    (sample,) = database.samples
    assert (sample.node, sample.ended, sample.seconds) == ("here", 1_700_000_000_000, 8.0)
    assert sample.histograms["claim"].count == 2
    of_the_machine = {"disk.free", "memory.free"}
    assert of_the_machine <= sample.figures.keys()
    assert {name: value for name, value in sample.figures.items() if name not in of_the_machine} == {
        "visits": 4,
        "in_flight": 6,
        "cpu.1": 1.5,
        "cpu.2": 1.5,
        "network.received": 50,
        "network.sent": 30,
        "seeds.loading": 1,
        **{f"urls.{state.name.lower()}": 10 * state for state in UrlState},
        **{f"domains.{state}": count for state, count in COUNTS.domains.items()},
        "oldest_due": 2.5,
        "next_due": 0.0,
        "ceiling.used": 0.75,
    }


async def test_samples_come_regularly_and_the_last_one_at_the_end(database: Database, tmp_path: Path) -> None:
    seen: list[Sample] = []
    made = sampler(database, tmp_path, on_sample=seen.append)
    async with made.running():
        await until(lambda: len(database.samples) >= 3)
    assert database.samples == seen
    assert len(seen) >= 4
    assert database.rolled_up, "old samples are rolled up on the side"
    ended = [sample.ended for sample in seen]
    assert ended == sorted(ended)


async def test_no_sample_is_lost_while_the_database_is_away(database: Database, tmp_path: Path) -> None:
    seen: list[Sample] = []
    async with sampler(database, tmp_path, on_sample=seen.append).running():
        await until(lambda: len(database.samples) >= 1)
        database.is_back.clear()
        database.count_error = FrontierError("the database is away")
        have = len(seen)
        await until(lambda: len(seen) >= have + 5)
        database.is_back.set()
        await until(lambda: len(database.samples) > have + 5)
    assert database.samples == seen


async def test_samples_that_are_refused_are_kept(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Sample] = []
    database.error = FrontierError("the disk is full")
    async with sampler(database, tmp_path, on_sample=seen.append).running():
        await until(lambda: len(seen) >= 3)
        database.error = ValueError("a bug")
        have = len(seen)
        await until(lambda: len(seen) >= have + 3)
        database.error = None
    assert database.samples == seen
    assert "samples could not be written and are kept: the disk is full" in caplog.text


async def test_the_oldest_samples_make_room(database: Database, tmp_path: Path) -> None:
    seen: list[Sample] = []
    database.error = FrontierError("the disk is full")
    made = sampler(database, tmp_path, on_sample=seen.append, interval=1e9)
    async with made.running():
        for _ in range(BUFFERED + 5):
            await made._sample_safely()
        database.error = None
    assert len(seen) == BUFFERED + 6
    assert database.samples == seen[5:], "one more fits in after the others are written"


async def test_a_database_that_stays_away_does_not_hold_up_the_end(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database.is_back.clear()
    async with sampler(database, tmp_path, last_seconds=0.01).running():
        pass
    assert "1 sample could not be written" in caplog.text


async def test_a_bug_in_a_sample_does_not_reach_the_crawl(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    calls = []

    def take() -> list[Sample]:
        calls.append(1)
        if len(calls) == 1:
            raise ZeroDivisionError
        return [of_process("1")]

    async with sampler(database, tmp_path, take=take).running():
        await until(lambda: len(database.samples) >= 1)
    assert "a sample could not be taken; this is a bug" in caplog.text


async def test_a_sample_comes_without_the_counters_if_they_cannot_be_read(database: Database, tmp_path: Path) -> None:
    database.count_error = FrontierError("a table is missing")
    async with sampler(database, tmp_path).running():
        await until(lambda: len(database.samples) >= 1)
        database.count_error = AssertionError("the database is not asked while it is away")
        database.is_away = True
    assert all("disk.free" in sample.figures for sample in database.samples)
    assert not any("urls.pending" in sample.figures for sample in database.samples)


async def test_counters_that_are_slow_to_read_are_read_less_often(database: Database, tmp_path: Path) -> None:
    now, has_counted = [0.0], [False]

    async def counts() -> Counts:
        has_counted[0] = True
        return COUNTS

    def take() -> list[Sample]:
        half = Distribution(count=1, total=0.5, longest=0.5, buckets={13: 1})
        histograms = {"query.count_ready": half} if has_counted[0] else {}
        has_counted[0] = False
        return [Sample(node="", ended=1, seconds=10.0, histograms=histograms)]

    database.counts = counts  # type: ignore[method-assign]
    made = sampler(database, tmp_path, take, clock=lambda: now[0], interval=10.0)
    async with made.running():
        for _ in range(12):
            now[0] += 10.0
            await made._sample_safely()
    counted = [number for number, sample in enumerate(database.samples) if "urls.pending" in sample.figures]
    assert counted == [0, 5, 10], "half a second in fifty"
