"""How long a domain is left alone, by how it answers: a table for each rule."""

from __future__ import annotations

import time
from collections.abc import Sequence
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.model.ledger import DelaySource
from rove.model.outcomes import Failed, FailureKind, Outcome
from rove.model.visits import Pace
from rove.policy.pacing import Answers, PacingDecision, decide_pacing, pause_after, retry_after
from tests.unit.crawl.scripted import failed, page, redirect, refused, response, wrong_type

DELAY = 70.0
HOUR = 3_600.0
DAY = 86_400.0
NEW = Pace()
ANSWERED = Pace(answered=True)
FRIDAY = "Fri, 13 Feb 2009 23:31:30 GMT"
"""1234567890 seconds after the epoch."""
FRIDAY_SECONDS = 1_234_567_890.0
CHANGES_NOTHING = frozenset(
    {FailureKind.ABORTED, FailureKind.ADDRESS_REFUSED, FailureKind.PORT_REFUSED, FailureKind.BUSY, FailureKind.ENCODING}
)


def answers(*outcomes: Outcome, seconds: float = 0.0) -> Answers:
    """Return the answers of a visit with these outcomes."""
    visit = Answers()
    for outcome in outcomes:
        visit.note(outcome, seconds)
    return visit


def after(*outcomes: Outcome, before: Pace = NEW, delay: float = DELAY) -> PacingDecision:
    return decide_pacing(answers(*outcomes), before, delay)


def overloaded(status: int, wait: str, *more: tuple[str, str]) -> Outcome:
    return refused(status, ("Retry-After", wait), *more)


# Retry-After


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", 0.0),
        ("1", 1.0),
        ("120", 120.0),
        (" 120 ", 120.0),
        ("0120", 120.0),
        ("1.5", 1.5),
        ("1.", 1.0),
        ("86399", 86_399.0),
        ("86400", DAY),
        ("86401", DAY),
        ("999999999999", DAY),
        ("9" * 13, DAY),
        ("9" * 400, DAY),
        ("-1", None),
        ("+5", None),
        ("", None),
        ("   ", None),
        ("soon", None),
        ("120 seconds", None),
        ("1e3", None),
        ("0x10", None),
        ("inf", None),
        ("nan", None),
        ("1,000", None),
        ("١٢", None),
        ("²", None),
        (".5", None),
        ("5 5", None),
        ("Fri, 99 Feb 2009 23:31:30 GMT", None),
        ("Fri, 13 Feb 99999999 23:31:30 GMT", None),
        ("Fri, 13 Feb", None),
    ],
)
def test_a_retry_after(value: str, expected: float | None) -> None:
    assert retry_after(response(503, ("Retry-After", value))) == expected


def test_an_answer_without_it_asks_for_nothing() -> None:
    assert retry_after(response(503)) is None


@pytest.mark.parametrize("name", ["Retry-After", "retry-after", "RETRY-AFTER"])
def test_its_name_is_found_however_it_is_spelt(name: str) -> None:
    assert retry_after(response(503, (name, "7"))) == 7.0


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("Fri, 13 Feb 2009 23:31:00 GMT", 30.0),
        ("Fri, 13 Feb 2009 22:31:30 GMT", 3_600.0),
        (FRIDAY, 0.0),
        ("Fri, 13 Feb 2009 23:31:31 GMT", 0.0),
        ("Thu, 12 Feb 2009 23:31:30 GMT", DAY),
        ("Thu, 12 Feb 2009 23:31:29 GMT", DAY),
        ("Fri, 13 Feb 2009 23:31:00 +0000", 30.0),
        ("Friday, 13-Feb-09 23:31:00 GMT", 30.0),
        ("Fri Feb 13 23:31:00 2009", 30.0),
        ("Sat, 14 Feb 2009 00:31:00 +0100", 30.0),
        ("Fri, 13 Feb 2009 23:31:00", 30.0),
    ],
)
def test_a_date_counts_from_the_date_of_the_answer(date: str, expected: float) -> None:
    """Neither our clock nor a wrong one of the server matters."""
    head = response(503, ("Date", date), ("Retry-After", FRIDAY))
    assert retry_after(head, now=5.0) == expected


