"""How many fetches may be in flight: single decisions, and whole runs on a made-up machine."""

from __future__ import annotations

import math
from statistics import mean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.policy.concurrency import (
    FILES_REST,
    LINE_REST,
    MEMORY_REST,
    Bounds,
    Figures,
    HeldBy,
    InFlight,
    decide,
    first,
)
from tests.unit.policy.made_up_machine import Machine

AUTO = Bounds(start=250, most=10_000, most_by=HeldBy.MOST, bytes_each=60_000)
FIXED = Bounds(start=100, most=100, most_by=HeldBy.USER, bytes_each=60_000)
BEST_SECONDS = 30
"""Within this time the number must settle."""


def after(before: InFlight, *, bounds: Bounds = AUTO, times: int = 1, **figures: Any) -> InFlight:
    """Return the number after one or more decisions; unless the test says otherwise, visits go on taking as long."""
    for _ in range(times):
        before = decide(before, Figures(**{"rate": before.rate} | figures), bounds)
    return before


def at(limit: int, **state: Any) -> InFlight:
    """Return a number in flight; unless the test says otherwise, visits take a second."""
    return InFlight(**{"exact": float(limit), "rate": float(limit)} | state)


# Single decisions


def test_a_process_starts_with_its_start() -> None:
    assert first(AUTO).limit == 250 and first(AUTO).held_by is HeldBy.DEMAND
    assert first(FIXED).limit == 100 and first(FIXED).held_by is HeldBy.USER


def test_it_grows_while_domains_wait_and_there_is_headroom() -> None:
    grown = after(at(AUTO.start), are_waiting=True, cpu=0.2)
    assert grown.limit == 312 and grown.held_by is HeldBy.NOTHING


def test_with_some_load_it_grows_more_slowly_where_answers_take_longer() -> None:
    """The effect of a step shows when the visits before it have been answered."""
    limits = [
        after(at(1_000, rate=rate, cpu=0.6), are_waiting=True, cpu=0.6, rate=rate).limit
        for rate in (1_000, 250, 100, 0)
    ]
    assert limits == [1_250, 1_062, 1_041, 1_041]
    assert after(at(1_000, rate=100.0), are_waiting=True, cpu=0.05).limit == 1_250, "an idle CPU is far from full"


def test_it_stays_while_no_domain_waits() -> None:
    state = after(at(700), times=100, cpu=0.2)
    assert state.limit == 700 and state.held_by is HeldBy.DEMAND


def test_the_fuller_the_cpu_the_smaller_the_steps() -> None:
    steps = [after(at(1_000, cpu=cpu), are_waiting=True, cpu=cpu).limit - 1_000 for cpu in (0.1, 0.6, 0.7, 0.8, 0.89)]
    assert steps[0] == 250 and steps == sorted(steps, reverse=True) and steps[-1] == 20


def test_a_full_cpu_holds_it() -> None:
    state = after(at(1_000, cpu=0.95), are_waiting=True, cpu=0.95)
    assert state.limit == 1_000 and state.held_by is HeldBy.CPU


@pytest.mark.parametrize("lag", [0.1, 0.2, 0.29])
def test_between_calm_and_high_lag_it_stays(lag: float) -> None:
    state = after(at(1_000, lag=lag), times=60, are_waiting=True, cpu=0.5, lag=lag, rate=300)
    assert state.limit == 1_000 and state.held_by is HeldBy.CPU


def test_lag_cuts_it_by_what_is_too_much() -> None:
    """300 visits a second that wait 0.3 s more than they should are 90 visits too many."""
    state = after(at(2_000, lag=0.5, rate=300.0), are_waiting=True, cpu=1.0, lag=0.5, rate=300)
    assert state.limit == 1_910 and state.held_by is HeldBy.CPU and state.brink == 2_000


def test_one_long_pause_of_the_loop_costs_little() -> None:
    """A page that takes long to read is no reason to fetch less."""
    state = after(at(1_000), are_waiting=True, cpu=0.4, lag=0.4, rate=200)
    assert state.limit == 1_000


def test_however_high_the_lag_a_second_takes_a_fifth_at_most() -> None:
    assert after(at(5_000, lag=9.0, rate=900.0), lag=9.0, rate=900).limit == 4_000


def test_the_cpu_never_lowers_it_below_its_start() -> None:
    state = after(at(300), times=60, are_waiting=True, cpu=1.0, lag=2.0, rate=500)
    assert state.limit == AUTO.start
    assert after(at(100), times=60, are_waiting=True, cpu=1.0, lag=2.0, rate=500).limit == 100, "nor raises it"


