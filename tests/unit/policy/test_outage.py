"""Whether the sites or the connection are to blame, with a clock that the test moves."""

from __future__ import annotations

import pytest

from rove.policy.outage import Cause, OutageRules, Silence, cause_of, is_hopeless, probe_wait

RULES = OutageRules()
BEGAN = 1_000.0
MINUTE = BEGAN + 60.0


def judged(
    *,
    now: float = MINUTE,
    witnesses: int = 0,
    strangers: int = 0,
    domains: int = 200,
    answered: int = 150,
    possible: int = 0,
    rules: OutageRules = RULES,
) -> Cause:
    silence = Silence(began=BEGAN, witnesses=witnesses, strangers=strangers)
    return cause_of(silence, now=now, domains=domains, answered=answered, possible_witnesses=possible, rules=rules)


@pytest.mark.parametrize(
    ("witnesses", "seconds", "expected"),
    [
        (5, 0.0, Cause.UNKNOWN),
        (5, 59.9, Cause.UNKNOWN),
        (5, 60.0, Cause.CONNECTION),
        (200, 0.1, Cause.UNKNOWN),
        (200, 60.0, Cause.CONNECTION),
        (200, 100_000.0, Cause.CONNECTION),
        (4, 60.0, Cause.SITES),
        (1, 0.0, Cause.SITES),
        (0, 0.0, Cause.SITES),
        (0, 100_000.0, Cause.SITES),
    ],
)
def test_several_witnesses_and_a_minute_of_silence_are_needed(witnesses: int, seconds: float, expected: Cause) -> None:
    """No other domain could be a witness."""
    assert judged(witnesses=witnesses, now=BEGAN + seconds) is expected


@pytest.mark.parametrize("strangers", [3, 20, 500, 999, 1_000, 100_000])
def test_domains_that_never_answered_prove_nothing(strangers: int) -> None:
    for seconds in (0.0, 60.0, 100_000.0):
        assert judged(strangers=strangers, now=BEGAN + seconds) is Cause.SITES
        assert judged(strangers=strangers, witnesses=4, now=BEGAN + seconds) is Cause.SITES


@pytest.mark.parametrize(
    ("witnesses", "possible", "expected"),
    [
        (0, 5, Cause.UNKNOWN),
        (1, 4, Cause.UNKNOWN),
        (4, 1, Cause.UNKNOWN),
        (4, 0, Cause.SITES),
        (0, 4, Cause.SITES),
        (3, 1, Cause.SITES),
    ],
)
@pytest.mark.parametrize("seconds", [0.0, 60.0, 3_600.0])
def test_the_question_stays_open_while_there_may_be_enough_witnesses(
    witnesses: int, possible: int, expected: Cause, seconds: float
) -> None:
    """With a long delay, it may take an hour until the fifth domain is visited."""
    assert judged(witnesses=witnesses, possible=possible, now=BEGAN + seconds) is expected


def test_a_long_list_of_dead_domains_is_not_held_back_for_ever() -> None:
    assert judged(strangers=999, possible=50, now=BEGAN) is Cause.UNKNOWN
    assert judged(strangers=1_000, possible=50, now=BEGAN) is Cause.SITES
    assert judged(strangers=1_000, witnesses=4, possible=50) is Cause.SITES
    assert judged(strangers=1_000, witnesses=5, possible=50) is Cause.CONNECTION


@pytest.mark.parametrize(
    ("domains", "seconds", "expected"),
    [
        (3, 0.0, Cause.SITES),
        (3, 60.0, Cause.SITES),
        (20, 60.0, Cause.SITES),
        (21, 0.0, Cause.UNKNOWN),
        (21, 59.9, Cause.UNKNOWN),
        (21, 60.0, Cause.CONNECTION),
        (500, 60.0, Cause.CONNECTION),
        (1_000_000, 600.0, Cause.CONNECTION),
    ],
)
def test_a_start_without_any_answer_blames_the_connection_if_there_are_many_domains(
    domains: int, seconds: float, expected: Cause
) -> None:
    for strangers in (1, 21, 1_000):
        assert judged(domains=domains, answered=0, strangers=strangers, now=BEGAN + seconds) is expected


def test_one_answer_in_the_crawl_ends_the_benefit_of_the_doubt() -> None:
    assert judged(domains=500, answered=1, strangers=499) is Cause.SITES


@pytest.mark.parametrize(
    ("answered", "seconds", "expected"),
    [(0, 0.0, False), (0, 599.9, False), (0, 600.0, True), (1, 600.0, False), (200, 1e9, False)],
)
def test_only_a_crawl_in_which_no_site_ever_answered_is_given_up(answered: int, seconds: float, expected: bool) -> None:
    assert is_hopeless(answered=answered, started=BEGAN, now=BEGAN + seconds, rules=RULES) is expected


def test_probes_are_never_more_than_thirty_seconds_apart() -> None:
    waits = [probe_wait(probes, RULES) for probes in range(200)]
    assert waits == sorted(waits)
    assert max(waits) == 30.0
    assert waits[0] == 1.0


def test_the_numbers_can_be_chosen() -> None:
    rules = OutageRules(silence=2.0, witnesses=2, few_domains=4, patience=10.0)
    assert judged(witnesses=2, now=BEGAN + 2.0, rules=rules) is Cause.CONNECTION
    assert judged(domains=5, answered=0, now=BEGAN + 2.0, rules=rules) is Cause.CONNECTION
    assert is_hopeless(answered=0, started=BEGAN, now=BEGAN + 10.0, rules=rules)
