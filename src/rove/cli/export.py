"""`rove export`: the stored pages as JSON Lines."""

from __future__ import annotations

import math
from contextlib import nullcontext
from pathlib import Path
from typing import IO

import click

from rove.cli.crawl_given import CrawlGiven, crawl_to_read
from rove.cli.options import (
    Command,
    domain_option,
    option,
    since_option,
    until_option,
    whole_number,
)
from rove.cli.output import print_line, print_note, reading, standard_output, write_json
from rove.cli.where import where_option
from rove.errors import RoveError
from rove.inspect.export import Export
from rove.inspect.lookup import domain_given, site_named
from rove.inspect.page_query import PageQuery, Where
from rove.inspect.request_rows import export_json
from rove.inspect.whole_file import whole_file
from rove.notation.humanize import counted


@click.command(cls=Command, short_help="Write every stored page as JSON Lines.")
@crawl_to_read
@domain_option
@where_option
@since_option
@until_option
@option("--limit", **whole_number(1), default_text="no limit", help="Maximum number of pages, the newest ones.")
@option("--all", "everything", is_flag=True, help="Also redirects, failures and pages that were not stored.")
@option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    default_text="standard output",
    help="Write this file; it appears when it is complete.",
)
@option("--force", is_flag=True, help="Replace the file of --output if it exists.")
@reading
async def export(
    crawl: CrawlGiven,
    domain: str | None,
    where: Where | None,
    since: float | None,
    until: float | None,
    limit: int | None,
    everything: bool,
    output: Path | None,
    force: bool,
) -> None:
    """Write every stored page as JSON Lines in UTF-8, newest first: url, fetched, status, title, text and more.

    Every line has all keys, null where empty. Pages of domains that are excluded now are left out.
    """
    name = None if domain is None else domain_given(domain)
    async with crawl.opened() as archive:
        form = await archive.form()
        query = PageQuery(
            site=None if name is None else site_named(name, form),
            where=where,
            since=-math.inf if since is None else since,
            until=math.inf if until is None else until,
        )
        chosen = Export(archive, query, everything=everything, limit=limit)
        with nullcontext(standard_output()) if output is None else whole_file(output, overwrite=force) as file:
            written, unreadable = await _write(chosen, file)
        if output is not None:
            print_line(f"{output}: {counted(written, 'page')}")
        if not (written or unreadable or chosen.elsewhere or chosen.excluded):
            what = "page" if everything else "stored page"
            print_note(f"rove: {await query.nothing_found(archive.reader, form, what)}")
    if chosen.excluded:
        print_note(f"rove: {counted(chosen.excluded, 'page')} left out, because of 'rove exclude'")
    for node, count in chosen.elsewhere.items():
        verb = "is" if count == 1 else "are"
        print_note(f"rove: {counted(count, 'page')} {verb} not here but at {node}")
    if unreadable:
        raise RoveError(f"{counted(unreadable, 'page')} could not be read; they are listed above")


async def _write(chosen: Export, file: IO[bytes]) -> tuple[int, int]:
    """Write the pages; return how many were written, and how many could not be read."""
    written = unreadable = 0
    async for stored in chosen.pages():
        try:
            text = chosen.archive.read(stored)
        except RoveError as error:
            unreadable += 1
            print_note(f"rove: {stored.row.url}: {error}")
            continue
        write_json(export_json(stored, text), file)
        written += 1
    return written, unreadable
