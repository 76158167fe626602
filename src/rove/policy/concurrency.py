"""Decides how many fetches one process may have in flight. A pure function of measured figures.

The number grows while domains wait for a slot and the process has headroom. It shrinks when something runs short.

- It starts with START fetches on the machine, and the CPU alone never lowers it below its start. A web that answers at
  once keeps the CPU busy with these, and more would only wait in rove's own queues.
- It grows by up to a quarter per second. The steps become smaller as the CPU fills up.
- Between the event-loop lag at which it stops growing and the one at which it shrinks lies a wide band, in which it
  stays as it is. Above the band, Little's law gives the excess: the visits that end per second, times the excess lag.
- The number at which something ran short is the brink. Near the brink the number grows slowly, so that it does not
  oscillate. When it has passed the brink without harm, because the web or the machine has changed, it grows fast again.

Slow answers alone do not lower the number: they need more fetches in flight, not fewer. A line that is overloaded
shows in another way: sites that answered at their last visit do not answer any more.

A number that the user has chosen is both the start and the maximum. Only shortages lower it, and only for a while.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable

import msgspec

START = 500
"""Fetches in flight on one machine when a crawl starts."""
MOST = 10_000
"""Fetches in flight in one process."""

FASTEST_GROWTH = 0.25
"""Growth per second, as a share of the number."""
SLOW_GROWTH = 0.02
"""Growth per second near the brink."""
NEAR_BRINK, PAST_BRINK = 0.8, 1.2
"""Growth is slow between these multiples of the brink."""
FULL_CPU = 0.9
"""Share of one core at which the event loop's thread counts as busy."""
CALM_LAG = 0.08
"""Event-loop lag, in seconds, up to which the number grows."""
HIGH_LAG = 0.3
"""Event-loop lag, in seconds, from which on the number shrinks."""
AIMED_LAG = 0.2
LARGEST_CUT = 0.2
"""The largest cut because of lag or lost answers, as a share of the number."""
LONGEST_EFFECT = 6.0
"""A change takes effect when the visits before it have been answered. This is the longest wait for that."""
SMOOTHING = 2.0
"""Figures are moving averages over about this many seconds."""
ANSWERS_SMOOTHING = 10.0
MOST_LOST = 0.2
"""The line counts as overloaded if a larger share of the sites that answered before do not answer now."""
LEAST_EXPECTED = 20
"""With fewer expected answers, nothing is concluded from those that are missing."""
FILES_CUT, FILES_REST = 0.25, 60.0
MEMORY_CUT, MEMORY_REST = 0.75, 5.0
LINE_REST = 20.0
"""Cuts, and the seconds after each in which the number does not grow. A connection times out after about 20 s."""
LONGEST_STEP = 2.0
"""A decision that comes late counts for no more seconds than this."""


class HeldBy(enum.StrEnum):
    """Why the number in flight does not grow."""

    NOTHING = "nothing"
    """It grows."""
    DEMAND = "demand"
    """No domain waits for a slot."""
    CPU = "cpu"
    MEMORY = "memory"
    FILES = "open-files"
    LINE = "line"
    MOST = "maximum"
    USER = "concurrency"


HELD_BY_TEXTS = {
    HeldBy.NOTHING: "growing",
    HeldBy.DEMAND: "enough for the domains that are ready",
    HeldBy.CPU: "limited by the CPU",
    HeldBy.MEMORY: "limited by memory",
    HeldBy.FILES: "limited by open files",
    HeldBy.LINE: "limited by the line, which loses answers",
    HeldBy.MOST: "the most that a process may have",
    HeldBy.USER: "given with --concurrency",
}


def held_by_text(held_by: Iterable[str]) -> str:
    """Return the phrase that says why the number does not grow; each reason is named once.

    >>> held_by_text(["cpu", "cpu", "memory"])
    'limited by the CPU; limited by memory'
    """
    return "; ".join(HELD_BY_TEXTS[HeldBy(reason)] for reason in sorted(set(held_by)) if reason in HELD_BY_TEXTS)


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What one process may do at most."""

    start: int
    most: int
    most_by: HeldBy
    """What sets `most`."""
    bytes_each: int
    """Memory of one more fetch in flight. Not used if the user has chosen the number."""

    @property
    def is_fixed(self) -> bool:
        """Whether the user has chosen the number."""
        return self.most_by is HeldBy.USER


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured since the last decision."""

    seconds: float = 1.0
    are_waiting: bool = False
    """Whether domains that are ready wait for a slot."""
    cpu: float = 0.0
    """CPU seconds per second of the thread that runs the event loop."""
    lag: float = 0.0
    """How late the event loop was, in seconds, on average."""
    rate: float = 0.0
    """Visits that ended, per second."""
    free_memory: float = math.inf
    """Bytes that are left for bodies, pages and further fetches."""
    memory_shortages: int = 0
    """How often bodies had to wait for memory."""
    file_shortages: int = 0
    """Requests that failed because files, ports or socket buffers had run out."""
    expected: int = 0
    """Visits that ended to sites that had answered at their last visit."""
    lost: int = 0
    """Those of them that ended without an answer."""


