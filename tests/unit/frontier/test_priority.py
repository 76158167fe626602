from __future__ import annotations

import pytest

from rove.frontier.priority import (
    FOREIGN,
    HELD,
    LEASES_PER_FOREIGN_TURN,
    RETRIED,
    foreign_bounds,
    is_foreign_turn,
    order_in_lease,
    priority_of,
)
from rove.model.urls import NewUrl

URL = NewUrl(1, "a.test", 2, "http://a.test/", 3)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (URL, 3),
        (URL._replace(penalty=4), 7),
        (URL._replace(is_foreign=True), FOREIGN + 3),
        (URL._replace(depth=1 << 30), FOREIGN - 1),
        (URL._replace(depth=1 << 30, is_foreign=True), RETRIED - 1),
    ],
)
def test_foreign_urls_are_behind_all_depths_and_before_all_retries(url: NewUrl, expected: int) -> None:
    assert priority_of(url) == expected


def test_one_lease_in_sixteen_takes_foreign_urls_first() -> None:
    turns = [leases for leases in range(1, 100) if is_foreign_turn(leases)]
    assert turns == list(range(LEASES_PER_FOREIGN_TURN, 100, LEASES_PER_FOREIGN_TURN))
    assert foreign_bounds(foreign_first=True) == (FOREIGN, RETRIED)
    assert foreign_bounds(foreign_first=False) == (RETRIED, FOREIGN)


@pytest.mark.parametrize(
    ("foreign_first", "expected"),
    [(False, [0, 9, RETRIED, HELD, FOREIGN, FOREIGN + 1]), (True, [FOREIGN, FOREIGN + 1, 0, 9, RETRIED, HELD])],
)
def test_the_order_in_a_lease(foreign_first: bool, expected: list[int]) -> None:
    found = sorted(
        [FOREIGN + 1, HELD, 9, RETRIED, FOREIGN, 0],
        key=lambda priority: order_in_lease(priority, 0, foreign_first=foreign_first),
    )
    assert found == expected
