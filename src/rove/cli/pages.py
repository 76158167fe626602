"""`rove pages`: list the pages of a crawl, running or not."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import replace

import click

from rove.cli.crawl_given import CrawlGiven, crawl_to_read
from rove.cli.options import (
    Command,
    domain_option,
    json_option,
    option,
    since_option,
    until_option,
    whole_number,
)
from rove.cli.output import flush, is_output_closed, print_json, print_line, print_note, reading
from rove.cli.where import where_option
from rove.errors import UsageError
from rove.inspect.follow import Follower
from rove.inspect.lookup import domain_given, site_named
from rove.inspect.open_crawl import Archive
from rove.inspect.page_query import PageQuery, Where
from rove.inspect.request_rows import page_json, page_line
from rove.model.ledger import RequestRow

DEFAULT_PAGES = 20
FOLLOW_SECONDS = 0.5
FOLLOW_SHARE = 5
"""A look at the ledger is followed by a pause this many times as long, if that is longer than FOLLOW_SECONDS."""


@click.command(cls=Command, short_help="List pages.")
@crawl_to_read
@domain_option
@option("--status", **whole_number(0, 999), help="Only responses with this HTTP status.")
@option("--error", metavar="KIND", help="Only requests with this error, such as dns or status-404; any: all of them.")
@option("--mark", metavar="MARK", help="Only responses with this mark, such as body-cut.")
@where_option
@since_option
@until_option
@option("--limit", **whole_number(1), default=DEFAULT_PAGES, help="Maximum number of pages.")
@option("--follow", is_flag=True, help="Then print new pages as they come, until Ctrl-C.")
@json_option
@reading
async def pages(
    crawl: CrawlGiven,
    domain: str | None,
    status: int | None,
    error: str | None,
    mark: str | None,
    where: Where | None,
    since: float | None,
    until: float | None,
    limit: int,
    follow: bool,
    json: bool,
) -> None:
    """List the pages that were requested, newest first. With --follow the newest comes last, as with 'tail -f'.

    A robots.txt that could not be fetched is listed too, because no page of its site can be requested.
    """
    name = None if domain is None else domain_given(domain)
    query = PageQuery(
        status=status,
        error=error,
        mark=mark,
        where=where,
        since=-math.inf if since is None else since,
        until=math.inf if until is None else until,
    )
    if follow and until is not None:
        raise UsageError("--follow has no end; give --until or --follow, not both")
    async with crawl.opened() as archive:
        counts = await archive.reader.counts()
        query.check(errors=counts.failures.keys(), marks=counts.marks.keys())
        form = await archive.form()
        query = query if name is None else replace(query, site=site_named(name, form))
        if follow:
            await _follow(archive, query, limit=limit, json=json)
            return
        shown = 0
        async for row in query.rows(archive.reader):
            _print(row, json=json)
            shown += 1
            if shown == limit:
                break
        if not shown:
            print_note(f"rove: {await query.nothing_found(archive.reader, form)}")


async def _follow(archive: Archive, query: PageQuery, *, limit: int, json: bool) -> None:
    follower = Follower(archive.reader, domain=None if query.site is None else query.site.id)
    await follower.begin()
    latest: list[RequestRow] = []
    async for row in query.rows(archive.reader):
        latest.append(row)
        if len(latest) == limit:
            break
    follower.note(latest)
    new = latest[::-1]
    while not is_output_closed():
        for row in new:
            _print(row, json=json)
        flush()
        began = time.monotonic()
        new = [row for row in await follower.new_pages() if query.takes(row)]
        if not new:
            await asyncio.sleep(max(FOLLOW_SECONDS, FOLLOW_SHARE * (time.monotonic() - began)))


def _print(row: RequestRow, *, json: bool) -> None:
    if json:
        print_json({**page_json(row), "kind": row.kind.value})
    else:
        print_line(page_line(row))
