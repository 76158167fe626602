"""Histograms of durations and sizes."""

from __future__ import annotations

import pytest

from rove.model.histogram import BUCKETS, DURATION_BOUNDS, SIZE_BOUNDS, Histogram
from rove.model.samples import Distribution


def recorded(*seconds: float) -> Distribution:
    histogram = Histogram()
    for duration in seconds:
        histogram.add(duration)
    return histogram.take()


def test_buckets_reach_from_a_tenth_of_a_millisecond_to_a_minute() -> None:
    assert DURATION_BOUNDS[0] == 0.0001
    assert 50.0 < DURATION_BOUNDS[-1] < 70.0
    assert list(DURATION_BOUNDS) == sorted(DURATION_BOUNDS)


def test_a_duration_falls_into_the_first_bucket_that_holds_it() -> None:
    counted = recorded(0.0, DURATION_BOUNDS[0], DURATION_BOUNDS[3], DURATION_BOUNDS[3] + 1e-9, DURATION_BOUNDS[-1], 1e9)
    assert counted.buckets == {0: 2, 3: 1, 4: 1, BUCKETS - 1: 1, BUCKETS: 1}
    assert (counted.count, counted.longest) == (6, 1e9)


def test_a_histogram_knows_sum_and_longest_and_begins_anew() -> None:
    histogram = Histogram()
    for duration in (0.5, 0.25, 0.125):
        histogram.add(duration)
    counted = histogram.take()
    assert (counted.count, counted.total, counted.longest) == (3, 0.875, 0.5)
    assert histogram.take() == Distribution()


def test_quantiles_are_upper_bounds_within_a_factor_of_two() -> None:
    durations = [0.001 * i for i in range(1, 1001)]
    counted = recorded(*durations)
    for share in (0.01, 0.1, 0.5, 0.9, 0.99, 1.0):
        true = durations[round(share * len(durations)) - 1]
        assert true <= counted.quantile(share) <= 2 * true


def test_no_quantile_is_longer_than_the_longest() -> None:
    assert recorded(0.00001).quantile(0.5) == 0.00001
    assert recorded(0.3, 0.3, 0.3).quantile(0.99) == 0.3


def test_the_longest_duration_bounds_the_open_bucket() -> None:
    counted = recorded(0.001, 300.0, 200.0)
    assert counted.quantile(0.99) == 300.0
    assert counted.quantile(0.3) == pytest.approx(0.0016)


def test_sizes_have_buckets_of_their_own() -> None:
    histogram = Histogram(SIZE_BOUNDS)
    for size in (0, 64, 65, 5_000_000):
        histogram.add(size)
    counted = histogram.take()
    assert counted.buckets == {0: 2, 1: 1, 17: 1}
    assert counted.quantile(0.75) == 128.0
