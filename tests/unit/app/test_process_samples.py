"""The samples of the processes of a machine are collected until they are taken."""

from __future__ import annotations

import asyncio

import pytest

from rove.app import process_samples
from rove.app.process_samples import ProcessSamples
from rove.model.samples import Sample


def sample(visits: int, *, in_flight: float = 1.0) -> Sample:
    return Sample(node="", ended=visits, seconds=2.0, figures={"visits": visits, "in_flight": in_flight})


def test_the_samples_of_each_process_are_combined() -> None:
    samples = ProcessSamples()
    for process, visits in (("1", 3), ("2", 5), ("1", 4)):
        samples.put(process, sample(visits, in_flight=visits))
    first, second = samples.take()
    assert (first.seconds, first.figures) == (4.0, {"visits": 7, "in_flight": 3.5})
    assert (second.seconds, second.figures) == (2.0, {"visits": 5, "in_flight": 5})
    assert samples.take() == []


async def test_this_process_makes_a_sample_in_each_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(process_samples, "steady_seconds", lambda: now[0])
    monkeypatch.setattr(process_samples, "CHECK_SECONDS", 0.0)
    made: list[Sample] = []

    def take() -> Sample:
        made.append(sample(1))
        return made[-1]

    samples = ProcessSamples()
    sampling = asyncio.create_task(samples.keep_sampling("own", take))
    for slot, count in ((100.0, 0), (101.9, 0), (102.1, 1), (103.9, 1), (106.5, 2)):
        now[0] = slot
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(made) == count, slot
    sampling.cancel()
    assert [taken.figures["visits"] for taken in samples.take()] == [2]
