"""`rove nodes`: the machines of a crawl."""

from __future__ import annotations

from pathlib import Path

import click

from rove.cli.options import Command, data_dir_option, json_option
from rove.cli.output import print_json, print_line, reading
from rove.inspect.nodes import as_json, as_line, nodes_of
from rove.inspect.open_crawl import opened


@click.command(cls=Command, short_help="List the machines of a crawl.")
@data_dir_option("The crawl to look at.")
@json_option
@reading
async def nodes(data_dir: Path, json: bool) -> None:
    """List the machines of a crawl: since when, last heartbeat, pages/s and fetches in flight."""
    async with opened(data_dir) as archive:
        nodes = nodes_of(await archive.reader.participants())
    for node in nodes:
        if json:
            print_json(as_json(node))
        else:
            print_line(as_line(node))
