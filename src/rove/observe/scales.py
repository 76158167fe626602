"""Scales with round ticks, and how the numbers beside them are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from rove.notation.humanize import size_text
from rove.observe.panels import Measure, Role, Scale
from rove.observe.series import Line, PanelLines

TICKS = 4
"""About this many ticks per axis."""
_LIMIT_ROOM = 2.5
"""A limit that is higher than this many times the largest value is not shown, because it would flatten the curves."""
_SHORTEST = 1e-4
_SMALLEST = 1e-12
"""Differences below this come from rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A value with its label."""

    value: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A scale from `low` to `high`."""

    low: float
    high: float
    scale: Scale
    ticks: Sequence[Tick]

    def share(self, value: float) -> float:
        """Return where a value is, from 0 at the bottom to 1 at the top; outside for values beyond the ends."""
        if self.scale is Scale.LINEAR:
            return (value - self.low) / (self.high - self.low)
        return log10(max(value, self.low) / self.low) / log10(self.high / self.low)


def axis_of_lines(lines: Sequence[Line], panel: PanelLines) -> Axis:
    """Return the axis of a panel for some of its curves, which lie beside each other."""
    values = [
        value
        for line in lines
        if line.role is not Role.LIMIT
        for part in (line.values, line.low, line.high)
        for value in part
        if value is not None
    ]
    limits = [value for line in lines if line.role is Role.LIMIT for value in line.values if value is not None]
    return axis_of(values, panel.measure, panel.scale, limits=limits)


def axis_of(values: Iterable[float], measure: Measure, scale: Scale, *, limits: Iterable[float] = ()) -> Axis:
    """Return an axis for all values, and for the limits unless they are far above the values."""
    found = list(values)
    top = max(found, default=0.0)
    found += [limit for limit in limits if limit <= _LIMIT_ROOM * top or top <= 0]
    return _log_axis(found, measure) if scale is Scale.LOG else _linear_axis(found, measure)


def _linear_axis(values: Sequence[float], measure: Measure) -> Axis:
    low, high = min(0.0, *values, 0.0), max(0.0, *values, 0.0)
    if high - low < _SMALLEST:
        high = low + 1.0
    step = _step((high - low) / TICKS, measure)
    first, last = floor(low / step), ceil(high / step - 1e-9)
    ticks = [Tick(value=n * step, label=value_text(n * step, measure)) for n in range(first, last + 1)]
    return Axis(low=first * step, high=last * step, scale=Scale.LINEAR, ticks=ticks)


def _log_axis(values: Sequence[float], measure: Measure) -> Axis:
    positive = [max(value, _SHORTEST) for value in values if value > 0] or [_SHORTEST]
    first, last = floor(log10(min(positive)) + 1e-9), ceil(log10(max(positive)) - 1e-9)
    last = max(last, first + 1)
    each = ceil((last - first) / TICKS)
    ticks = [Tick(value=10.0**n, label=value_text(10.0**n, measure)) for n in range(first, last + 1, each)]
    return Axis(low=10.0**first, high=10.0**last, scale=Scale.LOG, ticks=ticks)


def _step(least: float, measure: Measure) -> float:
    """Return the round step that is at least this long.

    >>> _step(0.03, Measure.NUMBER), _step(3e6, Measure.BYTES)
    (0.05, 4194304.0)
    """
    if measure is Measure.BYTES:
        step = 1.0
        while step < least:
            step *= 2
        return step
    decade = floor(log10(least) + 1e-9)
    for factor in (1, 2, 5):
        step = factor * 10.0**decade if decade >= 0 else factor / 10.0**-decade
        if step >= least * (1 - 1e-9):
            return step
    return 10.0 ** (decade + 1) if decade >= -1 else 1 / 10.0 ** -(decade + 1)


def value_text(value: float, measure: Measure) -> str:
    """Write a number in a few characters.

    >>> value_text(12_345, Measure.NUMBER), value_text(0.1234, Measure.NUMBER), value_text(987.6, Measure.NUMBER)
    ('12.3 k', '0.123', '988')
    >>> value_text(0.0125, Measure.SECONDS), value_text(90, Measure.SECONDS), value_text(5e6, Measure.BYTES)
    ('12.5 ms', '90 s', '4.8 MiB')
    >>> value_text(0.5, Measure.SHARE), value_text(-0.25, Measure.SECONDS), value_text(2**30, Measure.BYTES)
    ('50 %', '-250 ms', '1 GiB')
    """
    match measure:
        case Measure.BYTES:
            return ("-" if value < 0 else "") + size_text(abs(value)).replace(".0 ", " ")
        case Measure.SHARE:
            return f"{100 * value:.3g} %"
        case Measure.SECONDS:
            return _seconds(value)
        case Measure.NUMBER:
            return _number(value)


def _seconds(value: float) -> str:
    size = abs(value)
    if size == 0:
        return "0"
    if size < 1:
        return f"{_digits(1000 * value)} ms"
    if size < 600:
        return f"{_digits(value)} s"
    return f"{_digits(value / 60)} min" if size < 36_000 else f"{_digits(value / 3_600)} h"


def _number(value: float) -> str:
    for size, suffix in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e4, " k")):
        if abs(value) >= size:
            return f"{_digits(value / (1e3 if suffix == ' k' else size))}{suffix}"
    return _digits(value)


def _digits(value: float) -> str:
    """Write a number with three digits, or more before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