class InFlight(msgspec.Struct, frozen=True, kw_only=True):
    """How many fetches may be in flight, and what the next decision needs to remember."""

    exact: float
    held_by: HeldBy = HeldBy.DEMAND
    brink: float = math.inf
    """The number at which something last ran short."""
    rest: float = 0.0
    """Seconds in which the number does not grow."""
    cpu: float = 0.0
    lag: float = 0.0
    rate: float = 0.0
    expected: float = 0.0
    lost: float = 0.0

    @property
    def limit(self) -> int:
        """How many fetches may be in flight."""
        return max(1, int(self.exact))

    @property
    def is_short(self) -> bool:
        """Whether the number rests after a shortage."""
        return self.rest > 0 and self.held_by is not HeldBy.CPU

    @property
    def seconds_to_effect(self) -> float:
        """How long visits wait for the web, by Little's law, without the time in rove's own queues."""
        return min(max(0.0, self.exact / max(self.rate, 1.0) - self.lag), LONGEST_EFFECT)


def first(bounds: Bounds) -> InFlight:
    """Return the number at the start of a process."""
    return InFlight(exact=float(bounds.start), held_by=bounds.most_by if bounds.is_fixed else HeldBy.DEMAND)


def fixed(count: int) -> Bounds:
    """Return the bounds of a process for which the user has chosen the number."""
    return Bounds(start=count, most=count, most_by=HeldBy.USER, bytes_each=0)


def decide(before: InFlight, figures: Figures, bounds: Bounds) -> InFlight:
    """Return how many fetches may be in flight from now on. Call it about once a second.

    >>> bounds = Bounds(start=250, most=10_000, most_by=HeldBy.MOST, bytes_each=80_000)
    >>> decide(InFlight(exact=400.0, rate=400.0), Figures(are_waiting=True, rate=400.0), bounds).limit
    500
    """
    state = _smoothed(before, figures)
    if figures.file_shortages:
        return _cut(state, FILES_CUT, HeldBy.FILES, least=1, rest=FILES_REST)
    if figures.memory_shortages:
        return _cut(state, MEMORY_CUT, HeldBy.MEMORY, least=1, rest=MEMORY_REST)
    if not bounds.is_fixed:
        if state.expected >= LEAST_EXPECTED and state.lost > MOST_LOST * state.expected and not state.rest:
            return _cut(state, LARGEST_CUT, HeldBy.LINE, least=bounds.start, rest=LINE_REST)
        if state.lag > HIGH_LAG and state.exact > bounds.start and not state.rest:
            excess = state.rate * (state.lag - AIMED_LAG) / state.exact
            return _cut(state, min(excess, LARGEST_CUT), HeldBy.CPU, least=bounds.start, rest=state.seconds_to_effect)
    if state.rest:
        return state
    held_by = _held_by(state, figures, bounds)
    if held_by is not HeldBy.NOTHING:
        return _with(state, held_by=held_by)
    return _grown(state, figures, bounds)


def _held_by(state: InFlight, figures: Figures, bounds: Bounds) -> HeldBy:
    """Return what keeps the number from growing."""
    if state.exact >= bounds.most:
        return bounds.most_by if figures.are_waiting or bounds.is_fixed else HeldBy.DEMAND
    if bounds.is_fixed:
        return HeldBy.NOTHING
    if not figures.are_waiting:
        return HeldBy.DEMAND
    if state.lag > CALM_LAG or state.cpu >= FULL_CPU:
        return HeldBy.CPU
    if _room_in_memory(figures, bounds) < SLOW_GROWTH * state.exact:
        return HeldBy.MEMORY
    return HeldBy.NOTHING


def _grown(state: InFlight, figures: Figures, bounds: Bounds) -> InFlight:
    share = FASTEST_GROWTH
    if not bounds.is_fixed:
        # If the CPU time is proportional to the number, this goes half of the way to a full CPU, spread over the time
        # after which the effect shows.
        step = (FULL_CPU / max(state.cpu, 0.01) - 1) / 2
        share = min(share, max(SLOW_GROWTH, step / max(1.0, state.seconds_to_effect)))
    brink = state.brink
    if state.exact > PAST_BRINK * brink:
        brink = math.inf
    elif state.exact >= NEAR_BRINK * brink:
        share = min(share, SLOW_GROWTH)
    growth = max(1.0, share * state.exact) * min(figures.seconds, LONGEST_STEP)
    if not bounds.is_fixed:
        growth = min(growth, _room_in_memory(figures, bounds))
    return _with(state, exact=min(state.exact + growth, float(bounds.most)), brink=brink, held_by=HeldBy.NOTHING)


def _room_in_memory(figures: Figures, bounds: Bounds) -> float:
    """Return how many more fetches fit into half of the free memory. Their bodies and pages need the other half."""
    return figures.free_memory / 2 / bounds.bytes_each


def _cut(state: InFlight, share: float, held_by: HeldBy, *, least: int, rest: float = 0.0) -> InFlight:
    exact = max(float(least), (1 - share) * state.exact)
    return _with(state, exact=min(exact, state.exact), brink=state.exact, rest=max(rest, state.rest), held_by=held_by)


def _smoothed(before: InFlight, figures: Figures) -> InFlight:
    new = 1 - math.exp(-figures.seconds / SMOOTHING)
    kept = math.exp(-figures.seconds / ANSWERS_SMOOTHING)
    return _with(
        before,
        cpu=before.cpu + new * (figures.cpu - before.cpu),
        lag=before.lag + new * (figures.lag - before.lag),
        rate=before.rate + new * (figures.rate - before.rate),
        expected=kept * before.expected + figures.expected,
        lost=kept * before.lost + figures.lost,
        rest=max(0.0, before.rest - figures.seconds),
    )


def _with(state: InFlight, **changes: float | HeldBy) -> InFlight:
    return msgspec.structs.replace(state, **changes)
