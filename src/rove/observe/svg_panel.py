"""Draws one panel of a plot as SVG: its scale, its curves or stacked areas, and a legend beside their ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rove.observe.panels import Role
from rove.observe.scales import Axis, axis_of, axis_of_lines, value_text
from rove.observe.series import Line, PanelLines
from rove.observe.svg_text import Point, area_path, line_path, number, safe, shortened

COLOURS = 8
"""The style sheet has this many."""
_LEGEND_LINE = 13.0
_LEGEND_ROOM = 10.0
"""The legend may be this much higher than the curves."""
_LETTERS, _WIDE_LETTERS = 23, 31
"""This many letters of label and value fit beside a panel of one crawl, and of several."""
_LEAST_LETTERS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the curves of a panel are."""

    left: float
    width: float
    top: float
    height: float

    @property
    def right(self) -> float:
        """The right end."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """The lower end."""
        return self.top + self.height

    def y(self, share: float) -> float:
        """Return the height of a value, limited to a little above and below the panel."""
        return self.bottom - min(max(share, -0.5), 1.5) * self.height


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The panel of one of the crawls that are drawn over each other."""

    panel: PanelLines
    x: Callable[[int], float]
    """The middle of a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A line of the legend: one label, with the values of all runs."""

    label: str
    colour: int
    role: Role
    y: float
    lines: tuple[Line | None, ...]
    """The curve of each run, None where the run does not have it."""


def is_empty(runs: Sequence[Run]) -> bool:
    """Whether a panel has nothing to show."""
    return not any(run.panel.lines for run in runs)


def panel_marks(runs: Sequence[Run], place: Place, clip: str) -> tuple[list[str], list[Entry]]:
    """Return the SVG of a panel, and its legend from top to bottom. `clip` is the id of its clip path."""
    panel = runs[0].panel
    is_stacked = panel.is_stacked and len(runs) == 1
    axis = _axis(runs, is_stacked)
    colours = _colours(runs)
    marks = list(_grid(axis, place))
    shapes = _areas(runs[0], axis, place, colours) if is_stacked else _curves(runs, axis, place, colours)
    marks += [f'<g clip-path="url(#{clip})">', *shapes, "</g>"]
    entries = _spread(_entries(runs, axis, place, colours, is_stacked), place)
    marks += [_legend_line(entry, place, panel) for entry in entries]
    return marks, entries


def entry_text(entry: Entry, panel: PanelLines, step: int | None = None) -> str:
    """Return the values of a legend line at a step, or the latest ones."""
    values = [_value(line, step) for line in entry.lines]
    return " / ".join("–" if value is None else value_text(value, panel.measure) for value in values)


def _value(line: Line | None, step: int | None) -> float | None:
    if line is None:
        return None
    if step is None:
        return line.last
    return line.values[step] if step < len(line.values) else None


def _axis(runs: Sequence[Run], is_stacked: bool) -> Axis:
    panel = runs[0].panel
    if not is_stacked:
        return axis_of_lines([line for run in runs for line in run.panel.lines], panel)
    highest = _stacked(panel.lines)[-1]
    return axis_of([top for top in highest if top is not None], panel.measure, panel.scale)


def _colours(runs: Sequence[Run]) -> dict[str, int]:
    """Give each label a colour; the same label has the same one in all runs."""
    labels = dict.fromkeys(line.label for run in runs for line in run.panel.lines if line.role is not Role.LIMIT)
    return {label: place % COLOURS for place, label in enumerate(labels)}


def _grid(axis: Axis, place: Place) -> Iterator[str]:
    for tick in axis.ticks:
        y = number(place.y(axis.share(tick.value)))
        kind = "base" if tick is axis.ticks[0] else "grid"
        yield f'<path class="{kind}" d="M{number(place.left)} {y}h{number(place.width)}"/>'
    shown = axis.ticks if len(axis.ticks) <= 5 else axis.ticks[::2]
    for tick in shown:
        y = number(place.y(axis.share(tick.value)) + 3.5)
        yield f'<text x="{number(place.left - 6)}" y="{y}" text-anchor="end">{safe(tick.label)}</text>'


def _curves(runs: Sequence[Run], axis: Axis, place: Place, colours: dict[str, int]) -> Iterator[str]:
    for number_of_run, run in enumerate(runs):

        def points(values: Sequence[float | None], run: Run = run) -> list[Point | None]:
            return [
                None if value is None else (run.x(step), place.y(axis.share(value)))
                for step, value in enumerate(values)
            ]

        for line in run.panel.lines:
            again = " again" if number_of_run else ""
            if line.role is Role.LIMIT:
                yield f'<path class="line limit{again}" d="{line_path(points(line.values))}"/>'
                continue
            colour = colours[line.label]
            if line.low and line.high and len(runs) == 1:
                yield f'<path class="range a{colour}" d="{area_path(points(line.high), points(line.low))}"/>'
            yield f'<path class="line l{colour}{again}" d="{line_path(points(line.values))}"/>'


