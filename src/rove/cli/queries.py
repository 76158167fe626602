"""`rove explain-query`: how the database executes the statements of rove."""

from __future__ import annotations

import click

from rove.cli.crawl_given import CrawlGiven, crawl_to_read
from rove.cli.options import Command
from rove.cli.output import print_lines, reading


@click.command("explain-query", cls=Command, short_help="Show how the database executes a statement of rove.")
@click.argument("name", required=False)
@crawl_to_read
@reading
async def explain_query(crawl: CrawlGiven, name: str | None) -> None:
    """Show how the database executes the statement NAME of rove. Without NAME, list the statements.

    Names and durations of statements are in the log. On PostgreSQL the statement runs with parameters from the crawl,
    in a transaction that is rolled back. On SQLite nothing runs, and only the plan is shown.
    """
    async with crawl.opened() as archive:
        reader = archive.reader
        print_lines(reader.query_names() if name is None else await reader.explain_query(name))
