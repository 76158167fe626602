"""How many visits and pending URLs a domain is worth."""

from __future__ import annotations

import math

import pytest

from rove.policy.budget import DomainBudget

DAY = 86_400.0


def test_a_day_has_room_for_a_few_times_its_visits() -> None:
    budget = DomainBudget(horizon=DAY, delay=70.0)
    assert budget.visits(0.0, 0.0) == 1_234
    assert budget.room(0.0, 0.0) == 4 * 1_234


@pytest.mark.parametrize(
    ("crawl_delay", "repeats", "visits"),
    [(10.0, 0.0, 1_234), (700.0, 0.0, 123), (0.0, 0.5, 617), (0.0, 0.95, 61), (0.0, 1.0, 61), (86_400.0, 0.0, 16)],
)
def test_a_crawl_delay_and_repeated_texts_lower_the_budget(crawl_delay: float, repeats: float, visits: int) -> None:
    budget = DomainBudget(horizon=DAY, delay=70.0)
    assert budget.visits(crawl_delay, repeats) == visits
    assert budget.room(crawl_delay, repeats) == 4 * visits


def test_without_a_delay_visits_are_a_tenth_of_a_second_apart() -> None:
    assert DomainBudget(horizon=10.0, delay=0.0).visits(0.0, 0.0) == 100


def test_the_limit_of_pages_bounds_the_visits() -> None:
    assert DomainBudget(horizon=DAY, delay=70.0, max_pages=100).visits(0.0, 0.0) == 100
    assert DomainBudget(horizon=DAY, delay=70.0, max_pages=1).visits(0.0, 0.0) == 16


def test_every_domain_has_room_for_the_fewest_visits() -> None:
    assert DomainBudget(horizon=1.0, delay=DAY).least_room == 64


def test_without_a_horizon_there_is_room_for_everything() -> None:
    assert DomainBudget(horizon=math.inf, delay=70.0).room(0.0, 1.0) > 1 << 40
