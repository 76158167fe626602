"""Draws plots as one SVG: a time axis, and under each other the panels, each with a scale and a legend of its own.

Several plots are drawn over each other by the time since their start. The first has solid lines, the others are dashed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources

from rove.observe.captions import NO_SAMPLES, NOTHING, about
from rove.observe.series import Band, PanelLines, Plot
from rove.observe.svg_panel import Entry, Place, Run, is_empty, panel_marks
from rove.observe.svg_text import number, safe, shortened
from rove.observe.time_axis import TimeTick, clock_ticks, elapsed_ticks

WIDTH = 960
STEPS = 480
"""More steps than this cannot be told apart at this width."""
OVERLAY_STEPS = 160
"""With several crawls: so few that dashes can be seen."""
LEFT = 62
_LEGEND, _WIDE_LEGEND = 190, 240
"""The width of the legends of one crawl, and of several."""
_TOP, _BOTTOM = 88, 42
_TITLE, _HEIGHT, _SPACE = 22, 84, 14
_TIME_TICKS = 9
_LETTER = 6.0
"""About the width of a letter."""
_MOST_LETTERS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The time axis that all panels share."""

    plots: Sequence[Plot]
    seconds: float
    ticks: Sequence[TimeTick]

    @property
    def inner(self) -> float:
        """Its width."""
        return WIDTH - LEFT - (_LEGEND if len(self.plots) == 1 else _WIDE_LEGEND)

    def x(self, at: float) -> float:
        """Return where a time is, in seconds since the start."""
        return LEFT + at / self.seconds * self.inner

    def middle(self, plot: Plot, step: int) -> float:
        """Return where the middle of a step is."""
        return self.x((step + 0.5) * plot.step)

    def span(self, plot: Plot, band: Band) -> tuple[float, float]:
        """Return the left end and the width of a band."""
        left = self.x(band.first * plot.step)
        return left, max(2.0, self.x((band.last + 1) * plot.step) - left)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A finished chart."""

    svg: str
    frame: Frame
    legends: list[tuple[PanelLines, Entry]]
    """The lines of all legends, in the order in which they are in the SVG."""


def style() -> str:
    """Return the style sheet of all charts, for light and dark."""
    return resources.files("rove.observe").joinpath("chart.css").read_text("utf-8")


def as_svg(plots: Sequence[Plot]) -> str:
    """Return a chart as a file of its own."""
    return drawn(plots).svg


def drawn(plots: Sequence[Plot]) -> Drawn:
    """Draw a chart."""
    frame = _frame(plots)
    body: list[str] = []
    legends: list[tuple[PanelLines, Entry]] = []
    y = float(_TOP)
    for index, panel in enumerate(plots[0].panels):
        runs = [Run(panel=plot.panels[index], x=partial(frame.middle, plot)) for plot in plots]
        height = 0.0 if is_empty(runs) else float(_HEIGHT)
        place = Place(left=LEFT, width=frame.inner, top=y + _TITLE, height=height)
        body.append(_title(panel, place, plots, has_curves=height > 0))
        if height:
            clip = f"panel-{index}"
            body.append(f'<clipPath id="{clip}">{_rect(place)}</clipPath>')
            body += _time_grid(frame, place)
            body += _bands(frame, place)
            marks, entries = panel_marks(runs, place, clip)
            body += marks
            legends += [(panel, entry) for entry in entries]
        y = place.bottom + _SPACE
    bottom = y - _SPACE
    body += _band_labels(frame)
    body += _time_labels(frame, _TOP - 6)
    body += _time_labels(frame, bottom + 16, has_context=True)
    body.append(f'<path class="cursor" d="M0 {_TOP}V{number(bottom)}"/>')
    body.append(f'<text class="strong clock" x="{WIDTH - 8}" y="{_TOP - 6}" text-anchor="end"></text>')
    return Drawn(svg=_document(plots, body, height=bottom + _BOTTOM), legends=legends, frame=frame)


def _frame(plots: Sequence[Plot]) -> Frame:
    seconds = max(plot.step * plot.count for plot in plots)
    if len(plots) == 1:
        ticks = clock_ticks(plots[0].start, seconds, most=_TIME_TICKS)
    else:
        ticks = elapsed_ticks(seconds, most=_TIME_TICKS)
    return Frame(plots=plots, seconds=seconds, ticks=ticks)


def _document(plots: Sequence[Plot], body: Sequence[str], *, height: float) -> str:
    caption = "; ".join(f"{plot.label}: {about(plot)}" for plot in plots)
    head = (
        f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {number(height)}" '
        f'width="{WIDTH}" height="{number(height)}" role="img" aria-label="{safe(caption)}">\n'
        f"<style>\n{style()}</style>\n"
        f'<rect class="paper" width="{WIDTH}" height="{number(height)}"/>'
    )
    return "\n".join([head, *_heading(plots), *body, "</svg>\n"])


def _heading(plots: Sequence[Plot]) -> Iterator[str]:
    """Yield one line for each crawl, with the kind of its lines if there are several."""
    for place, plot in enumerate(plots):
        y = 22 + 16 * place
        x = LEFT
        if len(plots) > 1:
            again = " again" if place else ""
            yield f'<path class="line l7{again}" d="M{x} {y - 4}h26"/>'
            x += 34
        label = safe(shortened(plot.label, _MOST_LETTERS))
        size = "" if len(plots) > 1 else " large"
        yield (
            f'<text x="{x}" y="{y}"><tspan class="strong{size}">{label}</tspan>'
            f'<tspan dx="7">{safe(about(plot))}</tspan></text>'
        )


def _title(panel: PanelLines, place: Place, plots: Sequence[Plot], *, has_curves: bool) -> str:
    note = panel.unit
    if not has_curves:
        note = NOTHING if any(plot.machines for plot in plots) else NO_SAMPLES
    return (
        f'<text x="{number(place.left)}" y="{number(place.top - 8)}">'
        f'<tspan class="strong">{safe(panel.title)}</tspan><tspan dx="7">{safe(note)}</tspan></text>'
    )


def _time_grid(frame: Frame, place: Place) -> Iterator[str]:
    for tick in frame.ticks:
        yield f'<path class="grid" d="M{number(frame.x(tick.at))} {number(place.top)}v{number(place.height)}"/>'


def _time_labels(frame: Frame, y: float, *, has_context: bool = False) -> Iterator[str]:
    for tick in frame.ticks:
        x = number(frame.x(tick.at))
        yield f'<text x="{x}" y="{number(y)}" text-anchor="middle">{safe(tick.label)}</text>'
        if tick.context and has_context:
            yield f'<text x="{x}" y="{number(y + 14)}" text-anchor="middle">{safe(tick.context)}</text>'


def _bands(frame: Frame, place: Place) -> Iterator[str]:
    for plot in frame.plots:
        for band in plot.bands:
            left, width = frame.span(plot, band)
            yield (
                f'<rect class="held" x="{number(left)}" y="{number(place.top)}" width="{number(width)}" '
                f'height="{number(place.height)}"><title>{safe(band.label)}</title></rect>'
            )


def _band_labels(frame: Frame) -> Iterator[str]:
    """Yield the causes above the bands, as far as there is room."""
    free = float(LEFT)
    spans = sorted((frame.span(plot, band), band.label) for plot in frame.plots for band in plot.bands)
    for (left, _), label in spans:
        if left >= free:
            text = shortened(label, _MOST_LETTERS)
            yield f'<text class="heldup" x="{number(left)}" y="{_TOP - 22}">{safe(text)}</text>'
            free = left + _LETTER * (len(text) + 2)


def _rect(place: Place) -> str:
    top, height = place.top - 1, place.height + 2
    return f'<rect x="{number(place.left)}" y="{number(top)}" width="{number(place.width)}" height="{number(height)}"/>'