def test_near_the_brink_it_grows_slowly_and_past_it_fast() -> None:
    assert after(at(1_000, brink=1_100.0), are_waiting=True).limit == 1_020
    past = after(at(1_400, brink=1_100.0), are_waiting=True)
    assert past.limit == 1_750 and past.brink == math.inf


def test_far_below_the_brink_it_grows_fast() -> None:
    assert after(at(400, brink=1_000.0), are_waiting=True).limit == 500


def test_further_fetches_must_fit_into_half_of_the_free_memory() -> None:
    assert after(at(1_000), are_waiting=True, free_memory=12e6).limit == 1_100
    full = after(at(1_000), are_waiting=True, free_memory=1e6)
    assert full.limit == 1_000 and full.held_by is HeldBy.MEMORY


def test_no_free_memory_at_all_is_no_reason_to_shrink() -> None:
    assert after(at(1_000), are_waiting=True, free_memory=-5e6).limit == 1_000


def test_bodies_that_wait_for_memory_leave_a_quarter() -> None:
    state = after(at(1_000), are_waiting=True, memory_shortages=1)
    assert state.limit == 250 and state.held_by is HeldBy.MEMORY
    rested = after(state, times=int(MEMORY_REST) - 1, are_waiting=True)
    assert rested.limit == 250 and rested.held_by is HeldBy.MEMORY
    assert after(rested, times=2, are_waiting=True).limit > 250


def test_a_shortage_of_files_leaves_three_quarters_for_a_minute() -> None:
    state = after(at(1_000), are_waiting=True, file_shortages=50)
    assert state.limit == 750 and state.held_by is HeldBy.FILES
    rested = after(state, times=int(FILES_REST) - 1, are_waiting=True)
    assert rested.limit == 750 and rested.held_by is HeldBy.FILES
    assert after(rested, times=2, are_waiting=True).limit > 750
    assert after(state, are_waiting=True, file_shortages=1).limit == 562, "it was not enough"


def test_shortages_leave_one_fetch_at_least() -> None:
    assert after(at(10), times=50, file_shortages=1).limit == 1
    assert after(at(1), times=400, are_waiting=True).limit > 1


def test_sites_that_fall_silent_together_mean_an_overloaded_line() -> None:
    state = after(at(2_000), are_waiting=True, expected=40, lost=12)
    assert state.limit == 1_600 and state.held_by is HeldBy.LINE
    waiting = after(state, times=int(LINE_REST) - 1, are_waiting=True, expected=40, lost=12)
    assert waiting.limit == 1_600, "the effect of the cut takes time"
    assert after(waiting, are_waiting=True, expected=40, lost=12).limit == 1_280
    assert after(at(300), times=500, expected=40, lost=40).limit == AUTO.start


@pytest.mark.parametrize(("expected", "lost"), [(40, 4), (5, 5), (0, 0)])
def test_a_few_sites_that_fall_silent_mean_nothing(expected: int, lost: int) -> None:
    assert after(at(2_000), cpu=0.5, expected=expected, lost=lost).limit == 2_000


@pytest.mark.parametrize("most_by", [HeldBy.MOST, HeldBy.FILES, HeldBy.MEMORY])
def test_it_never_exceeds_the_most_and_says_why(most_by: HeldBy) -> None:
    bounds = Bounds(start=250, most=480, most_by=most_by, bytes_each=60_000)
    state = after(first(bounds), bounds=bounds, times=20, are_waiting=True, cpu=0.1)
    assert state.limit == 480 and state.held_by is most_by
    assert after(state, bounds=bounds).held_by is HeldBy.DEMAND, "nothing waits"


def test_a_late_decision_makes_a_larger_step_but_no_jump() -> None:
    assert after(at(1_000), seconds=2.0, are_waiting=True).limit == 1_500
    assert after(at(1_000), seconds=60.0, are_waiting=True).limit == 1_500


def test_a_number_of_the_users_stays_whatever_the_cpu_does() -> None:
    for figures in ({"lag": 3.0, "rate": 900, "cpu": 1.0}, {"are_waiting": True}, {"expected": 90, "lost": 90}, {}):
        state = after(first(FIXED), bounds=FIXED, times=60, **figures)
        assert state.limit == 100 and state.held_by is HeldBy.USER


def test_a_number_of_the_users_comes_back_after_a_shortage() -> None:
    state = after(first(FIXED), bounds=FIXED, memory_shortages=1)
    assert state.limit == 25
    assert after(state, bounds=FIXED, times=60).limit == 100, "also if no domain waits"


