"""`rove join` and `rove move`: crawl with more than one machine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from rove.admin.move import move_to_postgres
from rove.app.preparation import CrawlOptions
from rove.cli.config_file import config_option, sources_of
from rove.cli.options import (
    MACHINE,
    POSTGRESQL,
    WHAT_TO_KEEP,
    Command,
    crawl_name_option,
    data_dir_option,
    fields_given,
    machine_options,
    option,
)
from rove.cli.output import changing, print_line, print_note
from rove.cli.resume import resume_command
from rove.cli.run import run_crawl
from rove.cli.types import CONCURRENCY
from rove.config import Settings
from rove.datadir import DataDir
from rove.frontier.move.tables import rows_text


@click.command(cls=Command, short_help="Take part in a crawl that another machine started.")
@click.argument("frontier", metavar="POSTGRESQL_URL")
@config_option(MACHINE)
@crawl_name_option
@data_dir_option("Where this machine keeps the pages that it fetches.", file_okay=False, group=WHAT_TO_KEEP)
@option(
    "--concurrency",
    group=MACHINE,
    type=CONCURRENCY,
    metavar="auto|N",
    default_text="that of the crawl",
    help="Fetches in flight on this machine. auto: as many as web and machine allow.",
)
@machine_options
@click.pass_context
def join(context: click.Context, /, **given: Any) -> int:
    """Take part in the crawl at POSTGRESQL_URL, with its e-mail address, delay, exclusions, limits and scope."""
    options, settings = fields_given(CrawlOptions, given), fields_given(Settings, given)
    return run_crawl(CrawlOptions(**options, join=True, machine_settings=settings, sources=sources_of(context)))


@click.command(cls=Command, short_help="Move a stopped crawl from SQLite to PostgreSQL.")
@option(
    "--to",
    "to",
    group=POSTGRESQL,
    required=True,
    metavar="POSTGRESQL_URL",
    help="The database to move the crawl to; required.",
)
@crawl_name_option
@data_dir_option("The crawl to move. Its pages stay in this directory.", group=POSTGRESQL)
@changing
def move(to: str, crawl_name: str | None, data_dir: Path) -> None:
    """Move the frontier of a stopped crawl to PostgreSQL. If it is killed, run it again to continue."""
    data = DataDir(data_dir)
    moved = asyncio.run(move_to_postgres(data, to, crawl_name, say=print_note))
    print_line(f"moved: {rows_text(moved)}")
    print_line(f"continue with: {resume_command(data_dir)}")
