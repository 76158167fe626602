"""Second visits come later at random if many domains were visited at once."""

from __future__ import annotations

import random
from collections import Counter

from rove.model.ledger import DelaySource
from rove.model.visits import Pace
from rove.policy.pacing import Answers, decide_pacing
from rove.policy.spread import MANY, Spread

DELAY = 70.0


def test_a_small_crawl_is_not_slowed_down() -> None:
    spread = Spread(DELAY, lambda: 0.5)
    assert [spread.after_first_visit(0.1 * number) for number in range(MANY - 1)] == [0.0] * (MANY - 1)


def test_many_first_visits_within_a_delay_are_spread_out() -> None:
    spread = Spread(DELAY, lambda: 0.5)
    for _ in range(MANY - 1):
        spread.after_first_visit(100.0)
    assert spread.after_first_visit(100.0 + DELAY) == 0.5
    assert spread.after_first_visit(100.1 + DELAY) == 0.0, "the first ones are too long ago"


def test_without_a_delay_nothing_is_spread() -> None:
    spread = Spread(0.0, lambda: 0.5)
    assert not any(spread.after_first_visit(0.001 * number) for number in range(2 * MANY))


def test_the_second_visit_comes_later_and_never_earlier() -> None:
    answers = Answers(has_answered=True, spread=0.25)
    decision = decide_pacing(answers, Pace(), DELAY)
    assert decision.pause == 1.25 * DELAY and decision.reason is DelaySource.SPREAD
    answers.retry_after = 600.0
    assert decide_pacing(answers, Pace(), DELAY).reason is DelaySource.RETRY_AFTER


def test_domains_that_began_together_are_visited_evenly_from_the_third_round_on() -> None:
    """Visits per second of 7,000 domains that were all visited for the first time within ten seconds."""
    spread, numbers = Spread(DELAY, random.Random(1).random), range(7_000)
    starts = [number / 700 for number in numbers]
    second = [start + DELAY * (1 + spread.after_first_visit(start)) for start in starts]
    third = Counter(int((start + DELAY) % DELAY) for start in second[MANY:])
    assert min(third.values()) > 60 and max(third.values()) < 140, "a hundred are expected"
