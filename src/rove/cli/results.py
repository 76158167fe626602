"""`rove status`, `pages`, `show` and `export`: look at the results of a crawl, running or not."""

from __future__ import annotations

import sys
from collections import Counter

import click

from rove.cli.crawl_given import CrawlGiven, crawl_to_read
from rove.cli.options import Command, domain_option, json_option, option, whole_number
from rove.cli.output import print_json, reading
from rove.errors import RoveError, UsageError
from rove.frontier.contract import UrlRecord
from rove.inspect.lookup import settling_request, site_given, url_known
from rove.inspect.open_crawl import Archive
from rove.inspect.request_rows import copy_json, is_stored, page_json, page_line
from rove.inspect.status import as_json, as_lines, read_status
from rove.model.ledger import RequestRow
from rove.model.urls import UrlState
from rove.policy.exclusions import Exclusions

DEFAULT_PAGES = 20


@click.command(cls=Command, short_help="Show how far a crawl is.")
@crawl_to_read
@json_option
@reading
async def status(crawl: CrawlGiven, json: bool) -> None:
    """Show how far a crawl is: URLs and domains by state, pages, bytes, rate and start time."""
    async with crawl.opened() as archive:
        told = await archive.instructions()
        status = await read_status(archive.reader, in_use=archive.in_use, told=told)
    if json:
        print_json(as_json(status))
    else:
        print("\n".join(as_lines(status)))


@click.command(cls=Command, short_help="List pages.")
@crawl_to_read
@domain_option
@option("--status", type=int, metavar="N", help="Only responses with this HTTP status.")
@option("--limit", **whole_number(1), default=DEFAULT_PAGES, help="Maximum number of pages.")
@json_option
@reading
async def pages(crawl: CrawlGiven, domain: str | None, status: int | None, limit: int, json: bool) -> None:
    """List the pages that were requested, newest first (with --domain: oldest first)."""
    wanted = None if domain is None else site_given(domain).id
    shown = 0
    async with crawl.opened() as archive:
        async for row in archive.reader.pages(domain=wanted, status=status):
            if json:
                print_json(page_json(row))
            else:
                print(page_line(row))
            shown += 1
            if shown == limit:
                break


@click.command(cls=Command, short_help="Show one URL and its stored text.")
@click.argument("url")
@crawl_to_read
@option("--raw", is_flag=True, help="Write the stored raw HTTP response, headers included.")
@reading
async def show(url: str, crawl: CrawlGiven, raw: bool) -> None:
    """Show what the crawl knows about URL, then its stored text.

    With --raw, write only the HTTP response as the server sent it, which needs a crawl with --store raw or both.
    """
    async with crawl.opened() as archive:
        record = await _url_record(archive, url)
        row = await settling_request(archive.reader, record)
        if raw:
            _write_raw(archive, record, row)
        else:
            await _show(archive, record, row)


async def _url_record(archive: Archive, text: str) -> UrlRecord:
    url = await url_known(archive.reader, text, (await archive.settings()).ignored_params)
    record = await archive.reader.url(url.domain, url.fingerprint)
    if record is None:
        raise UsageError(f"{url.text} is not known to this crawl")
    return record


def _write_raw(archive: Archive, record: UrlRecord, row: RequestRow | None) -> None:
    if row is None or row.raw is None:
        raise UsageError(
            f"no raw response of {record.url} is stored; a crawl stores them with --store raw or --store both"
        )
    if row.node:
        raise UsageError(f"{record.url} is stored at {row.node}; run 'rove show --raw' there")
    sys.stdout.buffer.write(archive.pages.read_raw(row.raw, expect_url=row.url))


async def _show(archive: Archive, record: UrlRecord, row: RequestRow | None) -> None:
    _print_field("url", record.url)
    reason = f" ({record.reason})" if record.reason else ""
    _print_field("state", record.state.name.lower() + reason)
    _print_field("depth", record.depth)
    if record.attempts:
        _print_field("attempts", record.attempts)
    if row is None:
        return
    for name, value in page_json(row).items():
        if name != "url" and not name.endswith("_record") and value not in (None, ""):
            _print_field(name, value)
    stored = await archive.text_of(row)
    if stored.copy_of:
        _print_field("text of", f"{stored.copy_of}, which was stored earlier with the same text")
    for name, where in (("text", stored.where), ("raw", row.raw)):
        if where is not None:
            _print_field(name, f"{where.file} at {where.offset:,}, {where.length:,} bytes")
    if stored.node:
        _print_field("stored at", f"{stored.node}; run 'rove show' there")
    elif stored.where is None and row.raw is None and record.state is UrlState.DONE:
        _print_field("text", "no longer stored: it was purged")
    elif stored.where is not None:
        print()
        print(archive.read(stored))


def _print_field(name: str, value: object) -> None:
    print(f"{name:<14}{value}")


@click.command(cls=Command, short_help="Print every stored page as JSON Lines.")
@crawl_to_read
@domain_option
@reading
async def export(crawl: CrawlGiven, domain: str | None) -> None:
    """Print every stored page as JSON Lines: url, fetched, status, title, text and more.

    Pages of domains that are excluded now are left out.
    """
    wanted = None if domain is None else site_given(domain).id
    unreadable, elsewhere = 0, Counter[str]()
    async with crawl.opened() as archive:
        excluded = Exclusions(await archive.catalog.exclusions())
        async for row in archive.reader.pages(domain=wanted):
            if not is_stored(row) or excluded.covers_url(row.url):
                continue
            stored = await archive.text_of(row)
            if stored.where is None and row.raw is None:
                continue
            if stored.node:
                elsewhere[stored.node] += 1
                continue
            try:
                text = archive.read(stored)
            except RoveError as error:
                unreadable += 1
                print(f"rove: {row.url}: {error}", file=sys.stderr)
                continue
            print_json({**page_json(row), **copy_json(stored), "text": text})
    for node, count in elsewhere.items():
        print(f"rove: {count:,} pages are not here but at {node}", file=sys.stderr)
    if unreadable:
        sys.stdout.flush()
        raise RoveError("some pages could not be read; they are listed above")
