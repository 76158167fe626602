"""The lower bound of claims moves with a clock that the test sets."""

from __future__ import annotations

import pytest

from rove.frontier.postgres.claim_floor import LOWEST, SLACK_MS, UNBOUNDED_EVERY, UNBOUNDED_SHARE, ClaimFloor

QUICK = 0.001


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def claim(
    bound: ClaimFloor, was_due: list[int], *, now: int | None = None, limit: int = 3, seconds: float = QUICK
) -> int:
    """Return the bound of a claim that returns domains with these due times."""
    start = bound.for_claim()
    bound.claimed(start, seconds, was_due, now, limit)
    return start


def test_the_first_claim_looks_at_everything(clock: Clock) -> None:
    bound = ClaimFloor(clock)
    assert bound.value == LOWEST
    assert bound.for_claim() == LOWEST


def test_a_full_claim_moves_the_bound_to_the_latest_that_it_brought(clock: Clock) -> None:
    bound = ClaimFloor(clock)
    claim(bound, [50_000, 90_000, 70_000], now=500_000)
    assert bound.value == 90_000 - SLACK_MS
    assert claim(bound, [], now=None) == 90_000 - SLACK_MS, "the next starts there"


def test_a_claim_that_brings_less_than_it_could_moves_the_bound_to_the_present(clock: Clock) -> None:
    """All due domains were claimed."""
    bound = ClaimFloor(clock)
    claim(bound, [50_000, 90_000], now=500_000)
    assert bound.value == 500_000 - SLACK_MS


def test_the_bound_goes_on_with_the_time_while_nothing_is_due(clock: Clock) -> None:
    """An empty claim returns no database time, so our own clock tells how much time has passed."""
    bound = ClaimFloor(clock)
    claim(bound, [90_000], now=500_000)
    clock.now += 1.5
    claim(bound, [])
    assert bound.value == 501_500 - SLACK_MS
    clock.now += 1.0
    claim(bound, [])
    assert bound.value == 502_500 - SLACK_MS


def test_the_latest_time_of_the_database_counts(clock: Clock) -> None:
    bound = ClaimFloor(clock)
    claim(bound, [90_000], now=500_000)
    clock.now += 10.0
    claim(bound, [95_000], now=507_000)
    assert bound.value == 507_000 - SLACK_MS, "and not ours, which is ahead"
    clock.now += 1.0
    claim(bound, [])
    assert bound.value == 508_000 - SLACK_MS


def test_before_anything_was_claimed_there_is_no_bound(clock: Clock) -> None:
    bound = ClaimFloor(clock)
    for _ in range(3):
        claim(bound, [])
        clock.now += 60.0
        assert bound.value == LOWEST


def test_a_claim_of_none_is_not_a_full_one(clock: Clock) -> None:
    bound = ClaimFloor(clock)
    claim(bound, [], limit=0)
    assert bound.value == LOWEST


def test_the_bound_moves_back_to_missed_domains(clock: Clock) -> None:
    bound = ClaimFloor(clock)
    claim(bound, [90_000], now=500_000)
    clock.now += UNBOUNDED_EVERY
    assert claim(bound, [10_000, 10_001, 10_002], now=505_000) == LOWEST
    assert bound.value == 10_002 - SLACK_MS, "there may be more of them"
    assert bound.for_claim() == 10_002 - SLACK_MS


def test_now_and_then_a_claim_looks_at_everything(clock: Clock) -> None:
    bound = ClaimFloor(clock)
    assert claim(bound, [90_000], now=500_000) == LOWEST
    clock.now += UNBOUNDED_EVERY - 0.01
    assert bound.for_claim() == bound.value != LOWEST
    clock.now += 0.01
    assert bound.for_claim() == LOWEST


def test_a_claim_with_a_bound_does_not_put_off_the_one_without(clock: Clock) -> None:
    bound = ClaimFloor(clock)
    starts = []
    for second in range(11):
        starts.append(claim(bound, [90_000], now=500_000 + 1000 * second))
        clock.now += 1.0
    every = int(UNBOUNDED_EVERY)
    unbounded = [second for second, start in enumerate(starts) if start == LOWEST]
    assert unbounded == [0, every, 2 * every]


def test_looking_at_everything_takes_no_more_than_a_share_of_the_time(clock: Clock) -> None:
    """An unbounded claim over many dead rows takes long."""
    bound = ClaimFloor(clock)
    claim(bound, [90_000], now=500_000, seconds=2.0)
    clock.now += UNBOUNDED_SHARE * 2.0 - 0.01
    assert bound.for_claim() != LOWEST
    clock.now += 0.02
    assert bound.for_claim() == LOWEST


def test_a_claim_that_did_not_come_to_its_end_is_made_again_without_a_bound(clock: Clock) -> None:
    """The database went away, so the claim was never reported."""
    bound = ClaimFloor(clock)
    assert [bound.for_claim(), bound.for_claim()] == [LOWEST, LOWEST]
