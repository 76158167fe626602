"""How many domains rest for longer than the chosen delay."""

from __future__ import annotations

import random

import pytest

from rove.crawl.resting import STEPS, Resting
from rove.model.ledger import DelaySource

DAY = 86_400.0


def test_rests_are_counted_until_they_end() -> None:
    resting = Resting()
    resting.begin(DelaySource.BACKOFF, 900.0, now=100.0)
    resting.begin(DelaySource.BACKOFF, 400.0, now=100.0)
    resting.begin(DelaySource.SLOW, 405.0, now=100.0)
    assert resting.counts(499.0) == {DelaySource.BACKOFF: 2, DelaySource.SLOW: 1}
    assert resting.counts(540.0) == {DelaySource.BACKOFF: 1}
    assert resting.counts(1_100.0) == {}


@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.7, 1.0, 70.0, 71.3, 3_600.0, DAY])
def test_a_rest_is_counted_for_hardly_longer_than_it_takes(seconds: float) -> None:
    resting, now = Resting(), 12_345.678
    resting.begin(DelaySource.RETRY_AFTER, seconds, now=now)
    if seconds:
        assert resting.counts(now + 0.999 * seconds) == {DelaySource.RETRY_AFTER: 1}
    assert resting.counts(now + max(seconds, 0.02) * (1 + 1 / STEPS)) == {}


def test_many_rests_take_little_memory() -> None:
    resting, chance, now = Resting(), random.Random(1), 0.0
    for _ in range(50_000):
        now += 0.01
        resting.begin(DelaySource.FAILURES, chance.uniform(1.0, DAY) ** chance.random(), now=now)
        resting.counts(now)
    assert resting.counts(now)[DelaySource.FAILURES] > 1_000
    assert len(resting._endings) < 1_000
