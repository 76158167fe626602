"""`rove watch`: the live panel of a crawl that runs elsewhere."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import click

from rove.app.panel import PLAIN_SECONDS, Panel
from rove.app.panel_view import View, plain_line
from rove.app.watched_crawl import WatchedCrawl
from rove.cli.crawl_given import CrawlGiven, crawl_to_read
from rove.cli.keys import leaving
from rove.cli.options import Command, option
from rove.cli.output import is_output_closed, print_line, print_sentence, reading, watching_console
from rove.cli.resume import RESUME_EVERYWHERE, resume_command
from rove.cli.types import POSITIVE_DURATION
from rove.inspect.status import Status
from rove.notation.humanize import counted


@click.command(cls=Command, short_help="Watch a running crawl.")
@crawl_to_read
@option(
    "--progress-interval",
    type=POSITIVE_DURATION,
    metavar="TIME",
    default_text=f"{PLAIN_SECONDS:g}s",
    help="Time between two lines where there is no terminal.",
)
@reading
async def watch(crawl: CrawlGiven, progress_interval: float | None) -> None:
    """Show the panel of a running crawl, from any terminal. Leave with q or Ctrl-C; the crawl goes on.

    The numbers are those of the whole crawl, over all runs and machines. Without a terminal, print a line from time to
    time. It ends when the crawl ends.
    """
    console = watching_console()
    watched = WatchedCrawl(crawl.opened, on_news=partial(print_sentence, console))
    left = asyncio.Event()
    try:
        with leaving(left.set):
            first = await watched.view()
            if first is not None:
                if not console.is_terminal:
                    console.print(plain_line(first), soft_wrap=True)
                panel = Panel(console, partial(_view, watched), plain_seconds=progress_interval or PLAIN_SECONDS)
                await _until_left(panel, left)
    finally:
        await watched.close()
    if left.is_set() or watched.status is None:
        return
    print_line(_ending(watched.status, was_running=first is not None))
    if watched.status.counts.urls_pending:
        command = RESUME_EVERYWHERE if crawl.frontier is not None else resume_command(Path(crawl.data_dir))
        print_line(f"continue with: {command}")


async def _view(watched: WatchedCrawl) -> View | None:
    """Return the current numbers; None as well if nobody sees them any more."""
    return None if is_output_closed() else await watched.view()


async def _until_left(panel: Panel, left: asyncio.Event) -> None:
    """Show the panel until the user leaves or the crawl ends."""
    showing = asyncio.create_task(panel.show())
    waiting = asyncio.create_task(left.wait())
    await asyncio.wait([showing, waiting], return_when=asyncio.FIRST_COMPLETED)
    showing.cancel()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    try:
        await showing
    except asyncio.CancelledError:
        if not left.is_set():
            raise


def _ending(status: Status, *, was_running: bool) -> str:
    counts = status.counts
    stored = f"{counted(counts.pages, 'page')} stored, {counted(counts.urls_pending, 'URL')} pending"
    return f"the crawl has ended: {stored}" if was_running else f"the crawl is not running: {stored}"
