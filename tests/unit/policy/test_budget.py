from __future__ import annotations

import math

import pytest

from rove.policy.budget import FEWEST_VISITS, MULTIPLE, DomainBudget

DAY = 86_400.0


def test_a_day_has_room_for_a_few_times_its_visits() -> None:
    budget = DomainBudget(horizon=DAY, delay=70.0)
    assert budget.visits(0.0, 0.0) == 1_234
    assert budget.room(0.0, 0.0) == MULTIPLE * 1_234


@pytest.mark.parametrize(
    ("crawl_delay", "repeats", "visits"),
    [
        (10.0, 0.0, 1_234),
        (700.0, 0.0, 123),
        (0.0, 0.5, 617),
        (0.0, 0.95, 61),
        (0.0, 1.0, 61),
        (86_400.0, 0.0, FEWEST_VISITS),
    ],
)
def test_what_a_domain_asks_for_and_what_it_repeats(
    crawl_delay: float, repeats: float, visits: int
) -> None:
    budget = DomainBudget(horizon=DAY, delay=70.0)
    assert budget.visits(crawl_delay, repeats) == visits
    assert budget.room(crawl_delay, repeats) == MULTIPLE * visits >= budget.least_room


def test_no_delay_is_not_for_ever() -> None:
    assert DomainBudget(horizon=10.0, delay=0.0).visits(0.0, 0.0) == 100


def test_pages_of_a_domain_are_a_bound_too() -> None:
    assert DomainBudget(horizon=DAY, delay=70.0, max_pages=100).visits(0.0, 0.0) == 100
    assert DomainBudget(horizon=DAY, delay=70.0, max_pages=1).visits(0.0, 0.0) == FEWEST_VISITS


def test_without_a_horizon_there_is_room_for_everything() -> None:
    assert DomainBudget(horizon=math.inf, delay=70.0).room(0.0, 1.0) > 1 << 40
