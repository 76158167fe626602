"""`rove plot`: a crawl over time, as a picture or in the terminal."""

from __future__ import annotations

import enum
import math
import shutil
from collections.abc import Sequence
from pathlib import Path

import click

from rove.cli.crawl_given import CrawlGiven
from rove.cli.options import (
    DEFAULT_DATA_DIR,
    POSTGRESQL,
    Command,
    crawl_name_option,
    moment,
    option,
)
from rove.cli.output import can_print, print_drawing, print_line, reading
from rove.cli.types import Parsed
from rove.errors import RoveError, UsageError
from rove.frontier.dsn import redacted
from rove.inspect.whole_file import whole_file
from rove.notation.humanize import counted
from rove.observe.captions import about
from rove.observe.panels import Panel, default_panels, panels_named
from rove.observe.plot_html import as_html
from rove.observe.plot_reading import read_plots
from rove.observe.png import as_png
from rove.observe.series import Plot
from rove.observe.svg_chart import OVERLAY_STEPS, STEPS, as_svg
from rove.observe.terminal_chart import BLOCKS, Tone, chart_lines, in_ascii, steps_for

LEAST_WIDTH = 40
_STYLES = {
    Tone.PLAIN: "",
    Tone.TITLE: "bold",
    Tone.SOFT: "dim",
    Tone.CURVE: "cyan",
    Tone.LIMIT: "dim",
    Tone.HELD: "red",
}


class Format(enum.Enum):
    """What a file is, by the end of its name."""

    SVG = ".svg"
    HTML = ".html"
    PNG = ".png"


def _format(path: Path) -> Format:
    try:
        return Format(path.suffix.lower())
    except ValueError:
        raise UsageError(f"{path}: a plot is written as .svg, .html or .png; end the name with one of these") from None


def _panels(text: str) -> tuple[Panel, ...]:
    return panels_named(name.strip() for name in text.split(","))


@click.command(cls=Command, short_help="Draw a crawl over time.")
@option(
    "--since",
    type=moment,
    metavar="TIME",
    default_text="the start of the crawl",
    help="Draw from then on, such as 12h (ago), 2026-11-18 or 2026-11-18T01:39Z.",
)
@option("--until", type=moment, metavar="TIME", default_text="now", help="Draw up to then.")
@option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    default_text="draw in the terminal",
    help="Write this .svg, .png or .html file; .html shows the values under the pointer.",
)
@option(
    "--panels",
    type=Parsed("names", _panels),
    metavar="NAMES",
    default_text=f"{default_panels()[0].name} to {default_panels()[-1].name}",
    help="Draw these panels, separated by commas, or 'all'.",
)
@option(
    "--data-dir",
    "data_dirs",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="DIR",
    default_text=str(DEFAULT_DATA_DIR),
    help="The crawl to draw. If it is given several times, the crawls are drawn over each other.",
)
@option(
    "--frontier",
    group=POSTGRESQL,
    metavar="POSTGRESQL_URL",
    help="Draw a crawl in this database, from any machine, without joining it.",
)
@crawl_name_option
@reading
async def plot(
    since: float | None,
    until: float | None,
    output: Path | None,
    panels: tuple[Panel, ...] | None,
    data_dirs: tuple[Path, ...],
    frontier: str | None,
    crawl_name: str | None,
) -> None:
    """Draw a crawl over time: pages, errors, times of requests, domains, CPU, memory and the database.

    The panels are pages, leases, phases, errors, in-flight, urls, domains, cpu, memory, files and database. With
    --panels there are also requests, traffic, links, margin, lag and disk.

    The times are UTC. A gap is a time without samples, and a shaded time is one in which the crawl was held up.
    """
    crawls = _crawls(data_dirs, frontier, crawl_name)
    kind = None if output is None else _format(output)
    width, height = shutil.get_terminal_size()
    width = max(LEAST_WIDTH, width)
    most = steps_for(width) if kind is None else STEPS if len(crawls) == 1 else OVERLAY_STEPS
    plots = await read_plots(
        [(label, crawl.opened) for label, crawl in crawls],
        default_panels() if panels is None else panels,
        since=-math.inf if since is None else since,
        until=math.inf if until is None else until,
        most=most,
    )
    if not any(plot.machines for plot in plots):
        when = "" if since is None and until is None else " in this time"
        raise RoveError(f"there are no samples{when}; a crawl writes one every 10 s while it runs")
    if output is None or kind is None:
        _print(plots, width, height)
    else:
        drawing = _file(plots, kind)
        with whole_file(output) as file:
            file.write(drawing)
        print_line(f"{output}: {counted(len(plots[0].panels), 'panel')}, {'; '.join(map(about, plots))}")


def _crawls(data_dirs: Sequence[Path], frontier: str | None, crawl_name: str | None) -> list[tuple[str, CrawlGiven]]:
    """Return the crawls to draw, with what they are called."""
    if frontier is not None and len(data_dirs) > 1:
        raise UsageError("give either --frontier or several --data-dir, not both")
    return [
        (
            str(directory) if frontier is None else " ".join(filter(None, (redacted(frontier), crawl_name))),
            CrawlGiven(data_dir=directory, frontier=frontier, crawl_name=crawl_name),
        )
        for directory in dict.fromkeys(data_dirs or (DEFAULT_DATA_DIR,))
    ]


def _file(plots: Sequence[Plot], kind: Format) -> bytes:
    match kind:
        case Format.SVG:
            return as_svg(plots).encode("utf-8", "backslashreplace")
        case Format.HTML:
            return as_html(plots).encode("utf-8", "backslashreplace")
        case Format.PNG:
            return as_png(as_svg(plots))


def _print(plots: Sequence[Plot], width: int, height: int) -> None:
    has_blocks = can_print(BLOCKS)
    print_drawing(
        ((part.text if has_blocks else in_ascii(part.text), _STYLES[part.tone]) for part in line)
        for line in chart_lines(plots, width=width, height=height)
    )
