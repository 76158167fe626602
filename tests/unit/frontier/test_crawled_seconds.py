"""Overlapping runs on several machines count once."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.frontier.runs import Run, crawled_seconds


def runs(*spans: tuple[float, float]) -> list[Run]:
    return [
        Run(id=number, started=1e9 + number, begin=begin, end=end) for number, (begin, end) in enumerate(spans, start=1)
    ]


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ([], 0.0),
        ([(5.0, 5.0)], 0.0),
        ([(0.0, 10.0)], 10.0),
        ([(-20.0, -5.0)], 15.0),
        ([(0.0, 10.0), (20.0, 25.0)], 15.0),
        ([(0.0, 10.0), (10.0, 25.0)], 25.0),
        ([(0.0, 10.0), (5.0, 15.0)], 15.0),
        ([(0.0, 10.0), (0.0, 10.0)], 10.0),
        ([(0.0, 30.0), (10.0, 20.0)], 30.0),
        ([(0.0, 30.0), (10.0, 20.0), (25.0, 40.0)], 40.0),
        ([(0.0, 30.0), (1.0, 2.0), (3.0, 4.0), (50.0, 51.0)], 31.0),
    ],
)
def test_runs_that_overlap_count_once(spans: list[tuple[float, float]], seconds: float) -> None:
    for order in itertools.permutations(spans):
        assert crawled_seconds(runs(*order)) == pytest.approx(seconds), "in whatever order"


def test_a_run_with_an_unknown_end_subtracts_nothing() -> None:
    """If the clock was set back, the end lies before the beginning."""
    assert crawled_seconds(runs((10.0, 4.0))) == 0.0
    assert crawled_seconds(runs((0.0, 10.0), (20.0, 15.0), (30.0, 31.0))) == pytest.approx(11.0)


def test_the_wall_clock_does_not_matter() -> None:
    early = Run(id=1, started=0.0, begin=50.0, end=60.0)
    late = Run(id=2, started=1e12, begin=55.0, end=62.0)
    assert crawled_seconds(iter([late, early])) == pytest.approx(12.0)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=8))
def test_it_is_the_number_of_seconds_in_which_any_ran(spans: list[tuple[int, int]]) -> None:
    seconds = {second for begin, length in spans for second in range(begin, begin + length)}
    crawled = crawled_seconds(runs(*((begin, begin + length) for begin, length in spans)))
    assert crawled == len(seconds)
