"""Turns the samples of a crawl into the numbers of a plot: one value for each step of time and each curve.

A step without samples has no value, so that an outage is a gap and not a line. Where a step has several samples, a
curve also has the smallest and the largest of them, so that a short peak stays visible however long the plot is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from rove.model.figures import Combining, figure_of
from rove.model.samples import Sample
from rove.observe.grid import Grid
from rove.observe.machine_labels import machine_labels
from rove.observe.panels import STOPPED, Measure, Panel, Reading, Role, Scale
from rove.observe.tracks import Coverage, Times, Track, Values, combined_values, zeros_of

MOST_OF_FAMILY = 6
"""A family has at most this many curves of its own; the smaller ones are added up."""
_SHARE = 0.95
_STOPPED_SHARE = 0.1
"""A step is shaded if the crawl was held up for this share of it."""
_BRIDGED_SECONDS = 900.0
"""A gauge that is absent from samples for longer leaves a gap."""
_DIGITS = 6
_LARGEST = 1e18
"""No figure is larger."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """The values of one curve: None where there is no sample."""

    label: str
    role: Role
    values: list[float | None]
    low: list[float | None] = []
    """The smallest sample of each step; empty if no step has several samples."""
    high: list[float | None] = []

    @property
    def last(self) -> float | None:
        """The latest value."""
        return next((value for value in reversed(self.values) if value is not None), None)


class PanelLines(msgspec.Struct, frozen=True, kw_only=True):
    """A panel with its curves."""

    name: str
    title: str
    unit: str
    measure: Measure
    scale: Scale
    is_stacked: bool
    lines: list[Line]


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """A time during which the crawl was held up: from the first to the last step."""

    label: str
    first: int
    last: int


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of all panels of one crawl. As JSON it is what the page in the browser draws."""

    label: str
    """Which crawl it is, where several are drawn."""
    start: float
    """Wall-clock seconds of the start of the first step."""
    step: float
    """Seconds."""
    count: int
    machines: list[str]
    panels: list[PanelLines]
    bands: list[Band]


class _Place(NamedTuple):
    """A curve in the table of panels."""

    panel: int
    curve: int


_STOPPED_PLACE = _Place(-1, 0)


