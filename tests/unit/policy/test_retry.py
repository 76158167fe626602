"""When a page or a robots.txt is tried again."""

from __future__ import annotations

from itertools import pairwise

import pytest

from rove.model.outcomes import FailureKind
from rove.policy.retry import hold_for, is_temporary, keeps_failing, retry_in
from tests.unit.crawl.scripted import failed, refused

DAY = 86_400.0


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (FailureKind.DNS_NOT_FOUND, False),
        (FailureKind.DNS, True),
        (FailureKind.ADDRESS_REFUSED, False),
        (FailureKind.PORT_REFUSED, False),
        (FailureKind.CONNECT, True),
        (FailureKind.TLS, False),
        (FailureKind.TIMEOUT_CONNECT, True),
        (FailureKind.TIMEOUT_FIRST_BYTE, True),
        (FailureKind.TIMEOUT_TOTAL, True),
        (FailureKind.TOO_SLOW, True),
        (FailureKind.RESET, True),
        (FailureKind.PROTOCOL, False),
        (FailureKind.ENCODING, False),
        (FailureKind.ABORTED, False),
        (FailureKind.BUSY, True),
    ],
)
def test_which_failures_are_temporary(kind: FailureKind, expected: bool) -> None:
    assert is_temporary(failed(kind)) is expected


@pytest.mark.parametrize("status", [500, 501, 502, 503, 504, 599, 408, 425, 429])
def test_temporary_statuses(status: int) -> None:
    assert is_temporary(refused(status))


@pytest.mark.parametrize("status", [300, 304, 400, 401, 403, 404, 405, 410, 418, 451, 499])
def test_lasting_statuses(status: int) -> None:
    assert not is_temporary(refused(status))


@pytest.mark.parametrize(
    ("attempts", "delay", "expected"),
    [
        (1, 70.0, 140.0),
        (2, 70.0, 560.0),
        (3, 70.0, 2240.0),
        (4, 70.0, None),
        (5, 70.0, None),
        (1, 2.0, 4.0),
        (3, 2.0, 64.0),
        (1, 0.0, 0.2),
        (3, 100_000.0, DAY),
    ],
)
def test_a_page_is_tried_again_at_growing_intervals(attempts: int, delay: float, expected: float | None) -> None:
    assert retry_in(attempts, delay) == (None if expected is None else pytest.approx(expected))


def test_a_page_is_tried_again_three_times() -> None:
    waits = [retry_in(attempts, 70.0) for attempts in range(1, 10)]
    assert [wait is not None for wait in waits] == [True] * 3 + [False] * 6


@pytest.mark.parametrize("delay", [0.0, 1.0, 70.0, 5_000.0])
def test_holds_grow_up_to_a_day(delay: float) -> None:
    holds = [hold_for(failures, delay) for failures in range(1, 500)]
    assert all(a <= b for a, b in pairwise(holds))
    assert holds[0] >= 2 * delay and holds[0] > 0
    assert holds[-1] == DAY


def test_an_origin_keeps_failing_after_three_in_a_row() -> None:
    assert [keeps_failing(n) for n in range(5)] == [False, False, False, True, True]
