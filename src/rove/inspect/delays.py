"""Why a domain is left alone after a visit, and for how long."""

from __future__ import annotations

from rove.model.ledger import DelaySource
from rove.model.visits import Pace
from rove.policy.pacing import pause_after, pause_for_repeats


def delays_of(
    delay: float, crawl_delay: float, pace: Pace | None = None, last: tuple[DelaySource, float] | None = None
) -> dict[DelaySource, float]:
    """Return the reasons to leave a domain alone, in seconds. The longest comes first and is in force.

    `delay` is the operator's; `last` is the delay after the last visit, if it has not passed.
    """
    delays = {DelaySource.DELAY: delay, DelaySource.CRAWL_DELAY: crawl_delay}
    if pace is not None:
        longer = max(delay, crawl_delay)
        delays[DelaySource.BACKOFF] = pace.backoff
        if pace.failures:
            delays[DelaySource.FAILURES] = pause_after(pace.failures, longer)
        delays[DelaySource.REPEATS] = pause_for_repeats(pace.repeats, longer)
    if last is not None:
        source, seconds = last
        delays[source] = max(seconds, delays.get(source, 0.0))
    return {
        source: seconds
        for source, seconds in sorted(delays.items(), key=lambda item: -item[1])
        if seconds > 0 or source is DelaySource.DELAY
    }
