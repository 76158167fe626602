"""How often a domain may be asked, judged by how it answers: pure functions of a visit's outcomes.

The delay that a person chose and the Crawl-delay of robots.txt are the least; what is found here can only make it
longer (docs/politeness.md has the rules and their reasons on one page):

- 429 and 503: a Retry-After is obeyed, up to a day; without one the delay doubles, up to an hour, and halves
  again with each visit that is answered well;
- a domain is left alone for at least ten times what its last answer took;
- a domain that does not answer at all is asked less and less, and given up after ten visits in a row;
- a domain whose pages keep repeating what it gave before is asked less often.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field

import msgspec

from rove.model.ledger import DelaySource
from rove.model.outcomes import (
    Failed,
    FailureKind,
    Fetched,
    Outcome,
    Redirected,
    Refused,
    Response,
    WrongType,
)
from rove.model.reasons import domain_given_up
from rove.model.visits import Pace
from rove.policy.http_date import parse_http_date

DAY = 86_400.0
LONGEST_BACKOFF = 3_600.0
SLOWNESS = 10.0
"""A domain is left alone for so many times what its last answer took."""
FAILURES_BEFORE_LEAVING = 3
"""Visits in a row without an answer after which a crawl does not stay up for a domain."""
FAILURES_BEFORE_GIVING_UP = 10
"""With the default delay of 70 s the tenth comes about ten hours after the first."""
REPEATS_MEMORY = 16
"""Pages over which the share of those that repeat an earlier one is taken."""
MOST_FOR_REPEATS = 10.0
"""The most that repeated texts lengthen the delay by, as a factor."""

_OVERLOADED = frozenset({429, 503})
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


@dataclass(slots=True)
class Answers:
    """What the requests of a visit came to, as far as pacing goes."""

    has_answered: bool = False
    is_overloaded: bool = False
    retry_after: float | None = None
    """The longest that was asked for."""
    last_seconds: float = 0.0
    """What the last answer took."""
    failure: FailureKind | None = None
    """Why the last request brought no answer."""
    texts: list[bool] = field(default_factory=list)
    """For each page that was stored: whether the domain had given its text before."""

    def note(self, outcome: Outcome, seconds: float) -> None:
        """Take one more request into account."""
        match outcome:
            case Fetched() | Redirected() | WrongType():
                self._answered(seconds - outcome.response.waited)
            case Refused(response=response):
                self._answered(seconds - response.waited)
                if response.status in _OVERLOADED:
                    self.is_overloaded = True
                    asked = retry_after(response)
                    if asked is not None:
                        self.retry_after = max(asked, self.retry_after or 0.0)
            case Failed(kind=kind, status=status, waited=waited):
                if status:
                    self._answered(seconds - waited)
                elif kind in _NO_ANSWER:
                    self.failure = kind

    def _answered(self, seconds: float) -> None:
        self.has_answered = True
        self.last_seconds = max(0.0, seconds)


class Pacing(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a domain is to be treated from now on. A Struct, as every request and every visit makes one."""

    pace: Pace
    pause: float = 0.0
    """Seconds from the end of the visit, where longer than the delay."""
    reason: DelaySource = DelaySource.DELAY
    gives_up: str = ""
    """Why nothing more is asked of the domain, '' if it goes on."""


def judge(answers: Answers, before: Pace, delay: float) -> Pacing:
    """What follows from a visit; `delay` is the longer of the chosen delay and the Crawl-delay."""
    if not answers.has_answered:
        return _unanswered(answers, before, delay)
    backoff = _backoff(answers, before.backoff, delay)
    repeats = _repeats(answers, before.repeats)
    pause, reason = _longest(
        delay,
        (answers.retry_after or 0.0, DelaySource.RETRY_AFTER),
        (backoff, DelaySource.BACKOFF),
        (SLOWNESS * answers.last_seconds, DelaySource.SLOW),
        (pause_for_repeats(repeats, delay), DelaySource.REPEATS),
    )
    pace = Pace(backoff=backoff, repeats=repeats)
    return Pacing(pace=pace, pause=pause, reason=reason)


def _longest(delay: float, *pauses: tuple[float, DelaySource]) -> tuple[float, DelaySource]:
    """The longest pause, and its reason where it is longer than the delay; the first of several that are equal."""
    longest, because = pauses[0]
    for pause, reason in pauses:
        if pause > longest:
            longest, because = pause, reason
    return longest, because if longest > delay else DelaySource.DELAY


def _unanswered(answers: Answers, before: Pace, delay: float) -> Pacing:
    backoff = (before.backoff, DelaySource.BACKOFF)
    if answers.failure is None:
        pause, reason = _longest(delay, backoff)
        return Pacing(pace=before, pause=pause, reason=reason)
    failures = before.failures + 1
    gives_up = failures >= FAILURES_BEFORE_GIVING_UP
    pause, reason = _longest(delay, backoff, (pause_after(failures, delay), DelaySource.FAILURES))
    return Pacing(
        pace=before.replace(failures=failures),
        pause=pause,
        reason=reason,
        gives_up=domain_given_up(answers.failure.value) if gives_up else "",
    )


def pause_after(failures: int, delay: float) -> float:
    """Seconds for which a domain is left alone after so many visits in a row without an answer."""
    return float(min(DAY, max(delay, 0.1) * 2.0 ** (min(failures, 40) - 1)))


def pause_for_repeats(repeats: float, delay: float) -> float:
    """Seconds between visits to a domain of whose pages so large a share repeats what it gave before.

    Where more than half are nothing new, it is asked half as often as would bring a new one each time.
    """
    if repeats <= 0.5:
        return 0.0
    return delay * min(MOST_FOR_REPEATS, 0.5 / max(1.0 - repeats, 0.001))


def _repeats(answers: Answers, before: float) -> float:
    """A share of the latest pages, in which the older ones fade."""
    for is_repeat in answers.texts:
        before += (is_repeat - before) / REPEATS_MEMORY
    return before


def _backoff(answers: Answers, before: float, delay: float) -> float:
    if answers.is_overloaded:
        if answers.retry_after is not None:
            return before
        return min(LONGEST_BACKOFF, 2.0 * max(delay, before, 0.1))
    halved = before / 2.0
    return halved if halved > delay else 0.0


def retry_after(response: Response, now: float | None = None) -> float | None:
    """Seconds that an answer asks to wait, a day at most; None if it asks for nothing that can be understood.

    A date is compared with the answer's own Date where it has one: what counts is the server's clock.
    """
    value = (response.header("retry-after") or "").strip()[:100]
    if not value:
        return None
    if _SECONDS.fullmatch(value):
        return min(DAY, float(value))
    until = parse_http_date(value)
    if until is None:
        return None
    at = parse_http_date(response.header("date") or "")
    if at is None:
        at = time.time() if now is None else now
    return min(DAY, max(0.0, until - at))