def _areas(run: Run, axis: Axis, place: Place, colours: dict[str, int]) -> Iterator[str]:
    stacked = _stacked(run.panel.lines)
    below: list[float | None] = [None if top is None else 0.0 for top in stacked[-1]]
    for line, tops in zip(run.panel.lines, stacked, strict=True):
        upper, lower = (
            [None if value is None else (run.x(step), place.y(axis.share(value))) for step, value in enumerate(values)]
            for values in (tops, below)
        )
        yield f'<path class="stacked a{colours[line.label]}" d="{_wide_area(upper, lower)}"/>'
        below = tops


def _wide_area(upper: list[Point | None], lower: list[Point | None]) -> str:
    """Return the path of an area; a point between two gaps becomes a narrow column."""
    wide: tuple[list[Point | None], list[Point | None]] = ([], [])
    for points, widened in zip((upper, lower), wide, strict=True):
        for step, point in enumerate(points):
            widened.append(point)
            alone = point is not None and all(
                other is None for other in (*points[max(0, step - 1) : step], *points[step + 1 : step + 2])
            )
            if point is not None and alone:
                widened.append((point[0] + 1.5, point[1]))
    return area_path(*wide)


def _stacked(lines: Sequence[Line]) -> list[list[float | None]]:
    """Return the upper end of each line when all are laid on top of each other."""
    tops: list[list[float | None]] = []
    if not lines:
        return tops
    known = [
        any(value is not None for value in column) for column in zip(*(line.values for line in lines), strict=True)
    ]
    below: list[float | None] = [0.0 if is_known else None for is_known in known]
    for line in lines:
        below = [None if low is None else low + (value or 0.0) for low, value in zip(below, line.values, strict=True)]
        tops.append(below)
    return tops


def _entries(
    runs: Sequence[Run], axis: Axis, place: Place, colours: dict[str, int], is_stacked: bool
) -> Iterator[Entry]:
    by_run = [{line.label: line for line in run.panel.lines} for run in runs]
    tops = dict(zip(by_run[0], _stacked(runs[0].panel.lines), strict=True)) if is_stacked else {}
    for label in dict.fromkeys(label for lines in by_run for label in lines):
        lines = tuple(lines.get(label) for lines in by_run)
        first = next(line for line in lines if line is not None)
        value = first.last
        if is_stacked:
            top = next((top for top in reversed(tops[label]) if top is not None), 0.0)
            value = top - (value or 0.0) / 2
        y = place.bottom if value is None else place.y(min(1.0, axis.share(value)))
        yield Entry(label=label, colour=colours.get(label, -1), role=first.role, y=y, lines=lines)


def _spread(entries: Iterator[Entry], place: Place) -> list[Entry]:
    """Move the lines of the legend apart, so that none covers another."""
    ordered = sorted(entries, key=lambda entry: entry.y)
    if not ordered:
        return []
    least, most = place.top - _LEGEND_ROOM, place.bottom
    gap = min(_LEGEND_LINE, (most - least) / max(1, len(ordered) - 1))
    ys: list[float] = []
    for entry in ordered:
        ys.append(max(entry.y, least, ys[-1] + gap if ys else least))
    for place_from_end, index in enumerate(reversed(range(len(ys)))):
        ys[index] = min(ys[index], most - place_from_end * gap)
    for index in reversed(range(len(ys) - 1)):
        ys[index] = min(ys[index], ys[index + 1] - gap)
    return [
        Entry(label=entry.label, colour=entry.colour, role=entry.role, y=y, lines=entry.lines)
        for entry, y in zip(ordered, ys, strict=True)
    ]


def _legend_line(entry: Entry, place: Place, panel: PanelLines) -> str:
    x, y = place.right + 8, entry.y
    if entry.role is Role.LIMIT:
        mark = f'<path class="line limit" d="M{number(x)} {number(y)}h11"/>'
    else:
        mark = f'<rect class="a{entry.colour}" x="{number(x)}" y="{number(y - 4)}" width="11" height="8" rx="2"/>'
    value = entry_text(entry, panel)
    room = (_LETTERS if len(entry.lines) == 1 else _WIDE_LETTERS) - len(value)
    label = safe(shortened(entry.label, max(_LEAST_LETTERS, room)))
    return (
        f'{mark}<text x="{number(x + 16)}" y="{number(y + 3.5)}">{label} '
        f'<tspan class="value now">{safe(value)}</tspan><title>{safe(entry.label)}</title></text>'
    )