figures = st.builds(
    Figures,
    seconds=st.floats(0.01, 100),
    are_waiting=st.booleans(),
    cpu=st.floats(0, 4),
    lag=st.floats(0, 100),
    rate=st.floats(0, 1e5),
    free_memory=st.floats(-1e12, 1e12),
    memory_shortages=st.integers(0, 2),
    file_shortages=st.integers(0, 2),
    expected=st.integers(0, 1_000),
    lost=st.integers(0, 1_000),
)


@given(st.lists(figures, max_size=30), st.sampled_from([AUTO, FIXED]))
def test_whatever_is_measured_the_number_stays_within_its_bounds(all_figures: list[Figures], bounds: Bounds) -> None:
    state = first(bounds)
    for one in all_figures:
        before, state = state, decide(state, one, bounds)
        assert 1 <= state.limit <= bounds.most
        if state.limit < before.limit:
            assert state.held_by in (HeldBy.CPU, HeldBy.MEMORY, HeldBy.FILES, HeldBy.LINE)
        if one.file_shortages or one.memory_shortages:
            assert state.limit <= before.limit


# Whole runs


def swing(limits: list[int]) -> float:
    """Return the difference between the largest and the smallest number, as a share of the mean."""
    return (max(limits) - min(limits)) / mean(limits)


def best_rate(seconds: int = 60, **machine: Any) -> float:
    """Return the visits per second of the best fixed number."""
    rates = []
    for fixed in (250, 500, 1_000, 2_000, 4_000, 8_000):
        bounds = Bounds(start=fixed, most=fixed, most_by=HeldBy.USER, bytes_each=60_000)
        rates.append(mean(Machine(bounds, **machine).run(seconds).rates[BEST_SECONDS:]))
    return max(rates)


WEBS: dict[str, dict[str, Any]] = {
    "at once": {"latency": (0.0, 0.05)},
    "usual": {"latency": (0.2, 1.5)},
    "slow": {"latency": (2.0, 6.0)},
    "silent": {"latency": (0.2, 1.5), "silent_share": 0.25},
    "costly": {"latency": (0.2, 1.5), "cost": 0.01},
    "cheap": {"latency": (0.2, 1.5), "cost": 0.001},
    "busy machine": {"latency": (0.2, 1.5), "stolen": lambda _: 0.6},
}


@pytest.mark.parametrize("web", WEBS)
def test_it_settles_within_half_a_minute_and_does_not_oscillate(web: str) -> None:
    machine = Machine(AUTO, **WEBS[web]).run(180)
    settled = machine.limits[BEST_SECONDS:]
    assert swing(settled) < 0.35, settled
    assert swing(settled[60:]) < 0.25, settled
    assert mean(machine.rates[BEST_SECONDS:]) >= 0.9 * best_rate(**WEBS[web])


def test_a_web_that_answers_at_once_needs_no_more_than_the_start() -> None:
    machine = Machine(AUTO, latency=(0.0, 0.05)).run(60)
    assert max(machine.limits) <= 1.3 * AUTO.start


def test_it_follows_a_change_of_latency_up_and_down() -> None:
    machine = Machine(AUTO, latency=(0.1, 0.4)).run(60)
    quick = mean(machine.limits[-20:])
    machine.latency = (1.0, 4.0)
    machine.run(60)
    slow = mean(machine.limits[-20:])
    assert slow > 2.5 * quick
    assert swing(machine.limits[-30:]) < 0.25
    assert mean(machine.rates[-30:]) >= 0.9 * best_rate(latency=(1.0, 4.0))
    machine.latency = (0.1, 0.4)
    machine.run(60)
    assert mean(machine.limits[-20:]) < 1.6 * quick
    assert machine.state.lag < 0.5


def test_it_gives_way_to_others_on_the_machine() -> None:
    machine = Machine(AUTO, latency=(1.0, 4.0)).run(60)
    alone = machine.state.limit
    machine.stolen = lambda _: 0.7
    machine.run(60)
    assert machine.state.limit < 0.8 * alone and machine.state.lag < 0.5


def test_memory_bounds_it() -> None:
    machine = Machine(AUTO, latency=(2.0, 6.0), memory=60e6).run(90)
    assert machine.in_flight * machine.bytes_each < machine.memory
    assert machine.state.held_by is HeldBy.MEMORY and swing(machine.limits[-30:]) < 0.1