@pytest.mark.parametrize("date", [(), (("Date", "today"),), (("Date", ""),)])
@pytest.mark.parametrize(
    ("now", "expected"),
    [(FRIDAY_SECONDS - 100, 100.0), (FRIDAY_SECONDS, 0.0), (FRIDAY_SECONDS + 1_000, 0.0), (0.0, DAY)],
)
def test_without_one_it_counts_from_now(date: Sequence[tuple[str, str]], now: float, expected: float) -> None:
    assert retry_after(response(429, ("Retry-After", FRIDAY), *date), now) == expected


def test_now_is_the_wall_clock() -> None:
    later = formatdate(time.time() + 1_000, usegmt=True)
    assert retry_after(response(429, ("Retry-After", later))) == pytest.approx(1_000, abs=60)


def test_a_header_of_any_length_is_read_in_no_time() -> None:
    assert retry_after(response(503, ("Retry-After", "1" * 1_000_000))) == DAY
    assert retry_after(response(503, ("Retry-After", FRIDAY + "(" * 1_000_000))) is not None


@given(st.text() | st.from_regex(r"[A-Z][a-z]{2}, \d{1,3} [A-Z][a-z]{2} \d{1,6} \d{2}:\d{2}:\d{2} .*"))
def test_any_value_asks_for_at_most_a_day(value: str) -> None:
    seconds = retry_after(response(503, ("Retry-After", value)), now=FRIDAY_SECONDS)
    assert seconds is None or 0.0 <= seconds <= DAY


@given(st.text())
def test_any_date_of_the_answer_is_accepted(value: str) -> None:
    seconds = retry_after(response(503, ("Retry-After", FRIDAY), ("Date", value)), now=0.0)
    assert seconds is not None and 0.0 <= seconds <= DAY


@pytest.mark.parametrize("status", [429, 503])
def test_it_is_obeyed(status: int) -> None:
    decision = after(overloaded(status, "120"))
    assert decision == PacingDecision(pace=ANSWERED, pause=120.0, reason=DelaySource.RETRY_AFTER)


@pytest.mark.parametrize("status", [400, 403, 404, 408, 500, 502, 504])
def test_elsewhere_it_means_nothing(status: int) -> None:
    decision = after(overloaded(status, "120"))
    assert (decision.pause, decision.reason) == (0.0, DelaySource.DELAY)


@pytest.mark.parametrize("wait", ["0", "1", "70"])
def test_one_within_the_delay_lengthens_nothing(wait: str) -> None:
    decision = after(overloaded(429, wait))
    assert decision.pause == float(wait)
    assert (decision.reason, decision.pace) == (DelaySource.DELAY, ANSWERED)


def test_the_longest_of_a_visit_counts() -> None:
    decision = after(overloaded(503, "500"), overloaded(429, "300"), page())
    assert (decision.pause, decision.reason) == (500.0, DelaySource.RETRY_AFTER)


def test_it_leaves_the_backoff_as_it_was() -> None:
    """A Retry-After already says how long to wait; it does not change the backoff."""
    decision = after(overloaded(503, "500"), before=Pace(backoff=280.0))
    assert decision == PacingDecision(
        pace=Pace(backoff=280.0, answered=True), pause=500.0, reason=DelaySource.RETRY_AFTER
    )
    decision = after(overloaded(503, "100"), before=Pace(backoff=280.0))
    assert (decision.pause, decision.reason) == (280.0, DelaySource.BACKOFF)


# Backoff


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("delay", "before", "expected"),
    [
        (70.0, 0.0, 140.0),
        (70.0, 140.0, 280.0),
        (70.0, 2_240.0, 3_600.0),
        (70.0, 3_600.0, 3_600.0),
        (70.0, 20.0, 140.0),
        (0.0, 0.0, 0.2),
        (0.05, 0.0, 0.2),
        (0.0, 0.2, 0.4),
        (1_800.0, 0.0, 3_600.0),
        (1_900.0, 0.0, 3_600.0),
        (5_000.0, 0.0, 3_600.0),
    ],
)
def test_without_a_retry_after_the_delay_doubles_up_to_an_hour(
    status: int, delay: float, before: float, expected: float
) -> None:
    decision = after(refused(status), before=Pace(backoff=before), delay=delay)
    assert decision.pause == decision.pace.backoff == pytest.approx(expected)
    is_longer = expected > delay
    assert decision.reason is (DelaySource.BACKOFF if is_longer else DelaySource.DELAY)


