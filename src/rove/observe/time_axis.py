"""The ticks of a time axis: round times in UTC, or round times since the start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil

_MINUTE, _HOUR, _DAY = 60.0, 3_600.0, 86_400.0
_STEPS = (10, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800)
_MONTHS = (1, 2, 3, 6)
_MONTH_DAYS = 30.4


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeTick:
    """A time with its label."""

    at: float
    """Seconds since the start of the axis."""
    label: str
    context: str = ""
    """What the label leaves out: the day or the year, where it changes."""


def clock_ticks(start: float, seconds: float, *, most: int) -> list[TimeTick]:
    """Return at most about `most` round times in UTC within `seconds` after the wall-clock time `start`.

    >>> [(tick.label, tick.context) for tick in clock_ticks(86_400 * 3 - 7_200, 14_400, most=3)]
    [('22:00', '3 Jan 1970'), ('00:00', '4 Jan 1970'), ('02:00', '')]
    """
    step = _step(seconds / most)
    times = _months(start, start + seconds, most) if step is None else _multiples(start, start + seconds, step)
    ticks, before = [], ""
    for time in times:
        moment = datetime.fromtimestamp(time, UTC)
        label, context = _labels(moment, step)
        ticks.append(TimeTick(at=time - start, label=label, context="" if context == before else context))
        before = context
    return ticks


def elapsed_ticks(seconds: float, *, most: int) -> list[TimeTick]:
    """Return round times since the start, for several crawls on one axis.

    >>> [tick.label for tick in elapsed_ticks(7_200, most=5)]
    ['0', '30 min', '1 h', '1 h 30', '2 h']
    """
    step = _step(seconds / most) or ceil(seconds / most / _DAY) * _DAY
    return [TimeTick(at=at, label=elapsed_text(at)) for at in _multiples(0.0, seconds, step)]


def elapsed_text(seconds: float) -> str:
    """Write a time since the start.

    >>> elapsed_text(0), elapsed_text(30), elapsed_text(90), elapsed_text(5_400), elapsed_text(200_000)
    ('0', '30 s', '1 min 30', '1 h 30', '2 d 7 h')
    """
    if seconds < _MINUTE:
        return f"{seconds:.0f} s" if seconds else "0"
    units = ((_DAY, "d", _HOUR, " h"), (_HOUR, "h", _MINUTE, ""), (_MINUTE, "min", 1.0, ""))
    long, name, short, suffix = next(unit for unit in units if seconds >= unit[0])
    whole, rest = divmod(seconds, long)
    less = int(rest / short)
    return f"{whole:.0f} {name}" + (f" {less:{'d' if suffix else '02d'}}{suffix}" if less else "")


def _step(least: float) -> float | None:
    """Return the shortest round step; None if it is longer than two days."""
    return next((float(step) for step in _STEPS if step >= least), None)


def _multiples(start: float, end: float, step: float) -> Iterator[float]:
    count = ceil(start / step)
    while count * step <= end:
        yield count * step
        count += 1


def _months(start: float, end: float, most: int) -> Iterator[float]:
    """Yield the starts of months, every one or every few, or of weeks or years."""
    months = (end - start) / _DAY / _MONTH_DAYS
    if months / most <= 14 / _MONTH_DAYS:
        yield from _multiples(start, end, (7 if months / most <= 7 / _MONTH_DAYS else 14) * _DAY)
        return
    each = next((step for step in _MONTHS if months / step <= most), 12 * ceil(months / 12 / most))
    first = datetime.fromtimestamp(start, UTC)
    number = ceil((first.year * 12 + first.month - 1) / each) * each
    while True:
        time = datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC).timestamp()
        if time > end:
            return
        if time >= start:
            yield time
        number += each


def _labels(moment: datetime, step: float | None) -> tuple[str, str]:
    day = f"{moment.day} {moment:%b}"
    if step is None or step >= _DAY:
        return day, str(moment.year)
    return f"{moment:%H:%M:%S}" if step < _MINUTE else f"{moment:%H:%M}", f"{day} {moment.year}"
