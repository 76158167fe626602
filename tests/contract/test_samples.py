"""The history: samples are appended, read in any step, and rolled up, on both databases."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import pytest

from rove.frontier.contract import Frontier, FrontierReader
from rove.frontier.postgres.frontier import PostgresFrontier
from rove.frontier.records import Node, Policy
from rove.model.samples import Distribution, Sample
from tests.contract.harness import BUDGET, DELAY, Harness, PostgresHarness

NOON = 1_700_000_000_000 - 1_700_000_000_000 % 600_000
"""A multiple of all steps."""
DAY = 86_400_000
ELSEWHERE = Node(key="l", host="i", path="/q")


def sample(ended: int, **figures: float) -> Sample:
    claim = Distribution(count=2, total=0.75, longest=0.5, buckets={12: 1, 13: 1})
    sizes = Distribution(count=1, total=900.0, longest=900.0, buckets={4: 1}, first=64.0)
    return Sample(
        node="",
        ended=ended,
        seconds=10.0,
        figures={"visits": 3, "in_flight": 2.5, **{name.replace("__", "."): value for name, value in figures.items()}},
        histograms={"claim": claim, "page_size": sizes},
    )


def every_ten_seconds(number: int, *, first: int = NOON) -> list[Sample]:
    return [sample(first + 10_000 * i) for i in range(1, number + 1)]


async def read(reader: FrontierReader, **which: float | str) -> list[list[Sample]]:
    return [samples async for samples in reader.samples(**which)]  # type: ignore[arg-type]


async def rolled_up(frontier: Frontier, now: int) -> int:
    """Roll up until nothing is left to do; return the number of steps."""
    for steps in count():
        if not await frontier.roll_up_samples(now):
            return steps
    raise AssertionError


async def stored(harness: Harness) -> dict[int, int]:
    return dict(await harness.statement("SELECT step, count(*) FROM sample GROUP BY step"))


async def test_a_sample_comes_back_as_it_was(harness: Harness) -> None:
    frontier = await harness.open()
    assert await harness.reader().latest_samples() == []
    assert await read(harness.reader()) == []
    given = sample(NOON + 10_123, disk__free=79_207_903_232, errors__page__dns=4, cpu__1=0.123456)
    await frontier.add_samples([given])
    ((got,),) = await read(harness.reader())
    assert [got] == await harness.reader().latest_samples()
    assert got.node == frontier.node != ""
    assert (got.ended, got.seconds, got.histograms) == (given.ended, given.seconds, given.histograms)
    assert got.figures == {**given.figures, "cpu.1": 0.1235, "disk.free": 79_210_000_000}, "gauges keep four digits"


async def test_the_same_sample_may_be_added_twice(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add_samples([])
    await frontier.add_samples(every_ten_seconds(2))
    await frontier.add_samples(every_ten_seconds(3))
    assert [got.ended for (got,) in await read(harness.reader())] == [NOON + 10_000 * i for i in (1, 2, 3)]


async def test_a_range_of_time_is_read(harness: Harness) -> None:
    harness.slice = 4
    frontier = await harness.open()
    await frontier.add_samples(every_ten_seconds(30))
    since, until = NOON / 1000 + 50, NOON / 1000 + 90
    ended = [got.ended for (got,) in await read(harness.reader(), since=since, until=until)]
    assert ended == [NOON + seconds * 1000 for seconds in (60, 70, 80, 90)], "after `since` and until `until`"


async def test_samples_are_combined_to_the_step_that_is_asked_for(harness: Harness) -> None:
    harness.slice = 4
    frontier = await harness.open()
    await frontier.add_samples(every_ten_seconds(15))
    minutes = [got for (got,) in await read(harness.reader(), step=60)]
    assert [(got.ended - NOON, got.seconds, got.figures["visits"]) for got in minutes] == [
        (60_000, 60.0, 18),
        (120_000, 60.0, 18),
        (150_000, 30.0, 9),
    ]
    assert minutes[0].figures["in_flight"] == 2.5
    assert minutes[0].histograms["claim"].count == 12


async def test_old_samples_are_rolled_up_without_loss(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add_samples(every_ten_seconds(200))
    before = await read(harness.reader(), step=600)
    now = NOON + 2_000_000
    assert await rolled_up(frontier, now) == 0, "they are young"
    assert await rolled_up(frontier, NOON + 2 * DAY + 90_000) == 1, "a minute, as soon as all of it is two days old"
    assert await stored(harness) == {10: 194, 60: 1}
    assert await rolled_up(frontier, NOON + 14 * DAY) == 33
    assert await stored(harness) == {60: 34}
    assert await rolled_up(frontier, NOON + 14 * DAY + 700_000) == 1
    assert await stored(harness) == {60: 24, 600: 1}
    assert await read(harness.reader(), step=600) == before
    assert await rolled_up(frontier, NOON + 1_000 * DAY) == 3
    assert await stored(harness) == {600: 4}
    assert await read(harness.reader(), step=600) == before
    assert [got.seconds for (got,) in await read(harness.reader())] == [600, 600, 600, 200], "as they are stored"


async def test_new_samples_beside_old_ones(harness: Harness) -> None:
    frontier = await harness.open()
    await frontier.add_samples(every_ten_seconds(6))
    await rolled_up(frontier, NOON + 3 * DAY)
    await frontier.add_samples(every_ten_seconds(6, first=NOON + 3 * DAY))
    assert await rolled_up(frontier, NOON + 3 * DAY + 60_000) == 0
    hours = await read(harness.reader(), step=3600)
    assert [(got.ended, got.figures["visits"]) for (got,) in hours] == [
        (NOON + 60_000, 18),
        (NOON + 3 * DAY + 60_000, 18),
    ]


async def two_machines(harness: PostgresHarness) -> Sequence[Frontier]:
    """Return frontiers of two machines with two minutes of samples each."""
    first, database = await harness.open(), harness.database
    machine = await database.value("this_machine", key="l", host=ELSEWHERE.host, path=ELSEWHERE.path)
    second = PostgresFrontier(database, Policy(delay=DELAY, budget=BUDGET), machine, node=ELSEWHERE)
    await first.add_samples(every_ten_seconds(12))
    await second.add_samples(every_ten_seconds(12, first=NOON + 1_500))
    return first, second


@pytest.mark.system
async def test_several_machines(postgres: PostgresHarness) -> None:
    first, second = await two_machines(postgres)
    reader = postgres.reader()
    together = await read(reader)
    assert [len(samples) for samples in together] == [1, *[2] * 11, 1], "the second one is a little later"
    assert {got.node for got in together[1]} == {first.node, second.node}
    alone = await read(reader, node=second.node)
    assert [got.ended for (got,) in alone] == [NOON + 1_500 + 10_000 * i for i in range(1, 13)]
    latest = {got.node: got.ended for got in await reader.latest_samples()}
    assert latest == {first.node: NOON + 120_000, second.node: NOON + 121_500}


@pytest.mark.system
async def test_one_process_rolls_up_for_all_machines(postgres: PostgresHarness) -> None:
    first, second = await two_machines(postgres)
    before = await read(postgres.reader(), step=60, node=second.node)
    assert await rolled_up(first, NOON + 3 * DAY) == 3
    assert await rolled_up(second, NOON + 3 * DAY) == 0
    assert await stored(postgres) == {60: 5}
    assert await read(postgres.reader(), step=60, node=second.node) == before


@pytest.mark.parametrize("figures", [{}, {"visits": 0.0}])
async def test_a_sample_without_figures(harness: Harness, figures: dict[str, float]) -> None:
    frontier = await harness.open()
    await frontier.add_samples([Sample(node="", ended=NOON, seconds=0.0, figures=figures)])
    ((got,),) = await read(harness.reader())
    assert (got.figures, got.histograms) == (figures, {})