@pytest.mark.parametrize("wait", ["nonsense", "-5", "", "1s"])
def test_a_retry_after_that_cannot_be_understood_is_none(wait: str) -> None:
    assert after(overloaded(503, wait)).pace == Pace(backoff=140.0, answered=True)


@pytest.mark.parametrize(
    ("before", "expected"), [(3_600.0, 1_800.0), (1_800.0, 900.0), (142.0, 71.0), (140.0, 0.0), (70.0, 0.0), (0.0, 0.0)]
)
@pytest.mark.parametrize("good", [page(), redirect("/x"), refused(404), refused(500), wrong_type()])
def test_it_halves_with_each_visit_that_is_answered(good: Outcome, before: float, expected: float) -> None:
    decision = after(good, before=Pace(backoff=before))
    assert decision.pace == Pace(backoff=expected, answered=True)
    assert decision.pause == expected
    assert decision.reason is (DelaySource.BACKOFF if expected else DelaySource.DELAY)


def test_up_and_down_again() -> None:
    pace, seen = NEW, []
    for outcome in [refused(429)] * 7 + [page()] * 7:
        pace = after(outcome, before=pace).pace
        seen.append(pace.backoff)
    up = [140.0, 280.0, 560.0, 1_120.0, 2_240.0, 3_600.0, 3_600.0]
    assert seen == [*up, 1_800.0, 900.0, 450.0, 225.0, 112.5, 0.0, 0.0]


def test_one_overloaded_answer_in_a_visit_is_enough() -> None:
    assert after(refused(503), page()).pace == Pace(backoff=140.0, answered=True)
    assert after(page(), refused(503)).pace == Pace(backoff=140.0, answered=True)


def test_a_retry_after_for_one_of_two_is_for_the_visit() -> None:
    decision = after(refused(503), overloaded(503, "300"))
    assert decision == PacingDecision(pace=ANSWERED, pause=300.0, reason=DelaySource.RETRY_AFTER)


# Slow answers


@pytest.mark.parametrize(
    ("seconds", "pause", "reason"),
    [
        (0.0, 0.0, DelaySource.DELAY),
        (0.5, 5.0, DelaySource.DELAY),
        (7.0, 70.0, DelaySource.DELAY),
        (7.1, 71.0, DelaySource.SLOW),
        (60.0, 600.0, DelaySource.SLOW),
        (180.0, 1_800.0, DelaySource.SLOW),
    ],
)
@pytest.mark.parametrize(
    "answer",
    [page(), redirect("/x"), refused(404), wrong_type(), Failed(kind=FailureKind.RESET, detail="x", status=200)],
)
def test_a_domain_is_left_alone_for_ten_times_what_it_took(
    answer: Outcome, seconds: float, pause: float, reason: DelaySource
) -> None:
    decision = decide_pacing(answers(answer, seconds=seconds), NEW, DELAY)
    assert decision.pause == pytest.approx(pause)
    assert (decision.reason, decision.pace) == (reason, ANSWERED)


def test_the_last_answer_of_a_visit_counts() -> None:
    visit = Answers()
    visit.note(page(), 60.0)
    visit.note(page(), 1.0)
    assert decide_pacing(visit, NEW, DELAY).pause == 10.0


def test_a_request_without_an_answer_has_no_time() -> None:
    visit = Answers()
    visit.note(page(), 1.0)
    visit.note(failed(FailureKind.TIMEOUT_FIRST_BYTE), 60.0)
    assert decide_pacing(visit, NEW, DELAY).pause == 10.0


@pytest.mark.parametrize(
    ("seconds", "pause", "reason"),
    [(0.0099, 0.0, DelaySource.DELAY), (0.01, 100.0, DelaySource.EXPENSIVE), (0.04, 400.0, DelaySource.EXPENSIVE)],
)
def test_a_page_that_takes_long_to_read_lengthens_the_pause(seconds: float, pause: float, reason: DelaySource) -> None:
    visit = answers(page(), seconds=1.0)
    visit.reading_seconds = seconds
    decision = decide_pacing(visit, NEW, DELAY)
    assert (decision.pause if reason is DelaySource.EXPENSIVE else 0.0, decision.reason) == (pause, reason)


def test_the_longest_reason_is_named() -> None:
    slow = answers(refused(503), seconds=20.0)
    assert decide_pacing(slow, NEW, DELAY).reason is DelaySource.SLOW
    slower = answers(overloaded(503, "201"), seconds=20.0)
    assert decide_pacing(slower, NEW, DELAY).reason is DelaySource.RETRY_AFTER
    assert decide_pacing(slower, Pace(backoff=202.0), DELAY).reason is DelaySource.BACKOFF


