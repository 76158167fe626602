"""Reads the samples of crawls and makes plots of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

from rove.frontier.contract import FrontierReader
from rove.inspect.open_crawl import Archive
from rove.model.samples import Sample
from rove.observe.grid import SHORTEST_STEP, Grid, grid_of
from rove.observe.panels import Panel
from rove.observe.series import Collector, Plot

_FINER = 8
"""Samples are read for steps this many times shorter, so that the steps of a plot have bounds."""

Opening = Callable[[], AbstractAsyncContextManager[Archive]]


class Span(NamedTuple):
    """A time of which there are samples, in wall-clock seconds."""

    first: float
    last: float


async def read_plots(
    crawls: Sequence[tuple[str, Opening]], panels: Sequence[Panel], *, since: float, until: float, most: int
) -> list[Plot]:
    """Return a plot for each crawl, with at most about `most` steps of the same length."""
    spans = []
    for _, opened in crawls:
        async with opened() as archive:
            spans.append(await sampled_time(archive.reader, since, until))
    length = max((span.last - span.first for span in spans if span is not None), default=0.0)
    plots = []
    for (label, opened), span in zip(crawls, spans, strict=True):
        start = 0.0 if span is None else span.first
        grid = grid_of(start, start + length, most=most, is_aligned=len(crawls) == 1)
        if span is not None:
            grid = grid.until(span.last)
        async with opened() as archive:
            plots.append(await read_plot(archive.reader, panels, grid, label))
    return plots


async def sampled_time(reader: FrontierReader, since: float, until: float) -> Span | None:
    """Return the part of a time of which there are samples; None if there are none."""
    oldest = await _first(reader.samples(since=since, until=until))
    if oldest is None:
        return None
    first = max(since, min(sample.ended / 1000 - sample.seconds for sample in oldest))
    last = max(sample.ended / 1000 for sample in await reader.latest_samples())
    return Span(first, max(first, min(last, until)))


async def _first(groups: AsyncIterator[list[Sample]]) -> list[Sample] | None:
    try:
        return await anext(groups, None)
    finally:
        if isinstance(groups, AsyncGenerator):
            await groups.aclose()  # it may hold a connection


async def read_plot(reader: FrontierReader, panels: Sequence[Panel], grid: Grid, label: str) -> Plot:
    """Read the samples of a time."""
    collector = Collector(panels, grid)
    step = max(SHORTEST_STEP, grid.step / _FINER)
    async for group in reader.samples(since=grid.start, until=grid.end, step=step):
        for sample in group:
            collector.add(sample)
    return collector.plot(label)
