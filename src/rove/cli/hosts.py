"""`rove hosts`: a row for each host."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from pathlib import Path

import click

from rove.cli.crawl_given import CrawlGiven, crawl_to_read
from rove.cli.data_out import (
    Format,
    force_option,
    format_option,
    name_of,
    name_option,
    output_option,
    refuse_standard_output,
)
from rove.cli.options import Command, domain_option, since_option, until_option
from rove.cli.output import print_line, progress, reading
from rove.export.host_index import HostIndex
from rove.export.output import whole_directory
from rove.export.parquet import check_pyarrow
from rove.inspect.lookup import domain_given, site_named
from rove.inspect.open_crawl import Archive
from rove.model.ledger import RequestRow
from rove.notation.humanize import counted
from rove.policy.exclusions import Exclusions


@click.command(cls=Command, short_help="Write counts of responses, a row for each host.")
@format_option(Format.PARQUET)
@crawl_to_read
@domain_option
@since_option
@until_option
@name_option
@output_option
@force_option
@reading
async def hosts(
    form: str,
    crawl: CrawlGiven,
    domain: str | None,
    since: float | None,
    until: float | None,
    name: str | None,
    output: Path | None,
    force: bool,
) -> None:
    """Write counts of responses as Parquet, a row for each host, with the columns of Common Crawl's host index.

    All requests of the crawl count, those of other machines too. Excluded domains are left out.
    """
    if output is None:
        raise refuse_standard_output(Format(form))
    check_pyarrow()
    site_name = None if domain is None else domain_given(domain)
    start, end = -math.inf if since is None else since, math.inf if until is None else until
    async with crawl.opened() as archive:
        site = None if site_name is None else site_named(site_name, await archive.form())
        rows = archive.reader.ledger() if site is None else archive.reader.visits(site.id)
        total = (await archive.reader.counts()).requests if site is None else None
        with whole_directory(output, overwrite=force) as directory:
            index = HostIndex(directory, name_of(crawl, (), name))
            await index.read(_chosen(rows, archive, start, end, total))
            count = index.write()
    print_line(f"{output}: {counted(count, 'host')}")


async def _chosen(
    rows: AsyncIterator[RequestRow], archive: Archive, start: float, end: float, total: int | None
) -> AsyncIterator[RequestRow]:
    exclusions = Exclusions(await archive.catalog.exclusions())
    with progress("reading requests", total) as advance:
        async for row in rows:
            advance(1)
            if start <= row.started < end and not exclusions.covers_url(row.url):
                yield row