# Failures


@pytest.mark.parametrize("kind", sorted(set(FailureKind) - CHANGES_NOTHING))
def test_a_visit_without_an_answer_is_counted(kind: FailureKind) -> None:
    decision = after(failed(kind), before=Pace(failures=2))
    assert decision.pace == Pace(failures=3)
    assert (decision.pause, decision.reason) == (4 * DELAY, DelaySource.FAILURES)
    assert decision.give_up_reason == ""


@pytest.mark.parametrize("kind", sorted(CHANGES_NOTHING))
@pytest.mark.parametrize("before", [NEW, Pace(failures=9), Pace(backoff=500.0), Pace(backoff=500.0, failures=9)])
def test_what_is_not_the_domains_fault_changes_nothing(kind: FailureKind, before: Pace) -> None:
    decision = after(failed(kind), before=before)
    assert (decision.pace, decision.give_up_reason) == (before, "")
    assert decision.pause == before.backoff


def test_a_visit_that_asked_nothing_changes_nothing() -> None:
    before = Pace(backoff=500.0, failures=9)
    decision = after(before=before)
    assert (decision.pace, decision.pause, decision.give_up_reason) == (before, 500.0, "")


@pytest.mark.parametrize("kind", sorted(CHANGES_NOTHING))
def test_a_request_of_ours_that_was_cut_names_no_reason_where_there_is_none(kind: FailureKind) -> None:
    assert after(failed(kind)).reason is DelaySource.DELAY


def test_pauses_double_and_the_tenth_time_is_the_last() -> None:
    pace, pauses, given_up = NEW, [], []
    for _ in range(10):
        decision = after(failed(FailureKind.CONNECT), before=pace)
        pace = decision.pace
        pauses.append(decision.pause / DELAY)
        given_up.append(decision.give_up_reason)
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    assert given_up == [""] * 9 + ["domain given up: connect"]
    assert 9 < sum(pauses[:-1]) * DELAY / 3_600 < 11, "about ten hours after the first"


@pytest.mark.parametrize(
    ("failures", "delay", "expected"),
    [
        (1, 70.0, 70.0),
        (11, 70.0, 71_680.0),
        (12, 70.0, DAY),
        (1, 0.0, 0.1),
        (2, 0.0, 0.2),
        (10, 0.0, 51.2),
        (1_000_000, 70.0, DAY),
        (1_000_000, 0.0, DAY),
        (1, 200_000.0, DAY),
    ],
)
def test_the_pause_after_failures(failures: int, delay: float, expected: float) -> None:
    assert pause_after(failures, delay) == pytest.approx(expected)


@pytest.mark.parametrize("good", [page(), redirect("/x"), refused(404), refused(500), wrong_type()])
def test_a_single_answer_resets(good: Outcome) -> None:
    decision = after(good, before=Pace(failures=9))
    assert decision == PacingDecision(pace=ANSWERED, pause=0.0)


def test_an_answer_that_breaks_off_is_one() -> None:
    broken = Failed(kind=FailureKind.RESET, detail="x", status=200)
    assert after(broken, before=Pace(failures=9)).pace == ANSWERED


@pytest.mark.parametrize("status", [429, 503])
def test_an_overloaded_answer_resets_as_well(status: int) -> None:
    assert after(refused(status), before=Pace(failures=9)).pace == Pace(backoff=140.0, answered=True)


@pytest.mark.parametrize(
    "outcomes",
    [
        (failed(FailureKind.CONNECT), page()),
        (failed(FailureKind.TLS), refused(404), page()),
        (page(), failed(FailureKind.RESET)),
    ],
)
def test_a_visit_of_which_one_request_is_answered_is_answered(outcomes: Sequence[Outcome]) -> None:
    """https fails, http answers: the domain is alive."""
    assert after(*outcomes, before=Pace(failures=9)) == PacingDecision(pace=ANSWERED, pause=0.0)


def test_the_last_failure_of_a_visit_is_the_one_that_is_named() -> None:
    both = (failed(FailureKind.TLS), failed(FailureKind.CONNECT))
    decision = after(*both, before=Pace(failures=9))
    assert decision.give_up_reason == "domain given up: connect"
    assert decision.pace.failures == 10, "a visit counts once"


