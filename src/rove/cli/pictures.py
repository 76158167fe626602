"""Draws the pictures of the documentation from real runs of the demo: `python -m rove.cli.pictures DIRECTORY`."""

from __future__ import annotations

import asyncio
import io
import math
import re
import sys
import tempfile
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import uvloop
from rich.console import Console

from rove.app.application import CrawlApp
from rove.app.limit_watch import LimitWatch
from rove.app.panel_layout import Dashboard
from rove.app.panel_view import View
from rove.app.runner import RunContext, Runner
from rove.cli.demo import DELAY, HOSTS, SECONDS, demo_crawl, introduction
from rove.cli.output import print_note
from rove.cli.run import view_of
from rove.inspect.open_crawl import opened
from rove.observe.panels import default_panels
from rove.observe.plot_reading import read_plots
from rove.observe.svg_chart import STEPS, as_svg

MOMENT = 20.0
"""Seconds into the demo at which the panel is drawn."""
WIDTH = 76
PLOT_HOSTS, PLOT_DELAY, PLOT_SECONDS = 600, 8.0, 360.0
"""The sites, and the delay at which their pages last for the seconds of the plot."""
PAUSE_SECONDS = 50.0
Watch = Callable[[Runner, RunContext, LimitWatch], Coroutine[Any, Any, None]]
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main(directory: Path) -> None:
    """Draw all pictures."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "panel.svg").write_text(_panel())
    (directory / "plot.svg").write_text(_plot())


def _panel() -> str:
    """Return the panel of a run."""
    views: list[View] = []
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)

    async def watch(runner: Runner, context: RunContext, limits: LimitWatch) -> None:
        await asyncio.sleep(MOMENT)
        views.append(await view_of(runner, context, limits).view())
        runner.stop()

    with tempfile.TemporaryDirectory() as folder:
        _run(Path(folder), watch, hosts=HOSTS, seconds=SECONDS, delay=DELAY)
    console.print("$ rove demo", style="bold")
    console.print(introduction(HOSTS), soft_wrap=True, highlight=False)
    console.print(Dashboard(views[0]))
    svg = console.export_svg(title="rove demo", unique_id="rove-panel")
    # Without the fonts, which a browser would load from another server.
    return _FONTS.sub("", svg)


def _plot() -> str:
    """Return the plot of a longer run, which pauses for a while."""

    async def watch(runner: Runner, _context: RunContext, _limits: LimitWatch) -> None:
        await asyncio.sleep(PLOT_SECONDS / 2)
        runner.set_paused(True)
        await asyncio.sleep(PAUSE_SECONDS)
        runner.set_paused(False)

    with tempfile.TemporaryDirectory() as folder:
        data = _run(Path(folder), watch, hosts=PLOT_HOSTS, seconds=PLOT_SECONDS, delay=PLOT_DELAY)
        crawls = [("rove-demo", partial(opened, data))]
        plots = read_plots(crawls, default_panels(), since=-math.inf, until=math.inf, most=STEPS)
        return as_svg(asyncio.run(plots))


def _run(folder: Path, watch: Watch, *, hosts: int, seconds: float, delay: float) -> Path:
    """Run the demo, and return its data directory."""
    data = folder / "data"
    with demo_crawl(data, hosts=hosts, seconds=seconds, delay=delay) as options:
        uvloop.run(CrawlApp(options, say=print_note, watch=watch).run())
    return data


if __name__ == "__main__":
    main(Path(sys.argv[1]))
