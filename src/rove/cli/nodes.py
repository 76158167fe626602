"""`rove nodes`: who takes part in a crawl."""

from __future__ import annotations

from pathlib import Path

import click

from rove.cli.options import data_dir_option
from rove.cli.output import print_json, run_reading
from rove.inspect.nodes import as_json, as_line, nodes_of
from rove.inspect.open_crawl import opened


@click.command(short_help="who takes part in a crawl")
@data_dir_option("the crawl to look at")
@click.option("--json", "json", is_flag=True, help="print JSON")
def nodes(data_dir: Path, json: bool) -> None:
    """Machines that take part, since when, their last sign of life, pages/s and fetches in flight."""

    async def work() -> None:
        async with opened(data_dir) as archive:
            found = nodes_of(await archive.reader.participants())
        for node in found:
            if json:
                print_json(as_json(node))
            else:
                print(as_line(node))

    run_reading(work())