def test_the_backoff_outlives_failures() -> None:
    decision = after(failed(), before=Pace(backoff=1_000.0))
    assert decision.pace == Pace(backoff=1_000.0, failures=1)
    assert (decision.pause, decision.reason) == (1_000.0, DelaySource.BACKOFF)


# Whatever a domain does

OUTCOMES: st.SearchStrategy[Outcome] = st.one_of(
    st.sampled_from([page(), redirect("/x"), wrong_type()]),
    st.sampled_from(sorted(FailureKind)).map(failed),
    st.sampled_from([404, 429, 500, 503]).map(refused),
    st.builds(
        overloaded,
        st.sampled_from([404, 429, 503]),
        st.one_of(st.text(), st.integers(0, 10**14).map(str), st.just(FRIDAY)),
    ),
)
REQUESTS = st.lists(st.tuples(OUTCOMES, st.floats(0.0, 200.0)), max_size=8)
DELAYS = st.floats(0.0, 2 * DAY)


@given(st.lists(REQUESTS, max_size=30), DELAYS)
def test_pauses_and_backoffs_are_bounded(visits: list[list[tuple[Outcome, float]]], delay: float) -> None:
    pace = NEW
    for requests in visits:
        visit = Answers()
        for outcome, seconds in requests:
            visit.note(outcome, seconds)
        decision = decide_pacing(visit, pace, delay)
        assert 0.0 <= decision.pause <= max(DAY, 10 * visit.last_seconds)
        assert 0.0 <= decision.pace.backoff <= HOUR
        assert decision.pace.failures in (0, pace.failures, pace.failures + 1)
        assert bool(decision.give_up_reason) is (
            decision.pace.failures > pace.failures and decision.pace.failures >= 10
        )
        pace = decision.pace


@given(st.floats(0.0, HOUR), st.integers(0, 9), DELAYS)
def test_good_answers_always_bring_the_backoff_to_an_end(backoff: float, failures: int, delay: float) -> None:
    pace = Pace(backoff=backoff, failures=failures)
    for _ in range(16):
        decision = after(page(), before=pace, delay=delay)
        assert decision.pace.backoff <= pace.backoff / 2
        pace = decision.pace
        if delay >= 0.1 and pace == ANSWERED:
            break
    else:
        assert delay < 0.1, "down from an hour to a tenth of a second in sixteen visits"
        for _ in range(1_200):
            pace = after(page(), before=pace, delay=delay).pace
    assert pace == ANSWERED


@given(REQUESTS, st.floats(0.0, HOUR), DELAYS)
def test_the_reason_is_the_delay_where_nothing_is_longer(
    requests: list[tuple[Outcome, float]], backoff: float, delay: float
) -> None:
    visit = Answers()
    for outcome, seconds in requests:
        visit.note(outcome, seconds)
    decision = decide_pacing(visit, Pace(backoff=backoff), delay)
    assert (decision.reason is not DelaySource.DELAY) is (decision.pause > delay)


def test_a_domain_that_repeats_itself_is_asked_less_often() -> None:
    repeated = answers(page())
    repeated.texts.append(True)
    decision, visits = decide_pacing(repeated, NEW, DELAY), 1
    while decision.reason is DelaySource.DELAY:
        decision, visits = decide_pacing(repeated, decision.pace, DELAY), visits + 1
    assert 5 < visits < 20
    assert decision.reason is DelaySource.REPEATS
    assert decision.pause > DELAY
    for _ in range(200):
        decision = decide_pacing(repeated, decision.pace, DELAY)
    assert decision.pause == 10 * DELAY


def test_new_texts_bring_a_domain_back() -> None:
    new = answers(page())
    new.texts.append(False)
    decision = decide_pacing(new, Pace(repeats=1.0), DELAY)
    for _ in range(20):
        decision = decide_pacing(new, decision.pace, DELAY)
    assert decision.reason is DelaySource.DELAY
    assert decision.pace.repeats < 0.5


def test_a_visit_without_a_page_leaves_the_share_of_repeats_alone() -> None:
    assert after(refused(404), before=Pace(repeats=0.75)).pace.repeats == 0.75
    failure = after(failed(FailureKind.CONNECT), before=Pace(repeats=0.75))
    assert failure.pace == Pace(repeats=0.75, failures=1)
