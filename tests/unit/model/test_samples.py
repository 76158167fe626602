"""Samples are combined over time and over machines, each figure by its own rule."""

from __future__ import annotations

import pytest

from rove.model.samples import Distribution, Sample, combined, merged, together


def sample(ended: int, seconds: float = 10.0, node: str = "a", **figures: float) -> Sample:
    named = {name.replace("__", "."): value for name, value in figures.items()}
    return Sample(node=node, ended=ended, seconds=seconds, figures=named)


def test_counts_add_up_and_gauges_do_not() -> None:
    first = sample(10_000, visits=5, in_flight=100, urls__pending=7, disk__free=50, lag__longest=0.5)
    second = sample(40_000, 30.0, visits=1, in_flight=300, urls__pending=3, disk__free=70, lag__longest=0.25)
    both = combined([first, second])
    assert (both.node, both.ended, both.seconds) == ("a", 40_000, 40.0)
    assert both.figures == {
        "visits": 6,
        "in_flight": 250,  # weighted with the length of the intervals
        "urls.pending": 3,
        "disk.free": 50,
        "lag.longest": 0.5,
    }


def test_an_absent_count_is_zero_and_an_absent_gauge_was_not_measured() -> None:
    both = combined([sample(10_000, visits=4, in_flight=8, paused__disk=1.0), sample(20_000)])
    assert both.figures == {"visits": 4, "in_flight": 8, "paused.disk": 0.5}


def test_samples_without_a_length_can_be_combined() -> None:
    assert combined([sample(1, 0.0, in_flight=2), sample(1, 0.0, in_flight=4)]).figures == {"in_flight": 3}


def test_machines_add_up_and_share_one_frontier() -> None:
    ours = sample(20_000, visits=5, in_flight=100, urls__pending=3, margin__smallest=0.5)
    theirs = sample(15_000, 5.0, "b", visits=7, in_flight=10, urls__pending=4, margin__smallest=0.25)
    both = together([ours, theirs])
    assert (both.node, both.ended, both.seconds) == ("", 20_000, 10.0)
    assert both.figures == {"visits": 12, "in_flight": 110, "urls.pending": 3, "margin.smallest": 0.25}


def test_one_machine_stays_as_it_is() -> None:
    ours = sample(20_000, visits=5)
    assert together([ours]) is ours


def test_histograms_are_merged() -> None:
    short = Distribution(count=2, total=0.002, longest=0.001, buckets={2: 1, 4: 1})
    long = Distribution(count=1, total=3.0, longest=3.0, buckets={15: 1})
    samples = [Sample(node="a", ended=i, seconds=1.0, histograms={"claim": d}) for i, d in enumerate((short, long))]
    for both in (combined(samples), together(samples)):
        distribution = both.histograms["claim"]
        assert distribution == Distribution(count=3, total=3.002, longest=3.0, buckets={2: 1, 4: 1, 15: 1})
    assert merged([long]) is long


def test_quantiles_are_upper_bounds() -> None:
    distribution = Distribution(count=4, total=0.8, longest=0.7, buckets={0: 2, 3: 1, 13: 1})
    assert distribution.quantile(0.5) == 0.0001
    assert distribution.quantile(0.75) == 0.0008
    assert distribution.quantile(0.76) == 0.7, "no quantile is longer than the longest"
    assert distribution.mean == 0.2


def test_the_last_bucket_may_hold_longer_values() -> None:
    assert Distribution(count=2, total=600.1, longest=600.0, buckets={10: 1, 20: 1}).quantile(0.99) == 600.0


def test_sizes_have_buckets_of_their_own() -> None:
    sizes = Distribution(count=2, total=3000.0, longest=2900.0, buckets={1: 1, 6: 1}, first=64.0)
    assert sizes.quantile(0.5) == 128.0
    assert merged([sizes, sizes]).first == 64.0


def test_an_empty_histogram_is_zero() -> None:
    assert (Distribution().quantile(0.5), Distribution().mean) == (0.0, 0.0)


def test_rates_and_families() -> None:
    some = sample(10_000, errors__page__dns=3, errors__page__reset=2, errors__robots__dns=1, visits=20)
    assert some.rate("visits") == 2.0
    assert some.rate("claims") == 0.0
    assert sample(10_000, 0.0, visits=1).rate("visits") == 0.0
    assert some.family("errors.page.") == {"dns": 3, "reset": 2}
    assert some.total("errors.") == 6


def test_a_figure_that_is_not_in_the_table_is_an_error() -> None:
    with pytest.raises(KeyError):
        combined([sample(1, nonsense=1), sample(2)])


def test_estimates_lie_within_their_bucket() -> None:
    distribution = Distribution(count=4, total=1.0, longest=0.0007, buckets={0: 2, 3: 2})
    assert [round(distribution.estimate(share), 6) for share in (0, 0.25, 0.5, 0.75, 1)] == [0, 5e-5, 1e-4, 55e-5, 7e-4]
    assert Distribution(count=2, total=600.1, longest=600.0, buckets={10: 1, 20: 1}).estimate(1) == 600.0
    assert Distribution().estimate(0.5) == 0.0
