"""Counters that add up, and rates between marks at times that the test chooses."""

from __future__ import annotations

from collections import Counter

import pytest

from rove.crawl.progress import RATE_WINDOW, Counters, Progress, ceiling_share
from rove.model.ledger import RequestKind, RequestRow


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
    ("ready", "waiting", "leased", "expected"),
    [
        (0, 0, 0, None),
        (0, 1, 0, 1.0),
        (0, 0, 1, 1.0),
        (1, 0, 0, 0.0),
        (500, 450, 50, 0.5),
    ],
)
def test_the_share_of_the_visits_that_politeness_allows(
    ready: int, waiting: int, leased: int, expected: float | None
) -> None:
    assert ceiling_share({"ready": ready, "waiting": waiting, "leased": leased, "idle": 9, "excluded": 9}) == expected


def request(kind: RequestKind, error: str = "", size: int = 0) -> RequestRow:
    return RequestRow(
        visit=1, seq=0, domain=1, kind=kind, url="", fingerprint=1, started=0, began=0, ended=0, error=error, size=size
    )


def test_requests_are_counted_apart_and_only_what_failed_is_an_error() -> None:
    progress = Progress(started=0.0, internal_errors=1)
    rows = [
        request(RequestKind.ROBOTS, "status-404"),
        request(RequestKind.ROBOTS, "status-503"),
        request(RequestKind.PAGE, size=10),
        request(RequestKind.PAGE, "wrong-type"),
        request(RequestKind.PAGE, "status-404", size=5),
        request(RequestKind.SITEMAP, "status-404"),
    ]
    progress.count_requests(rows)
    assert (progress.requests, progress.bytes) == (6, 15)
    assert progress.errors == {"status-404": 2, "status-503": 1, "internal": 1}
    counts = progress.request_counts
    assert counts.by_kind == {RequestKind.PAGE: 3, RequestKind.ROBOTS: 2, RequestKind.SITEMAP: 1}
    assert counts.errors_by_kind[RequestKind.ROBOTS] == {"status-503": 1}
    assert counts.without_content_by_kind[RequestKind.ROBOTS] == {"no-robots-txt": 1}
    assert counts.without_content_by_kind[RequestKind.PAGE] == {"other-type": 1}


def test_the_longest_stop_of_several_processes_is_the_longest_of_all() -> None:
    assert (Counters(longest_lag=0.5) + Counters(longest_lag=0.25)).longest_lag == 0.5


def test_counters_are_added_one_by_one() -> None:
    first = Counters(pages=1, visits=2, bytes=4, in_flight=5, queued=6, resident=7, open_files=8, internal_errors=9)
    second = Counters(
        pages=10, visits=20, bytes=40, in_flight=50, queued=60, resident=70, open_files=80, internal_errors=90
    )
    first.request_counters, second.request_counters = Counter(a=1, b=2), Counter(a=3)
    first.troubles, second.troubles = {"disk": "paused here"}, {"disk": "paused there", "memory": "slowed"}
    assert first + second == Counters(
        pages=11,
        visits=22,
        bytes=44,
        in_flight=55,
        queued=66,
        resident=77,
        open_files=88,
        internal_errors=99,
        troubles={"disk": "paused here", "memory": "slowed"},
        request_counters=Counter(a=4, b=2),
    )


def test_nothing_of_an_ended_process_is_in_flight() -> None:
    counters = Counters(
        pages=1,
        in_flight=5,
        queued=6,
        resident=7,
        open_files=8,
        troubles={"disk": "paused"},
        request_counters=Counter(a=1),
    )
    assert counters.ended() == Counters(pages=1, request_counters=Counter(a=1))
    assert counters.ended().troubles is not counters.ended().troubles


def test_a_snapshot_does_not_change() -> None:
    progress = Progress(started=0.0, pages=3)
    progress.request_counters["a"] += 1
    progress.set_trouble("disk", "paused")
    snapshot = progress.snapshot()
    progress.pages += 1
    progress.request_counters["a"] += 1
    progress.set_trouble("disk", "")
    assert snapshot == Counters(pages=3, request_counters=Counter(a=1), troubles={"disk": "paused"})
    assert progress.troubles == {}


def test_an_update_sets_every_counter_and_no_time() -> None:
    progress = Progress(started=7.0, pages=3, troubles={"disk": "paused"})
    progress.update(Counters(pages=5, visits=6))
    assert progress.snapshot() == Counters(pages=5, visits=6)
    assert progress.started == 7.0