class Collector:
    """Takes the samples of a crawl, one at a time and in any order, and makes a plot of them."""

    def __init__(self, panels: Sequence[Panel], grid: Grid) -> None:
        self._panels = panels
        self._grid = grid
        self._curves = {_Place(p, c): curve for p, panel in enumerate(panels) for c, curve in enumerate(panel.curves)}
        self._curves[_STOPPED_PLACE] = STOPPED
        self._shown: dict[str, list[tuple[_Place, str]]] = {}
        """Where a figure is shown, and under which label, by its name."""
        self._machines: dict[str, Coverage] = {}
        self._tracks: dict[_Place, dict[tuple[str, str], Track]] = {}
        """The tracks of each curve by machine and label."""
        self._combining: dict[_Place, Combining] = {}
        """How the machines' values of a curve are combined."""
        self._times: dict[_Place, dict[str, Times]] = {}

    def add(self, sample: Sample) -> None:
        """Add a sample to the steps that it covers."""
        steps = list(self._grid.covered(sample))
        if not steps:
            return
        if sample.node not in self._machines:
            self._machines[sample.node] = Coverage(self._grid.count)
        self._machines[sample.node].add(steps)
        values: dict[tuple[_Place, str], float] = {}
        for name, value in sample.figures.items():
            if abs(value) < _LARGEST:  # neither NaN nor infinite
                for shown in self._places_of(name):
                    values[shown] = values.get(shown, 0.0) + value
                    self._prepare(shown, name, sample.node)
        for (place, label), value in values.items():
            is_rate = self._curves[place].reading is Reading.RATE
            self._tracks[place][sample.node, label].add(value / sample.seconds if is_rate else value, steps)
        for name, distribution in sample.histograms.items():
            for place, label in self._places_of(name):
                times = self._times.setdefault(place, {})
                if label not in times:
                    times[label] = Times(self._grid.count)
                times[label].add(distribution, steps)

    def plot(self, label: str = "") -> Plot:
        """Return the plot of all samples that were added."""
        return Plot(
            label=label,
            start=self._grid.start,
            step=self._grid.step,
            count=self._grid.count,
            machines=sorted(self._machines),
            panels=[
                PanelLines(
                    name=panel.name,
                    title=panel.title,
                    unit=panel.unit,
                    measure=panel.measure,
                    scale=panel.scale,
                    is_stacked=panel.is_stacked,
                    lines=[line for c in range(len(panel.curves)) for line in self._lines(_Place(p, c))],
                )
                for p, panel in enumerate(self._panels)
            ],
            bands=[band for line in self._lines(_STOPPED_PLACE) for band in _bands(line)],
        )

    def _places_of(self, name: str) -> list[tuple[_Place, str]]:
        if name not in self._shown:
            found = ((place, curve.label_of(name)) for place, curve in self._curves.items())
            self._shown[name] = [(place, label) for place, label in found if label is not None]
        return self._shown[name]

    def _prepare(self, shown: tuple[_Place, str], name: str, node: str) -> None:
        place, label = shown
        tracks = self._tracks.setdefault(place, {})
        if (node, label) not in tracks:
            figure = figure_of(name)
            self._combining[place] = figure.over_machines
            tracks[node, label] = Track(
                self._grid.count,
                figure.over_time,
                is_zero_if_absent=figure.is_zero_if_absent,
                most_bridged=int(_BRIDGED_SECONDS / self._grid.step),
            )

    def _lines(self, place: _Place) -> Iterator[Line]:
        curve = self._curves[place]
        if curve.reading is Reading.P95:
            found = [
                Line(label=label, role=curve.role, values=_rounded(times.quantiles(_SHARE)))
                for label, times in self._times.get(place, {}).items()
            ]
        else:
            found = [self._line(place, label, tracks) for label, tracks in self._tracks_by_label(place).items()]
        if not curve.is_family:
            yield from found
        else:
            seen = (line for line in found if any(line.values))
            yield from _largest(sorted(seen, key=lambda line: _natural(line.label)), self._combining.get(place))

    def _tracks_by_label(self, place: _Place) -> dict[str, list[tuple[Track, Coverage]]]:
        by_machine = self._curves[place].by_machine and len(self._machines) > 1
        machines = machine_labels(sorted(self._machines)) if by_machine else {}
        grouped: dict[str, list[tuple[Track, Coverage]]] = {}
        for (node, label), track in self._tracks.get(place, {}).items():
            grouped.setdefault(machines.get(node, label), []).append((track, self._machines[node]))
        return grouped

    def _line(self, place: _Place, label: str, tracks: Sequence[tuple[Track, Coverage]]) -> Line:
        # Machines that never had the figure have zeros. They change no sum and no maximum.
        has_zeros = (
            all(track.is_zero_if_absent for track, _ in tracks)
            and not self._curves[place].by_machine
            and self._combining[place] in (Combining.SUM, Combining.MAX)
        )
        zeros = [zeros_of(self._machines.values(), self._grid.count)] if has_zeros else []

        def combined(parts: list[Values]) -> list[float | None]:
            return _rounded(combined_values(parts + zeros, self._combining[place]))

        line = Line(
            label=label,
            role=self._curves[place].role,
            values=combined([track.values(machine) for track, machine in tracks]),
        )
        if self._is_stacked(place) or not any(track.has_bounds and machine.has_several for track, machine in tracks):
            return line
        low = combined([track.least(machine) for track, machine in tracks])
        high = combined([track.most(machine) for track, machine in tracks])
        return line if low == high else msgspec.structs.replace(line, low=low, high=high)

    def _is_stacked(self, place: _Place) -> bool:
        return place != _STOPPED_PLACE and self._panels[place.panel].is_stacked


def _largest(lines: list[Line], combining: Combining | None) -> list[Line]:
    """Return the lines of a family; the smaller ones are combined if there are too many."""
    if combining is None or len(lines) <= MOST_OF_FAMILY + 1:
        return lines
    by_size = sorted(lines, key=lambda line: sum(value or 0.0 for value in line.values), reverse=True)
    largest = {id(line) for line in by_size[:MOST_OF_FAMILY]}
    others = [line for line in lines if id(line) not in largest]
    rest = Line(
        label=f"{len(others)} others",
        role=Role.CURVE,
        values=_rounded(combined_values([line.values for line in others], combining)),
    )
    return [*(line for line in lines if id(line) in largest), rest]


def _bands(line: Line) -> Iterator[Band]:
    """Yield the times in which the crawl was held up by one cause."""
    first = None
    for step, value in enumerate([*line.values, None]):
        holds = value is not None and value >= _STOPPED_SHARE
        if holds and first is None:
            first = step
        elif not holds and first is not None:
            yield Band(label=line.label, first=first, last=step - 1)
            first = None


def _rounded(values: Values) -> list[float | None]:
    return [None if value is None else float(f"{value:.{_DIGITS}g}") for value in values]


def _natural(label: str) -> list[tuple[bool, int, str]]:
    """Return the key that sorts 'process 2' before 'process 10'."""
    parts = re.split(r"(\d+)", label)
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts if part]
