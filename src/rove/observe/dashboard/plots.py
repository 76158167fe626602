"""The numbers of the plots. The page draws them."""

from __future__ import annotations

import time

from starlette.exceptions import HTTPException
from starlette.requests import Request

from rove.inspect.open_crawl import Archive
from rove.observe.grid import SHORTEST_STEP, grid_of
from rove.observe.panels import default_panels, panels_named
from rove.observe.plot_reading import read_plot, sampled_time
from rove.observe.series import Plot

DEFAULT_SECONDS = 3_600.0
SHORTEST_SECONDS = 120.0
LONGEST_SECONDS = 10 * 365 * 86_400.0
MOST_STEPS = 400
"""Steps of a plot: about one for each two pixels of a wide screen."""


async def read_plots(archive: Archive, request: Request) -> Plot:
    """Read some panels, named in `panels`, for the last `seconds`. The plot of a young crawl begins with the crawl."""
    now = time.time()
    named = request.query_params.get("panels", "")
    panels = panels_named(named.split(",")) if named else default_panels()
    start = now - _seconds(request)
    if span := await sampled_time(archive.reader, start, now):
        start = min(span.first, now - SHORTEST_SECONDS)
    grid = grid_of(start, now, most=MOST_STEPS)
    return await read_plot(archive.reader, panels, grid, "")


def _seconds(request: Request) -> float:
    text = request.query_params.get("seconds", str(DEFAULT_SECONDS))
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not SHORTEST_STEP <= number <= LONGEST_SECONDS:
        raise HTTPException(400, f"{text!r} is not a number of seconds, or too small or too large")
    return number
