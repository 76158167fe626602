"""What is measured for a decision, and what becomes of it."""

from __future__ import annotations

from typing import Any

import pytest

from rove.crawl.steering import Steering
from rove.policy.concurrency import Bounds, Figures, HeldBy, InFlight

BOUNDS = Bounds(start=100, most=1_000, most_by=HeldBy.MOST, bytes_each=1_000)


class Process:
    """A process whose clock, event-loop lag and CPU time the test moves, and what it has decided from."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.lag, self.cpu = 100.0, 5.0, 7.0
        self.figures: list[Figures] = []
        self.decision: dict[str, Any] = {}
        monkeypatch.setattr("rove.crawl.steering.decide", self._decide)
        self.steering = Steering(
            BOUNDS, clock=lambda: self.now, lag_seconds=lambda: self.lag, cpu_seconds=lambda: self.cpu
        )

    def _decide(self, before: InFlight, figures: Figures, bounds: Bounds) -> InFlight:
        assert bounds is BOUNDS
        self.figures.append(figures)
        decision: dict[str, Any] = {"exact": before.exact} | self.decision
        return InFlight(**decision)


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    return Process(monkeypatch)


def test_everything_is_counted_since_the_last_decision(process: Process) -> None:
    steering = process.steering
    for was_expected, is_lost in ((True, True), (True, False), (False, True)):
        steering.note_visit(was_expected=was_expected, is_lost=is_lost)
    steering.note_file_shortage()
    steering.note_memory_shortage()
    process.now, process.lag, process.cpu = 102.0, 6.0, 8.5
    steering.update(are_waiting=True, free_memory=123.0)
    process.now = 103.0
    steering.update(are_waiting=False, free_memory=45.0)
    assert process.figures == [
        Figures(
            seconds=2.0,
            are_waiting=True,
            cpu=0.75,
            lag=0.02,
            rate=1.5,
            free_memory=123.0,
            memory_shortages=1,
            file_shortages=1,
            expected=2,
            lost=1,
        ),
        Figures(seconds=1.0, free_memory=45.0),
    ]


def test_a_decision_becomes_the_limit(process: Process) -> None:
    assert process.steering.throttle.limit == 100
    process.decision = {"exact": 250.9}
    process.now += 1.0
    process.steering.update(are_waiting=True, free_memory=0.0)
    assert process.steering.throttle.limit == 250 and not process.steering.is_cut


def test_no_decision_is_made_from_an_instant(process: Process) -> None:
    process.now += 0.1
    process.steering.update(are_waiting=True, free_memory=0.0)
    assert not process.figures


@pytest.mark.parametrize(
    ("decision", "is_cut"),
    [
        ({"exact": 99.0}, True),
        ({"exact": 500.0, "rest": 3.0, "held_by": HeldBy.FILES}, True),
        ({"exact": 500.0, "rest": 3.0, "held_by": HeldBy.CPU}, False),
        ({"exact": 500.0, "held_by": HeldBy.MEMORY}, False),
    ],
)
def test_only_shortages_count_as_trouble(process: Process, decision: dict[str, Any], is_cut: bool) -> None:
    process.decision = decision
    process.now += 1.0
    process.steering.update(are_waiting=True, free_memory=0.0)
    assert process.steering.is_cut is is_cut
