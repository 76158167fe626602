"""When rove tries a failed page or robots.txt again. Pure functions of the failure count and the delay.

Waits start at twice the delay and grow by a factor of four, so that a crawl with a short delay (a test) retries soon
and one with a long delay (the web) does not. With the default delay of 70 s a page is retried after 2 min 20 s,
9 minutes and 37 minutes.
"""

from __future__ import annotations

from rove.model.outcomes import TEMPORARY_FAILURES, Failed, Refused
from rove.policy.constants import DAY, LEAST_DELAY

MAX_RETRIES = 3
HOLDS_BEFORE_FAILING = 3
"""Failures in a row after which the crawl no longer keeps running for an origin."""
_TEMPORARY_STATUSES = frozenset({408, 425, 429})
"""Besides all 5xx."""
_FIRST_WAIT = 2.0
_GROWTH = 4.0


def is_temporary(outcome: Failed | Refused) -> bool:
    """Whether a retry may help."""
    match outcome:
        case Failed():
            return outcome.kind in TEMPORARY_FAILURES
        case Refused():
            return is_temporary_status(outcome.response.status)


def is_temporary_status(status: int) -> bool:
    """Whether a request that was answered with this status may be retried."""
    return status >= 500 or status in _TEMPORARY_STATUSES


def retry_in(attempts: int, delay: float) -> float | None:
    """Return the seconds until a page is retried after its n-th failed attempt, or None to give it up."""
    return None if attempts > MAX_RETRIES else hold_for(attempts, delay)


def hold_for(failures: int, delay: float) -> float:
    """Return the seconds until a robots.txt is requested again after its n-th failure in a row."""
    return growing_wait(_FIRST_WAIT * max(delay, LEAST_DELAY), _GROWTH, failures)


def keeps_failing(failures: int) -> bool:
    """Whether an origin has failed so often that the crawl may end without it."""
    return failures >= HOLDS_BEFORE_FAILING


def growing_wait(first: float, factor: float, failures: int) -> float:
    """Return the wait after the n-th failure in a row: `first`, times `factor` for each further one, up to a day.

    >>> [growing_wait(100.0, 4.0, failures) for failures in (1, 2, 3, 1_000)]
    [100.0, 400.0, 1600.0, 86400.0]
    """
    return min(DAY, first * factor ** min(failures - 1, 40))
