"""`rove nodes`: the machines of a crawl."""

from __future__ import annotations

import click

from rove.cli.crawl_given import CrawlGiven, crawl_to_read
from rove.cli.options import Command, json_option
from rove.cli.output import print_json, print_line, reading
from rove.inspect.nodes import as_json, as_line, nodes_of


@click.command(cls=Command, short_help="List the machines of a crawl.")
@crawl_to_read
@json_option
@reading
async def nodes(crawl: CrawlGiven, json: bool) -> None:
    """List the machines of a crawl: since when, last heartbeat, pages/s and fetches in flight."""
    async with crawl.opened() as archive:
        nodes = nodes_of(await archive.reader.participants())
    for node in nodes:
        if json:
            print_json(as_json(node))
        else:
            print_line(as_line(node))
