"""`rove status` and `show`: look at the results of a crawl, running or not."""

from __future__ import annotations

import click

from rove.cli.crawl_given import CrawlGiven, crawl_to_read
from rove.cli.options import Command, json_option, option
from rove.cli.output import print_bytes, print_json, print_line, print_lines, print_note, print_text, reading
from rove.errors import UsageError
from rove.frontier.records import UrlRecord
from rove.inspect.lookup import other_spellings, settling_request, site_of, url_given, url_meant
from rove.inspect.open_crawl import Archive
from rove.inspect.page_query import did_you_mean
from rove.inspect.request_rows import page_json, settlement_text
from rove.inspect.status import as_json, as_lines, read_status
from rove.model.ledger import RequestRow
from rove.model.urls import UrlState
from rove.notation.humanize import counted, utc_text


@click.command(cls=Command, short_help="Show how far a crawl is.")
@crawl_to_read
@json_option
@reading
async def status(crawl: CrawlGiven, json: bool) -> None:
    """Show how far a crawl is: URLs and domains by state, pages, bytes, rate and start time."""
    async with crawl.opened() as archive:
        told, retries = await archive.instructions(), await archive.catalog.retries()
        status = await read_status(archive.reader, archive.catalog, in_use=archive.in_use, told=told, retries=retries)
    if json:
        print_json(as_json(status))
    else:
        print_lines(as_lines(status))


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
    form = await archive.form()
    meant = await url_meant(archive.reader, text, form)
    if meant is None:
        url = url_given(text, form)
        others = await other_spellings(archive.reader, text, form)
        hint = await did_you_mean(archive.reader, site_of(url), form)
        hint = f"; it knows {' and '.join(others)}" if others else hint
        if not hint and url.text.endswith("/robots.txt"):
            hint = f"; 'rove report {site_of(url).name}' shows the robots.txt"
        raise UsageError(f"{url.text} is not known to this crawl{hint}")
    if meant.instead_of:
        print_note(f"rove: {meant.instead_of}; showing {meant.record.url}")
    return meant.record


def _write_raw(archive: Archive, record: UrlRecord, row: RequestRow | None) -> None:
    if row is None or row.raw is None:
        raise UsageError(
            f"no raw response of {record.url} is stored; a crawl stores them with --store raw or --store both"
        )
    if row.node:
        raise UsageError(f"{record.url} is stored at {row.node}; run 'rove show --raw' there")
    print_bytes(archive.pages.read_raw(row.raw, expect_url=row.url))


async def _show(archive: Archive, record: UrlRecord, row: RequestRow | None) -> None:
    _print_field("url", record.url)
    reason = f" ({record.reason})" if record.reason else ""
    _print_field("state", record.state.name.lower() + reason)
    _print_field("depth", record.depth)
    if record.attempts:
        _print_field("attempts", record.attempts)
    if row is None:
        return
    for name, value in _request_facts(row).items():
        _print_field(name, value)
    stored = await archive.text_of(row)
    if stored.copy_of:
        _print_field("text of", f"{stored.copy_of}, which was stored earlier with the same text")
    for name, where in (("text", stored.where), ("raw", row.raw)):
        if where is not None:
            _print_field(name, f"{where.file} at {where.offset:,}, {counted(where.length, 'byte')}")
    if stored.node:
        _print_field("stored at", f"{stored.node}; run 'rove show' there")
    elif stored.where is None and row.raw is None and record.state is UrlState.DONE:
        _print_field("text", "no longer stored: it was purged")
    elif stored.where is not None:
        print_line()
        print_text(archive.read(stored) or "")


def _request_facts(row: RequestRow) -> dict[str, object]:
    """Return what `show` says about a request: all that is not empty, and not what is always the same."""
    facts = page_json(row)
    facts |= {
        "fetched": utc_text(row.started),
        "marks": ", ".join(row.marks),
        "languages": ", ".join(f"{code} {percent} %" for code, percent in row.languages),
        "usage_from": ", ".join(row.usage_from),
        "fate": settlement_text(row),
    }
    left_out = ("url", "language", "language_score", "text_record", "revisit_record", "raw_record")
    return {
        name: value
        for name, value in facts.items()
        if name not in left_out and value is not False and value not in (None, "")
    }


def _print_field(name: str, value: object) -> None:
    print_line(f"{name:<14}{value}")
