"""Counters that add up, and rates between marks at times that the test chooses."""

from __future__ import annotations

from collections import Counter

import pytest

from rove.crawl.progress import RATE_WINDOW, Counters, Progress, ceiling_share


def test_before_two_marks_there_is_no_rate() -> None:
    progress = Progress(started=100.0)
    assert progress.pages_per_second() == 0.0
    progress.pages = 50
    progress.mark(101.0)
    assert progress.pages_per_second() == progress.visits_per_second() == 0.0


def test_the_rate_is_measured_between_the_marks() -> None:
    progress = Progress(started=100.0)
    progress.mark(100.0)
    progress.pages, progress.visits = 30, 40
    progress.mark(102.0)
    assert progress.pages_per_second() == pytest.approx(15.0)
    assert progress.visits_per_second() == pytest.approx(20.0)


def test_pages_before_the_window_do_not_count() -> None:
    progress = Progress(started=0.0)
    for second in range(100):
        progress.mark(float(second))
        progress.pages += 1000 if second < 50 else 2
    progress.mark(100.0)
    assert progress.pages_per_second() == pytest.approx(2.0)
    assert progress.average(100.0) == pytest.approx((50 * 1000 + 50 * 2) / 100)


def test_a_crawl_without_new_pages_has_no_rate() -> None:
    progress = Progress(started=0.0)
    progress.mark(0.0)
    progress.pages = 1000
    for second in range(1, round(RATE_WINDOW) + 3):
        progress.mark(float(second))
    assert progress.pages_per_second() == 0.0


def test_after_a_suspend_the_gap_counts_too() -> None:
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
def test_the_share_of_the_politeness_ceiling(visits: float, domains: int, delay: float, expected: float | None) -> None:
    share = ceiling_share(visits, domains, delay)
    assert share == (None if expected is None else pytest.approx(expected))


def test_counters_are_added_one_by_one() -> None:
    first = Counters(pages=1, visits=2, requests=3, bytes=4, in_flight=5, queued=6)
    second = Counters(pages=10, visits=20, requests=30, bytes=40, in_flight=50, queued=60)
    first.errors, second.errors = Counter(dns=1, tls=2), Counter(dns=3)
    second.trouble = "paused"
    assert first + second == Counters(
        pages=11,
        visits=22,
        requests=33,
        bytes=44,
        in_flight=55,
        queued=66,
        trouble="paused",
        errors=Counter(dns=4, tls=2),
    )


def test_nothing_of_an_ended_process_is_in_flight() -> None:
    counters = Counters(pages=1, in_flight=5, queued=6, trouble="slowed", errors=Counter(dns=1))
    assert counters.ended() == Counters(pages=1, errors=Counter(dns=1))


def test_a_snapshot_does_not_change() -> None:
    progress = Progress(started=0.0, pages=3)
    progress.errors["dns"] += 1
    snapshot = progress.snapshot()
    progress.pages += 1
    progress.errors["dns"] += 1
    assert snapshot == Counters(pages=3, errors=Counter(dns=1))


def test_an_update_sets_every_counter_and_no_time() -> None:
    progress = Progress(started=7.0, pages=3, trouble="slowed")
    progress.update(Counters(pages=5, visits=6))
    assert progress.snapshot() == Counters(pages=5, visits=6)
    assert progress.started == 7.0
