"""Rates, from marks at times that the test chooses."""

from __future__ import annotations

import pytest

from rove.crawl.progress import RATE_WINDOW, Progress, ceiling_share


def test_before_two_marks_there_is_no_rate() -> None:
    progress = Progress(started=100.0)
    assert progress.pages_per_second() == 0.0
    progress.pages = 50
    progress.mark(101.0)
    assert progress.pages_per_second() == progress.visits_per_second() == 0.0


def test_the_rate_is_that_between_the_marks() -> None:
    progress = Progress(started=100.0)
    progress.mark(100.0)
    progress.pages, progress.visits = 30, 40
    progress.mark(102.0)
    assert progress.pages_per_second() == pytest.approx(15.0)
    assert progress.visits_per_second() == pytest.approx(20.0)


def test_what_lies_before_the_window_does_not_count() -> None:
    progress = Progress(started=0.0)
    for second in range(100):
        progress.mark(float(second))
        progress.pages += 1000 if second < 50 else 2
    progress.mark(100.0)
    assert progress.pages_per_second() == pytest.approx(2.0)
    assert progress.average(100.0) == pytest.approx((50 * 1000 + 50 * 2) / 100)


def test_a_crawl_that_stands_still_has_no_rate() -> None:
    progress = Progress(started=0.0)
    progress.mark(0.0)
    progress.pages = 1000
    for second in range(1, round(RATE_WINDOW) + 3):
        progress.mark(float(second))
    assert progress.pages_per_second() == 0.0


def test_after_a_suspend_the_rate_is_that_of_the_gap() -> None:
    progress = Progress(started=0.0)
    progress.mark(0.0)
    progress.mark(1.0)
    progress.pages = 100
    progress.mark(1001.0)
    assert progress.pages_per_second() == pytest.approx(0.1)


def test_marks_at_one_moment_do_not_divide_by_zero() -> None:
    progress = Progress(started=5.0)
    progress.mark(5.0)
    progress.pages = 1
    progress.mark(5.0)
    assert progress.pages_per_second() > 0
    assert progress.average(5.0) > 0


@pytest.mark.parametrize(
    ("visits", "domains", "delay", "expected"),
    [
        (10.0, 700, 70.0, 1.0),
        (5.0, 700, 70.0, 0.5),
        (0.0, 700, 70.0, 0.0),
        (1.0, 10, 2.0, 0.2),
        (10.0, 0, 70.0, None),
        (10.0, 700, 0.0, None),
    ],
)
def test_the_share_of_the_politeness_ceiling(
    visits: float, domains: int, delay: float, expected: float | None
) -> None:
    share = ceiling_share(visits, domains, delay)
    assert share == (None if expected is None else pytest.approx(expected))
