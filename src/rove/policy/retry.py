"""When something that failed is tried again: pure functions of how often it failed and of the delay.

Intervals grow from twice the delay by a factor of four, so that a crawl with a short delay (a test) and one with
a long delay (the web) both go on at their own pace. With the default delay of 70 s a page is tried again after
2 minutes 20, 9 minutes and 37 minutes.
"""

from __future__ import annotations

from rove.model.outcomes import TEMPORARY_FAILURES, Failed, Refused

MAX_RETRIES = 3
HOLDS_BEFORE_FAILING = 3
"""Failures in a row after which an origin counts as failing: the crawl no longer stays up for it."""
DAY = 86_400.0
_FIRST = 2.0
_GROWTH = 4.0


def is_temporary(outcome: Failed | Refused) -> bool:
    """Whether trying again may help."""
    match outcome:
        case Failed():
            return outcome.kind in TEMPORARY_FAILURES
        case Refused():
            return outcome.response.status >= 500 or outcome.response.status in (408, 425, 429)


def retry_in(attempts: int, delay: float) -> float | None:
    """Seconds until a page is tried again after so many failed attempts; None when it is given up."""
    if attempts > MAX_RETRIES:
        return None
    return _grown(attempts, delay)


def hold_for(failures: int, delay: float) -> float:
    """Seconds for which an origin is left alone whose robots.txt could not be had so many times in a row."""
    return _grown(failures, delay)


def keeps_failing(failures: int) -> bool:
    """Whether an origin has failed so often that a crawl need not wait for it."""
    return failures >= HOLDS_BEFORE_FAILING


def _grown(count: int, delay: float) -> float:
    return min(DAY, max(delay, 0.1) * _FIRST * _GROWTH ** (min(count, 20) - 1))
