"""The rest of the time and page limits, with a clock that the test moves."""

from __future__ import annotations

import pytest

from rove.config import Limits
from rove.crawl.limits import RemainingLimits


def remaining_limits(
    limits: Limits, *, seconds_before: float = 0.0, started: float = 100.0, now: float = 100.0
) -> RemainingLimits:
    return RemainingLimits(limits=limits, seconds_before=seconds_before, started=started, clock=lambda: now)


def test_without_limits_there_is_no_end() -> None:
    free = remaining_limits(Limits(max_pages_per_domain=3), seconds_before=1e9, now=1e12)
    assert free.seconds_left() is None
    assert free.pages_left(10**12) is None


@pytest.mark.parametrize(
    ("now", "before", "left"),
    [
        (100.0, 0.0, 60.0),
        (125.0, 0.0, 35.0),
        (100.0, 20.0, 40.0),
        (125.0, 20.0, 15.0),
        (140.0, 20.0, 0.0),
        (150.0, 20.0, -10.0),
    ],
)
def test_time_of_earlier_runs_counts(now: float, before: float, left: float) -> None:
    seconds_left = remaining_limits(Limits(max_duration=60.0), seconds_before=before, now=now).seconds_left()
    assert seconds_left == pytest.approx(left)


def test_the_clock_is_read_at_every_call() -> None:
    now = iter([100.0, 101.0, 105.0])
    limited = RemainingLimits(
        limits=Limits(max_duration=10.0), seconds_before=0.0, started=100.0, clock=lambda: next(now)
    )
    assert [limited.seconds_left() for _ in range(3)] == [10.0, 9.0, 5.0]


def test_the_caller_subtracts_the_time_before_the_limit_was_set() -> None:
    """RemainingLimits ignores `Limits.seconds_before`, because its own `seconds_before` takes it into account."""
    limits = Limits(max_duration=60.0, seconds_before=1000.0)
    assert remaining_limits(limits, seconds_before=10.0).seconds_left() == pytest.approx(50.0)


@pytest.mark.parametrize(("stored", "left"), [(0, 100), (30, 70), (100, 0), (103, -3)])
def test_pages_count_over_all_processes(stored: int, left: int) -> None:
    assert remaining_limits(Limits(max_pages=100)).pages_left(stored) == left


def test_pages_stored_before_the_limit_was_set_do_not_count() -> None:
    limited = remaining_limits(Limits(max_pages=100, pages_before=1000))
    assert limited.pages_left(1000) == 100
    assert limited.pages_left(1040) == 60


def test_the_limits_are_independent() -> None:
    only_pages = remaining_limits(Limits(max_pages=5), now=1e9)
    assert (only_pages.seconds_left(), only_pages.pages_left(2)) == (None, 3)
    only_time = remaining_limits(Limits(max_duration=5.0), now=102.0)
    assert (only_time.seconds_left(), only_time.pages_left(10**9)) == (3.0, None)
