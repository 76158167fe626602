"""Draws plots with block characters for a terminal: a row of blocks for each curve, with its label and latest value.

Curves are drawn below and not over each other, so that they can be told apart without colours.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import NamedTuple

from rove.notation.humanize import counted, utc_text
from rove.observe.panels import Role
from rove.observe.scales import Axis, axis_of, value_text
from rove.observe.series import Line, PanelLines, Plot
from rove.observe.svg_text import shortened
from rove.observe.time_axis import clock_ticks, elapsed_text, elapsed_ticks

_BLOCKS = "▁▂▃▄▅▆▇█"
_LABELS = (10, 18)
"""The labels have at least and at most this width."""
_VALUE = 9
_MOST_ROWS = 4
_TIME_LABEL = 12
"""Columns for each label of the time axis."""


class Tone(enum.Enum):
    """How a part of a line stands out on a terminal with colours."""

    PLAIN = "plain"
    TITLE = "title"
    SOFT = "soft"
    CURVE = "curve"
    LIMIT = "limit"
    HELD = "held"


class Part(NamedTuple):
    """A part of a line."""

    text: str
    tone: Tone = Tone.PLAIN


class _Sizes(NamedTuple):
    label: int
    chart: int


def steps_for(width: int) -> int:
    """Return how many steps of time can be told apart in a terminal of this width."""
    return _sizes(width).chart


def chart_lines(plots: Sequence[Plot], *, width: int, height: int) -> Iterator[list[Part]]:
    """Yield the lines of a chart. It is as high as the terminal if that is high enough, and never wider."""
    sizes = _sizes(width)
    rows = _rows(plots, height)
    names = [f"{chr(ord('A') + place % 26)}" if len(plots) > 1 else "" for place in range(len(plots))]
    for name, plot in zip(names, plots, strict=True):
        yield [Part(_cut(_heading(name, plot), width), Tone.TITLE)]
    yield _time_line(plots, sizes)
    for name, plot in zip(names, plots, strict=True):
        for label in dict.fromkeys(band.label for band in plot.bands):
            yield _held(plot, label, name, sizes, plots)
    for index, panel in enumerate(plots[0].panels):
        panels = [plot.panels[index] for plot in plots]
        yield []
        yield from _panel(panels, plots, names, sizes, rows, panel)
    yield []
    yield _time_line(plots, sizes)


def _sizes(width: int) -> _Sizes:
    least, most = _LABELS
    label = max(least, min(most, width // 4))
    return _Sizes(label, max(8, width - label - _VALUE - 2))


def _rows(plots: Sequence[Plot], height: int) -> int:
    """Return how many rows each curve gets, so that the chart fills the terminal and does not scroll."""
    curves = sum(len(panel.lines) for plot in plots for panel in plot.panels)
    others = len(plots) + 3 + 2 * len(plots[0].panels) + sum(len({band.label for band in p.bands}) for p in plots)
    return max(1, min(_MOST_ROWS, (height - others - 1) // max(1, curves)))


def _heading(name: str, plot: Plot) -> str:
    start = f"{name}: " if name else ""
    machines = f", {counted(len(plot.machines), 'machine')}" if len(plot.machines) > 1 else ""
    end = plot.start + plot.step * plot.count
    times = f"{utc_text(plot.start)[:16]}Z to {utc_text(end)[:16]}Z"
    return f"{start}{plot.label}  {times}, one value for {elapsed_text(plot.step)}{machines}"


def _panel(
    panels: Sequence[PanelLines],
    plots: Sequence[Plot],
    names: Sequence[str],
    sizes: _Sizes,
    rows: int,
    first: PanelLines,
) -> Iterator[list[Part]]:
    width = sizes.label + sizes.chart + _VALUE + 2
    lines = [line for panel in panels for line in panel.lines]
    title = f"{first.title}, {first.unit}" if first.unit else first.title
    if not lines:
        note = "none in this time" if any(plot.machines for plot in plots) else "no samples in this time"
        title = _cut(title, width - len(note) - 2)
        yield [Part(title, Tone.TITLE), Part(f"  {note}", Tone.SOFT)]
        return
    axis = _axis(lines, first)
    scale = f"{axis.ticks[0].label} to {value_text(axis.high, first.measure)}"
    title = _cut(title, width - len(scale) - 2)
    yield [Part(title, Tone.TITLE), Part(scale.rjust(width - len(title)), Tone.SOFT)]
    for label in dict.fromkeys(line.label for line in lines):
        for name, plot, panel in zip(names, plots, panels, strict=True):
            for line in panel.lines:
                if line.label == label:
                    shown = f"{name} {label}" if name else label
                    yield from _curve(shown, line, axis, plot, plots, first, sizes, rows)


def _axis(lines: Sequence[Line], panel: PanelLines) -> Axis:
    values = [value for line in lines if line.role is not Role.LIMIT for value in line.values if value is not None]
    limits = [value for line in lines if line.role is Role.LIMIT for value in line.values if value is not None]
    return axis_of(values, panel.measure, panel.scale, limits=limits)


def _curve(
    label: str,
    line: Line,
    axis: Axis,
    plot: Plot,
    plots: Sequence[Plot],
    panel: PanelLines,
    sizes: _Sizes,
    rows: int,
) -> Iterator[list[Part]]:
    shares = [None if value is None else axis.share(value) for value in _columns(line.values, plot, plots, sizes)]
    latest = next((value for value in reversed(line.values) if value is not None), None)
    value = "–" if latest is None else value_text(latest, panel.measure)
    tone = Tone.LIMIT if line.role is Role.LIMIT else Tone.CURVE
    for row in reversed(range(rows)):
        blocks = "".join(_block(share, row, rows) for share in shares)
        is_lowest = row == 0
        yield [
            Part(_cut(label if is_lowest else "", sizes.label).ljust(sizes.label) + " "),
            Part(blocks, tone),
            Part(" " + (value if is_lowest else "").rjust(_VALUE)),
        ]


def _block(share: float | None, row: int, rows: int) -> str:
    """Return the character of a value in one of the rows of its curve; row 0 is the lowest."""
    if share is None or not isfinite(share):
        return " "
    level = round(min(max(share, 0.0), 1.0) * (len(_BLOCKS) * rows - 1)) - len(_BLOCKS) * row
    return " " if level < 0 else _BLOCKS[min(level, len(_BLOCKS) - 1)]


def _columns(
    values: Sequence[float | None], plot: Plot, plots: Sequence[Plot], sizes: _Sizes
) -> Iterator[float | None]:
    """Yield the value of each column of the chart."""
    seconds = _seconds(plots)
    for column in range(sizes.chart):
        step = int((column + 0.5) / sizes.chart * seconds / plot.step)
        yield values[step] if step < len(values) else None


def _held(plot: Plot, label: str, name: str, sizes: _Sizes, plots: Sequence[Plot]) -> list[Part]:
    held: list[float | None] = [None] * plot.count
    for band in plot.bands:
        if band.label == label:
            held[band.first : band.last + 1] = [1.0] * (band.last + 1 - band.first)
    shown = f"{name} {label}" if name else label
    blocks = "".join("█" if value else "·" for value in _columns(held, plot, plots, sizes))
    return [Part(_cut(shown, sizes.label).ljust(sizes.label) + " "), Part(blocks, Tone.HELD)]


def _time_line(plots: Sequence[Plot], sizes: _Sizes) -> list[Part]:
    seconds, most = _seconds(plots), max(2, sizes.chart // _TIME_LABEL)
    ticks = clock_ticks(plots[0].start, seconds, most=most) if len(plots) == 1 else elapsed_ticks(seconds, most=most)
    text = ""
    for tick in ticks:
        column = int(tick.at / seconds * sizes.chart)
        label = f"╷{tick.label}"
        if column >= len(text) and column + len(label) <= sizes.chart + _VALUE:
            text = text.ljust(column) + label + " "
    return [Part(" " * (sizes.label + 1) + text.rstrip(), Tone.SOFT)]


def _seconds(plots: Sequence[Plot]) -> float:
    return max(plot.step * plot.count for plot in plots)


def _cut(text: str, most: int) -> str:
    return shortened(text, max(1, most))
