"""`rove join` and `move`: a crawl on more than one machine."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from rove.admin.move import move_to_postgres
from rove.app.preparation import CrawlOrder
from rove.cli.crawl import run_crawl
from rove.cli.options import (
    crawl_name_option,
    data_dir_option,
    log_level_option,
    max_memory_option,
    min_free_disk_option,
    processes_option,
    sizes_given,
)
from rove.datadir import DataDir


@click.command(short_help="take part in a crawl that another machine started")
@click.argument("frontier", metavar="POSTGRESQL_URL")
@crawl_name_option
@data_dir_option("where this machine keeps the pages that it fetches", file_okay=False)
@processes_option
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    metavar="N",
    help="fetches in flight on this machine [default: as the crawl was started with]",
)
@max_memory_option
@min_free_disk_option
@log_level_option
def join(
    frontier: str,
    crawl_name: str | None,
    data_dir: Path,
    processes: int | None,
    concurrency: int | None,
    max_memory: str | None,
    min_free_disk: str | None,
    log_level: str,
) -> int:
    """Take part in the crawl at POSTGRESQL_URL: e-mail, delay, exclusions, limits and scope are its own."""
    order = CrawlOrder(
        data_dir=data_dir,
        frontier=frontier,
        crawl_name=crawl_name,
        join=True,
        processes=processes,
        own_concurrency=concurrency,
        own=sizes_given(max_memory=max_memory, min_free_disk=min_free_disk),
        log_level=log_level,
    )
    return run_crawl(order)


@click.command(short_help="take a stopped crawl from SQLite to PostgreSQL")
@click.option(
    "--to", "to", required=True, metavar="POSTGRESQL_URL", help="the database to move it to"
)
@crawl_name_option
@data_dir_option("the crawl to move; its pages stay where they are")
def move(to: str, crawl_name: str | None, data_dir: Path) -> None:
    """Move a stopped crawl into a PostgreSQL; killed, it goes on where it was when it is run again."""
    data = DataDir(data_dir)
    moved = asyncio.run(
        move_to_postgres(data, to, crawl_name, say=lambda line: print(line, file=sys.stderr))
    )
    print("moved: " + ", ".join(f"{count:,} {name}" for name, count in moved.rows.items()))
    print(f"go on with: rove crawl --resume --data-dir {data_dir}")
