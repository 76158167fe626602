"""Draws the pictures of the documentation from a real run of the demo: `python -m rove.cli.pictures DIRECTORY`."""

from __future__ import annotations

import asyncio
import io
import re
import sys
import tempfile
from pathlib import Path

import uvloop
from rich.console import Console

from rove.app.application import CrawlApp
from rove.app.panel_layout import Dashboard
from rove.app.panel_view import View
from rove.app.runner import RunContext, Runner
from rove.cli.demo import HOSTS, SECONDS, demo_crawl, introduction
from rove.cli.output import print_note
from rove.cli.run import panel_of

MOMENT = 20.0
"""Seconds into the demo at which the panel is drawn."""
WIDTH = 76
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main(directory: Path) -> None:
    """Draw all pictures."""
    directory.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        demo_crawl(Path(folder) / "data", hosts=HOSTS, seconds=SECONDS) as options,
    ):
        views: list[View] = []

        async def watch(runner: Runner, context: RunContext) -> None:
            await asyncio.sleep(MOMENT)
            views.append(await panel_of(console, runner, context).view())
            runner.stop()

        console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
        uvloop.run(CrawlApp(options, say=print_note, watch=watch).run())
    console.print("$ rove demo", style="bold")
    console.print(introduction(HOSTS), soft_wrap=True, highlight=False)
    console.print(Dashboard(views[0]))
    svg = console.export_svg(title="rove demo", unique_id="rove-panel")
    # Without the fonts, which a browser would load from another server.
    (directory / "panel.svg").write_text(_FONTS.sub("", svg))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
