"""Decides how long rove leaves a domain alone after a visit. Pure functions of the visit's outcomes.

The operator's delay and the Crawl-delay of robots.txt are the minimum; these rules can only lengthen it
(docs/politeness.md explains them). The frontier enforces the result: `lease` and `close_leases` in its queries.sql.

- After 429 or 503, rove obeys a Retry-After of up to a day. Without one, and after a bot wall, the delay doubles, up to
  an hour, and halves again after each visit without any of them.
- rove leaves a domain alone for at least ten times as long as its last answer took.
- A domain whose page takes long to read is visited less often, so that it cannot slow down other domains.
- A domain that does not answer at all is visited less and less often, and given up after ten visits in a row.
- A domain whose pages keep repeating texts that it has already served is visited less often.
- If many domains are visited for the first time at once, their second visits are spread out (policy/spread.py).
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field

import msgspec

from rove.model.ledger import DelaySource
from rove.model.outcomes import Failed, FailureKind, Fetched, Outcome, Redirected, Refused, Response, WrongType
from rove.model.reasons import domain_given_up
from rove.model.visits import Pace
from rove.policy.challenges import is_challenge
from rove.policy.constants import DAY, LEAST_DELAY, OVERLOADED
from rove.policy.http_date import parse_http_date
from rove.policy.retry import growing_wait

LONGEST_BACKOFF = 3_600.0
SLOWNESS = 10.0
"""The pause after a visit is at least this many times as long as the last answer took."""
SECONDS_PER_CHARACTER, SECONDS_PER_TAG = 8e-9, 5e-7
"""CPU time that reading a page takes, roughly. An estimate is the same on every machine, however busy it is."""
EXPENSIVE_SECONDS = 0.01
"""Time from which on the domain of a page is slowed down: several times what ordinary pages take."""
EXPENSE = 10_000.0
"""The pause after an expensive page is this many times as long, so that its domain gets 0.01 % of a process."""
FAILURES_BEFORE_LEAVING = 3
"""Visits in a row without an answer after which the crawl may end without the domain."""
FAILURES_BEFORE_GIVING_UP = 10
"""With the default delay of 70 s the tenth visit comes about ten hours after the first."""
REPEATS_MEMORY = 16
"""Number of recent pages over which the share of repeated texts is averaged."""
MOST_FOR_REPEATS = 10.0
"""Maximum factor by which repeated texts lengthen the delay."""

_NO_ANSWER = frozenset(
    {
        FailureKind.DNS_NOT_FOUND,
        FailureKind.DNS,
        FailureKind.CONNECT,
        FailureKind.TLS,
        FailureKind.TIMEOUT_CONNECT,
        FailureKind.TIMEOUT_FIRST_BYTE,
        FailureKind.TIMEOUT_TOTAL,
        FailureKind.TOO_SLOW,
        FailureKind.RESET,
        FailureKind.PROTOCOL,
    }
)
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]*)?")
_MAX_VALUE = 100


@dataclass(slots=True)
class Answers:
    """Collects what pacing needs to know about the requests of one visit."""

    has_answered: bool = False
    is_overloaded: bool = False
    """It responded with 429, 503 or a bot wall."""
    retry_after: float | None = None
    """The longest Retry-After of the visit in seconds."""
    last_seconds: float = 0.0
    """Duration of the last request that was answered."""
    reading_seconds: float = 0.0
    """Estimated CPU time for reading the pages of the visit."""
    failure: FailureKind | None = None
    """Why the last unanswered request got no answer."""
    ends_in_silence: bool = False
    """Whether the last request got no answer."""
    spread: float = 0.0
    """The share of the delay by which the next visit comes later, so that not all domains are due at once."""
    texts: list[bool] = field(default_factory=list)
    """For each stored page: whether the domain had served its text before."""

    def note(self, outcome: Outcome, seconds: float) -> None:
        """Take one more request into account."""
        if not isinstance(outcome, Failed) and is_challenge(outcome.response):
            self.is_overloaded = True
        match outcome:
            case Fetched() | Redirected() | WrongType():
                self._answered(seconds - outcome.response.waited)
            case Refused(response=response):
                self._answered(seconds - response.waited)
                if response.status in OVERLOADED:
                    self.is_overloaded = True
                    wanted = retry_after(response)
                    if wanted is not None:
                        self.retry_after = max(wanted, self.retry_after or 0.0)
            case Failed(kind=kind, status=status, waited=waited):
                if status:
                    self._answered(seconds - waited)
                elif kind in _NO_ANSWER:
                    self.failure = kind
                    self.ends_in_silence = True

    def _answered(self, seconds: float) -> None:
        self.has_answered = True
        self.ends_in_silence = False
        self.last_seconds = max(0.0, seconds)


# A Struct, because every request and every visit makes one.
class PacingDecision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How long to leave a domain alone after a visit, and whether to give it up."""

    pace: Pace
    """The domain's new pace."""
    pause: float = 0.0
    """Seconds from the end of the visit; it may be shorter than the delay, which applies anyway."""
    reason: DelaySource = DelaySource.DELAY
    give_up_reason: str = ""
    """Why the domain is given up; '' if it is not."""


