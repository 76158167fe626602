"""Draws plots with block characters for a terminal: a row of blocks for each curve, with its label and latest value.

Curves are drawn below and not over each other, so that they can be told apart without colours.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from rove.observe.captions import NO_SAMPLES, NOTHING, about
from rove.observe.panels import Role
from rove.observe.scales import Axis, axis_of_lines, value_text
from rove.observe.series import Line, PanelLines, Plot
from rove.observe.svg_text import shortened
from rove.observe.time_axis import clock_ticks, elapsed_ticks

BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII = str.maketrans(dict(zip(BLOCKS + "╷·…–", "_.:-=+*#|.~-", strict=True)))
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


def in_ascii(text: str) -> str:
    """Write a part of a drawing for a terminal that has no block characters.

    >>> in_ascii("a ▁▄█")
    'a _-#'
    """
    return text.translate(_ASCII)


def chart_lines(plots: Sequence[Plot], *, width: int, height: int) -> Iterator[list[Part]]:
    """Yield the lines of a chart. It is as high as the terminal if that is high enough, and never wider."""
    return _Drawing(plots, width, height).lines()


class _Drawing:
    """The plots, and how much room they have."""

    def __init__(self, plots: Sequence[Plot], width: int, height: int) -> None:
        self._plots = plots
        self._width = width
        self._label, self._chart = _sizes(width)
        self._rows = _rows(plots, height)
        self._seconds = max(plot.step * plot.count for plot in plots)

    def lines(self) -> Iterator[list[Part]]:
        """Yield all lines."""
        for place, plot in enumerate(self._plots):
            name = f"{_letter(place)}: " if len(self._plots) > 1 else ""
            yield [Part(shortened(name + _heading(plot), self._width), Tone.TITLE)]
        yield self._times()
        for place, plot in enumerate(self._plots):
            for label in dict.fromkeys(band.label for band in plot.bands):
                yield self._held(place, label)
        for index in range(len(self._plots[0].panels)):
            yield []
            yield from self._panel([plot.panels[index] for plot in self._plots])
        yield []
        yield self._times()

    def _panel(self, panels: Sequence[PanelLines]) -> Iterator[list[Part]]:
        first = panels[0]
        lines = [line for panel in panels for line in panel.lines]
        if not lines:
            yield self._title(first, NOTHING if any(plot.machines for plot in self._plots) else NO_SAMPLES)
            return
        axis = axis_of_lines([msgspec.structs.replace(line, low=[], high=[]) for line in lines], first)
        yield self._title(first, f"{axis.ticks[0].label} to {value_text(axis.high, first.measure)}")
        for label in dict.fromkeys(line.label for line in lines):
            for place, panel in enumerate(panels):
                for line in panel.lines:
                    if line.label == label:
                        yield from self._curve(place, line, axis, panel)

    def _title(self, panel: PanelLines, note: str) -> list[Part]:
        title = f"{panel.title}, {panel.unit}" if panel.unit else panel.title
        title = shortened(title, max(1, self._width - len(note) - 2))
        return [Part(title, Tone.TITLE), Part(note.rjust(self._width - len(title)), Tone.SOFT)]

    def _curve(self, place: int, line: Line, axis: Axis, panel: PanelLines) -> Iterator[list[Part]]:
        """Yield the rows of a curve. The lowest has its label and its latest value."""
        values = self._columns(line.values, self._plots[place])
        shares = [None if value is None else axis.share(value) for value in values]
        latest = "–" if line.last is None else value_text(line.last, panel.measure)
        tone = Tone.LIMIT if line.role is Role.LIMIT else Tone.CURVE
        for row in reversed(range(self._rows)):
            blocks = "".join(_block(share, row, self._rows) for share in shares)
            label, value = ("", "") if row else (self._named(place, line.label), latest)
            yield [Part(label.ljust(self._label) + " "), Part(blocks, tone), Part(" " + value.rjust(_VALUE))]

    def _held(self, place: int, label: str) -> list[Part]:
        """Return the line that shows when the crawl was held up by one cause."""
        plot = self._plots[place]
        held = [0.0] * plot.count
        for band in plot.bands:
            if band.label == label:
                held[band.first : band.last + 1] = [1.0] * (band.last + 1 - band.first)
        blocks = "".join("█" if value else "·" for value in self._columns(held, plot))
        return [Part(self._named(place, label).ljust(self._label) + " "), Part(blocks, Tone.HELD)]

    def _named(self, place: int, label: str) -> str:
        return shortened(f"{_letter(place)} {label}" if len(self._plots) > 1 else label, self._label)

    def _columns(self, values: Sequence[float | None], plot: Plot) -> Iterator[float | None]:
        """Yield the value of each column."""
        for column in range(self._chart):
            step = int((column + 0.5) / self._chart * self._seconds / plot.step)
            yield values[step] if step < len(values) else None

    def _times(self) -> list[Part]:
        most = max(2, self._chart // _TIME_LABEL)
        if len(self._plots) == 1:
            ticks = clock_ticks(self._plots[0].start, self._seconds, most=most)
        else:
            ticks = elapsed_ticks(self._seconds, most=most)
        text = ""
        for tick in ticks:
            column = int(tick.at / self._seconds * self._chart)
            label = f"╷{tick.label}"
            if column >= len(text) and column + len(label) <= self._chart + _VALUE:
                text = text.ljust(column) + label + " "
        return [Part(" " * (self._label + 1) + text.rstrip(), Tone.SOFT)]


def _sizes(width: int) -> _Sizes:
    least, most = _LABELS
    label = max(least, min(most, width // 4))
    return _Sizes(label, max(8, width - label - _VALUE - 2))


def _rows(plots: Sequence[Plot], height: int) -> int:
    """Return how many rows each curve gets, so that the chart fills the terminal and does not scroll."""
    curves = sum(len(panel.lines) for plot in plots for panel in plot.panels)
    others = len(plots) + 3 + 2 * len(plots[0].panels) + sum(len({band.label for band in p.bands}) for p in plots)
    return max(1, min(_MOST_ROWS, (height - others - 1) // max(1, curves)))


def _letter(place: int) -> str:
    return chr(ord("A") + place % 26)


def _heading(plot: Plot) -> str:
    return f"{plot.label}  {about(plot)}"


def _block(share: float | None, row: int, rows: int) -> str:
    """Return the character of a value in one of the rows of its curve; row 0 is the lowest."""
    if share is None:
        return " "
    level = round(min(max(share, 0.0), 1.0) * (len(BLOCKS) * rows - 1)) - len(BLOCKS) * row
    return " " if level < 0 else BLOCKS[min(level, len(BLOCKS) - 1)]
