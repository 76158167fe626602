"""How many domains rest for longer than the chosen delay."""

from __future__ import annotations

from rove.crawl.resting import STEP, Resting
from rove.model.ledger import DelaySource


def test_rests_are_counted_until_they_end() -> None:
    rests = Resting()
    rests.begin(DelaySource.BACKOFF, ends=1_000.0)
    rests.begin(DelaySource.BACKOFF, ends=500.0)
    rests.begin(DelaySource.SLOW, ends=505.0)
    assert rests.counts(499.0) == {DelaySource.BACKOFF: 2, DelaySource.SLOW: 1}
    assert rests.counts(505.0 + STEP) == {DelaySource.BACKOFF: 1}
    assert rests.counts(1_000.0 + STEP) == {}


def test_a_rest_is_never_counted_for_too_short() -> None:
    rests = Resting()
    rests.begin(DelaySource.RETRY_AFTER, ends=20.0)
    assert rests.counts(20.0) == {DelaySource.RETRY_AFTER: 1}
    assert rests.counts(20.0 + STEP) == {}


def test_a_million_rests_take_no_more_memory_than_their_times() -> None:
    rests = Resting()
    for number in range(100_000):
        rests.begin(DelaySource.FAILURES, ends=float(number % 1_000))
    assert rests.counts(0.0) == {DelaySource.FAILURES: 100_000}
    assert len(rests._endings) <= 1_000 / STEP
