"""`rove export`: the stored pages in the formats that other programs read."""

from __future__ import annotations

import math
from pathlib import Path

import click

from rove.cli.crawl_given import CrawlGiven, crawl_to_read
from rove.cli.data_out import (
    Format,
    crawls_to_read,
    force_option,
    format_option,
    from_option,
    name_of,
    name_option,
    output_option,
    refuse_standard_output,
    status_option,
)
from rove.cli.options import Command, domain_option, option, since_option, until_option, whole_number
from rove.cli.output import print_line, print_note, reading
from rove.cli.page_writers import WRITERS, Chosen, Wanted
from rove.cli.types import Parsed
from rove.cli.where import where_option
from rove.errors import UsageError
from rove.export.incremental import State, crawl_mark
from rove.export.parquet import check_pyarrow
from rove.inspect.lookup import domain_given
from rove.inspect.open_crawl import Archive
from rove.inspect.page_query import Where
from rove.model.usage import Purpose
from rove.notation.humanize import counted
from rove.policy.usage import parse_use

_NEEDS_TEXT = (Format.PARQUET, Format.HF)


@click.command(cls=Command, short_help="Write the stored pages, in one of four formats.")
@format_option(Format.JSONL, Format.PARQUET, Format.HF, Format.WACZ)
@crawl_to_read
@domain_option
@status_option
@where_option
@since_option
@until_option
@option(
    "--for",
    "purpose",
    type=Parsed("purpose", parse_use),
    metavar="PURPOSE",
    help="Leave out pages whose site does not want them used for it: training or search.",
)
@option("--limit", **whole_number(1), default_text="no limit", help="Maximum number of pages, the newest ones.")
@option("--all", "everything", is_flag=True, help="Also redirects, failures and pages that were not stored.")
@option(
    "--incremental",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="STATE",
    help="Only pages that are new since the last call with this file, which remembers them.",
)
@from_option
@name_option
@output_option
@force_option
@reading
async def export(
    form: str,
    crawl: CrawlGiven,
    domain: str | None,
    status: int | None,
    where: Where | None,
    since: float | None,
    until: float | None,
    purpose: Purpose | None,
    limit: int | None,
    everything: bool,
    incremental: Path | None,
    sources: tuple[Path, ...],
    name: str | None,
    output: Path | None,
    force: bool,
) -> None:
    """Write the stored pages, newest first, each with url, date, title, text and more.

    jsonl: JSON Lines in UTF-8; every line has all keys, null where empty. parquet: a directory of Parquet files with
    FineWeb's columns. hf: the same as a data set for Hugging Face, with a card. wacz: the original pages in one file
    that replayweb.page shows.

    Pages of domains that are excluded now are left out.
    """
    kind = Format(form)
    _check_options(kind, everything=everything, incremental=incremental, output=output, limit=limit)
    if kind is Format.WACZ and (where is not None or purpose is not None):
        given = "--where" if where is not None else "--for"
        raise UsageError(f"{given} is not for --format wacz; choose by --domain, --status, --since and --until")
    if incremental is not None and (since is not None or until is not None or len(sources) > 1):
        raise UsageError(
            "--incremental goes on where the last call ended; it takes no --since or --until, and one --from"
        )
    wanted = Wanted(
        kind=kind,
        domain=None if domain is None else domain_given(domain),
        status=status,
        where=where,
        purpose=purpose,
        since=-math.inf if since is None else since,
        until=math.inf if until is None else until,
        limit=limit,
        everything=everything,
        name=name_of(crawl, sources, name),
        output=output,
        force=force,
    )
    async with crawls_to_read(crawl, sources) as archives:
        await _check_store(kind, archives)
        state = None if incremental is None else State(incremental, await crawl_mark(archives[0]), wanted.choice)
        span = None if state is None else await state.span(archives[0])
        chosen = Chosen(wanted, [await wanted.export(archive, span) for archive in archives])
        if span is not None and span.last == span.after:
            print_note("rove: no page is new")
            return

        def on_complete(part: Path) -> None:
            if state is not None and span is not None:
                state.complete(span, part)

        try:
            written = await WRITERS[kind](chosen, on_complete)
        except BaseException:
            if state is not None:
                state.withdraw()
            raise
        if state is not None and span is not None:
            state.advance(span)
        if output is not None:
            print_line(f"{output}: {counted(written, 'page')}")
        if not (written or chosen.left_out):
            what = "page" if everything else "stored page"
            query, archive = chosen.exports[0].query, archives[0]
            print_note(f"rove: {await query.nothing_found(archive.reader, await archive.form(), what)}")
    chosen.print_notes([archive.pages.directory.parent for archive in archives])


def _check_options(
    kind: Format,
    *,
    everything: bool,
    incremental: Path | None,
    output: Path | None,
    limit: int | None,
) -> None:
    if kind is not Format.JSONL and output is None:
        raise refuse_standard_output(kind)
    if kind is not Format.JSONL and everything:
        raise UsageError(f"--all is for --format jsonl; --format {kind} has only pages that were stored")
    if kind is Format.WACZ and limit is not None:
        raise UsageError("--limit is not for --format wacz; choose by --domain, --since and --until")
    if incremental is not None and (output is None or kind is Format.WACZ or limit is not None):
        raise UsageError("--incremental needs --output, and goes with neither --limit nor --format wacz")
    if kind in _NEEDS_TEXT:
        check_pyarrow()


async def _check_store(kind: Format, archives: list[Archive]) -> None:
    """Refuse a format that needs what no crawl has stored."""
    stores = {(await archive.settings()).store for archive in archives}
    if kind is Format.WACZ and stores == {"text"}:
        raise UsageError(
            "this crawl stored only the texts of pages (--store text), and a WACZ file shows the original pages; "
            "crawl with --store raw or both to get one"
        )
    if kind in _NEEDS_TEXT and stores == {"raw"}:
        raise UsageError(
            f"this crawl stored no texts (--store raw), and --format {kind} is made of texts; "
            "use --format wacz or 'rove index', or crawl with --store text or both"
        )
