"""Plots of made-up samples, to be drawn."""

from __future__ import annotations

from collections.abc import Iterable

from rove.model.samples import Sample
from rove.observe.grid import grid_of
from rove.observe.panels import Panel, default_panels
from rove.observe.series import Collector, Plot
from tests.unit.observe.made_up import START


def plot_of(
    samples: Iterable[Sample],
    *,
    seconds: float,
    steps: int = 480,
    label: str = "rove-data",
    panels: tuple[Panel, ...] | None = None,
) -> Plot:
    """Return the plot of samples that begin at START."""
    grid = grid_of(START, START + seconds, most=steps)
    collector = Collector(default_panels() if panels is None else panels, grid)
    for sample in samples:
        collector.add(sample)
    return collector.plot(label)