def decide_pacing(answers: Answers, before: Pace, delay: float) -> PacingDecision:
    """Return what follows from a visit; `delay` is the longer of the operator's delay and the Crawl-delay."""
    if not answers.has_answered:
        return _unanswered(answers, before, delay)
    backoff = _backoff(answers, before.backoff, delay)
    repeats = _repeats(answers, before.repeats)
    pause, reason = _longest(
        delay,
        (answers.retry_after or 0.0, DelaySource.RETRY_AFTER),
        (backoff, DelaySource.BACKOFF),
        (SLOWNESS * answers.last_seconds, DelaySource.SLOW),
        (pause_for_expense(answers.reading_seconds), DelaySource.EXPENSIVE),
        (pause_for_repeats(repeats, delay), DelaySource.REPEATS),
        (delay * (1.0 + answers.spread) if answers.spread else 0.0, DelaySource.SPREAD),
    )
    pace = Pace(backoff=backoff, repeats=repeats, answered=True)
    return PacingDecision(pace=pace, pause=pause, reason=reason)


def _longest(delay: float, *pauses: tuple[float, DelaySource]) -> tuple[float, DelaySource]:
    """Return the longest pause and its source; the source is the delay where that is no shorter."""
    longest, source = pauses[0]
    for pause, pause_source in pauses:
        if pause > longest:
            longest, source = pause, pause_source
    return longest, source if longest > delay else DelaySource.DELAY


def _unanswered(answers: Answers, before: Pace, delay: float) -> PacingDecision:
    backoff = (before.backoff, DelaySource.BACKOFF)
    if answers.failure is None:
        pause, reason = _longest(delay, backoff)
        return PacingDecision(pace=before, pause=pause, reason=reason)
    failures = before.failures + 1
    gives_up = failures >= FAILURES_BEFORE_GIVING_UP
    pause, reason = _longest(delay, backoff, (pause_after(failures, delay), DelaySource.FAILURES))
    return PacingDecision(
        pace=before.replace(failures=failures),
        pause=pause,
        reason=reason,
        give_up_reason=domain_given_up(answers.failure.value) if gives_up else "",
    )


def pause_after(failures: int, delay: float) -> float:
    """Return the seconds to leave a domain alone after its n-th visit in a row without an answer."""
    return growing_wait(max(delay, LEAST_DELAY), 2.0, failures)


def reading_seconds(characters: int, tags: int) -> float:
    """Estimate the CPU time for reading a page.

    >>> round(reading_seconds(characters=165_000, tags=1_700), 4)
    0.0022
    """
    return SECONDS_PER_CHARACTER * characters + SECONDS_PER_TAG * tags


def pause_for_expense(reading_seconds: float) -> float:
    """Return the seconds between visits to a domain whose page takes this much CPU time to read.

    >>> pause_for_expense(0.002), pause_for_expense(0.025)
    (0.0, 250.0)
    """
    return EXPENSE * reading_seconds if reading_seconds >= EXPENSIVE_SECONDS else 0.0


def pause_for_repeats(repeats: float, delay: float) -> float:
    """Return the seconds between visits to a domain, given the share of its pages that repeat earlier texts.

    Up to one half, repeats cost nothing. Above, the pause is inversely proportional to the share of new texts.
    """
    if repeats <= 0.5:
        return 0.0
    return delay * min(MOST_FOR_REPEATS, 0.5 / max(1.0 - repeats, 0.001))


def _repeats(answers: Answers, before: float) -> float:
    """Return the moving average of the share of repeated texts."""
    for is_repeat in answers.texts:
        before += (is_repeat - before) / REPEATS_MEMORY
    return before


def _backoff(answers: Answers, before: float, delay: float) -> float:
    if answers.is_overloaded:
        if answers.retry_after is not None:
            return before
        return min(LONGEST_BACKOFF, 2.0 * max(delay, before, LEAST_DELAY))
    halved = before / 2.0
    return halved if halved > delay else 0.0


def retry_after(response: Response, now: float | None = None) -> float | None:
    """Return the seconds of a Retry-After header, at most a day; None if there is none that makes sense.

    A date is compared with the response's own Date if it has one, because the server's clock decides.
    """
    value = (response.header("retry-after") or "").strip()[:_MAX_VALUE]
    if not value:
        return None
    if _SECONDS.fullmatch(value):
        return min(DAY, float(value))
    until = parse_http_date(value)
    if until is None:
        return None
    sent = parse_http_date(response.header("date") or "")
    if sent is None:
        sent = time.time() if now is None else now
    return min(DAY, max(0.0, until - sent))
