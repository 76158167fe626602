"""`rove seeds`: list the seeds of a crawl with what became of each, and add more."""

from __future__ import annotations

import click

from rove.admin.maintenance import CrawlNamed
from rove.app.add_seeds import add_seeds
from rove.app.seed_copy import SeedInput
from rove.cli.crawl_given import crawl_to_change
from rove.cli.options import Command, json_option, option
from rove.cli.output import print_json, print_line, print_note, reading
from rove.cli.resume import not_running
from rove.datadir import DataDir
from rove.errors import UsageError
from rove.frontier.backends import opened_backend, remote_to_read, saved_form
from rove.inspect.seed_outcomes import as_json, as_line, seed_outcomes

LIST, ADD = "list", "add"


@click.command(cls=Command, short_help="List the seeds and what became of each, or add more.")
@click.argument("action", type=click.Choice([LIST, ADD]), default=LIST, metavar="[list|add]")
@click.argument("file", required=False)
@option("--failed", is_flag=True, help="List only seeds that brought no page because of an error.")
@json_option
@option("--yes", is_flag=True, help="Add seeds even if most lines are bad. Asked for only at a terminal.")
@crawl_to_change
@reading
async def seeds(crawl: CrawlNamed, action: str, file: str | None, failed: bool, json: bool, yes: bool) -> None:
    """List the seeds of a crawl in the order in which they were given, or add those in FILE ('-' is standard input).

    A seed is stored, pending, failing (it failed and will be tried again), failed, blocked or redirected. Where a seed
    redirects, the state is that of the last URL.

    A running crawl fetches seeds that are added within seconds. A seed that is known and has failed is tried again.
    """
    if action == ADD:
        if file is None or failed or json:
            raise UsageError("give the seeds to add: rove seeds add FILE")
        await _add(crawl, SeedInput(file, yes=yes))
    elif file is not None or yes:
        raise UsageError("'rove seeds list' lists all seeds and takes no file; to add seeds: rove seeds add FILE")
    else:
        await _list(crawl, only_failed=failed, as_lines_of_json=json)


async def _list(crawl: CrawlNamed, *, only_failed: bool, as_lines_of_json: bool) -> None:
    data = DataDir(crawl.data_dir)
    remote = remote_to_read(data, crawl.frontier, crawl.crawl_name)
    count = 0
    async with opened_backend(data, remote=remote, read_only=True, on_news=print_note) as backend:
        form = await saved_form(backend.catalog)
        async for outcome in seed_outcomes(backend.reader, form, only_failed=only_failed):
            count += 1
            if as_lines_of_json:
                print_json(as_json(outcome))
            else:
                print_line(as_line(outcome))
    if not count:
        print_note("no seed has failed" if only_failed else "no seed is loaded yet")


async def _add(crawl: CrawlNamed, given: SeedInput) -> None:
    if not await add_seeds(crawl, given, say=print_note):
        print_note(not_running(crawl))
