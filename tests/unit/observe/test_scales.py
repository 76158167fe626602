"""Ticks are round, few and inside the axis, and numbers are short."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.observe.panels import Measure, Scale
from rove.observe.scales import axis_of, value_text
from rove.observe.time_axis import clock_ticks, elapsed_ticks

DAY = 86_400.0


def labels(values: list[float], measure: Measure = Measure.NUMBER, scale: Scale = Scale.LINEAR) -> list[str]:
    return [tick.label for tick in axis_of(values, measure, scale).ticks]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], ["0", "0.5", "1"]),
        ([0.0], ["0", "0.5", "1"]),
        ([33.0], ["0", "10", "20", "30", "40"]),
        ([0.0031], ["0", "0.001", "0.002", "0.003", "0.004"]),
        ([1_240_000], ["0", "500 k", "1 M", "1.5 M"]),
        ([-0.2, 0.5], ["-0.2", "0", "0.2", "0.4", "0.6"]),
    ],
)
def test_linear_ticks_are_round(values: list[float], expected: list[str]) -> None:
    assert labels(values) == expected


def test_sizes_and_times_have_ticks_of_their_own() -> None:
    assert labels([3.1e8], Measure.BYTES) == ["0 B", "128 MiB", "256 MiB", "384 MiB"]
    assert labels([0.004, 2.0], Measure.SECONDS, Scale.LOG) == ["1 ms", "10 ms", "100 ms", "1 s", "10 s"]
    assert labels([0.5], Measure.SECONDS, Scale.LOG) == ["100 ms", "1 s"]
    assert labels([0.0], Measure.SECONDS, Scale.LOG) == ["0.1 ms", "1 ms"]


@given(st.lists(st.floats(min_value=-1e15, max_value=1e15, allow_subnormal=False), max_size=5))
def test_a_linear_axis_contains_all_values(values: list[float]) -> None:
    kept = [value for value in values if value == 0 or abs(value) > 1e-9]
    axis = axis_of(kept, Measure.NUMBER, Scale.LINEAR)
    assert 2 <= len(axis.ticks) <= 7
    assert all(-1e-6 <= axis.share(value) <= 1 + 1e-6 for value in kept)
    assert axis.ticks[0].value == axis.low and axis.ticks[-1].value == axis.high


@given(st.lists(st.floats(min_value=1e-6, max_value=1e7), min_size=1, max_size=5))
def test_a_log_axis_contains_all_values(values: list[float]) -> None:
    axis = axis_of(values, Measure.SECONDS, Scale.LOG)
    assert 2 <= len(axis.ticks) <= 6
    assert all(-1e-6 <= axis.share(value) <= 1 + 1e-6 for value in values)


def test_a_limit_far_above_the_values_does_not_flatten_them() -> None:
    assert axis_of([30.0], Measure.NUMBER, Scale.LINEAR, limits=[60.0]).high == 60
    assert axis_of([30.0], Measure.NUMBER, Scale.LINEAR, limits=[2_400.0]).high == 30
    assert axis_of([], Measure.NUMBER, Scale.LINEAR, limits=[2_400.0]).high == 3_000


@given(st.floats(min_value=-1e18, max_value=1e18), st.sampled_from(Measure))
def test_numbers_are_short(value: float, measure: Measure) -> None:
    assert len(value_text(value, measure)) <= 22
    if 1e-4 <= abs(value) <= 1e12:
        assert len(value_text(value, measure)) <= 12


@pytest.mark.parametrize(
    ("start", "seconds", "expected"),
    [
        (0, 60, ["00:00:00", "00:00:10", "00:00:20", "00:00:30", "00:00:40", "00:00:50", "00:01:00"]),
        (600, 3_000, ["00:10", "00:20", "00:30", "00:40", "00:50", "01:00"]),
        (0, 2 * DAY, ["00:00", "06:00", "12:00", "18:00", "00:00", "06:00", "12:00", "18:00", "00:00"]),
        (0, 7 * DAY, [f"{day} Jan" for day in range(1, 9)]),
        (0, 60 * DAY, ["1 Jan", "8 Jan", "15 Jan", "22 Jan", "29 Jan", "5 Feb", "12 Feb", "19 Feb", "26 Feb"]),
        (0, 365 * DAY, ["1 Jan", "1 Mar", "1 May", "1 Jul", "1 Sep", "1 Nov", "1 Jan"]),
        (5 * DAY, 365 * DAY * 20, ["1 Jan"] * 7),
    ],
)
def test_times_are_round(start: float, seconds: float, expected: list[str]) -> None:
    assert [tick.label for tick in clock_ticks(start, seconds, most=9)] == expected


def test_days_and_years_are_named_where_they_change() -> None:
    days = clock_ticks(0, 2 * DAY, most=9)
    assert [tick.context for tick in days if tick.context] == ["1 Jan 1970", "2 Jan 1970", "3 Jan 1970"]
    years = clock_ticks(300 * DAY, 120 * DAY, most=9)
    assert [tick.context for tick in years if tick.context] == ["1970", "1971"]


@given(st.floats(min_value=0, max_value=4e9), st.floats(min_value=10, max_value=3e9), st.integers(2, 12))
def test_time_ticks_are_few_and_inside(start: float, seconds: float, most: int) -> None:
    for ticks in (clock_ticks(start, seconds, most=most), elapsed_ticks(seconds, most=most)):
        assert len(ticks) <= 2 * most + 2
        assert all(-1e-3 <= tick.at <= seconds + 1e-3 for tick in ticks)
        assert all(math.isfinite(tick.at) for tick in ticks)
