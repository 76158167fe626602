"""`rove status`, `pages`, `show` and `export`: looking into a crawl, running or not."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import click

from rove.cli.options import data_dir_option
from rove.cli.output import print_json, run_reading
from rove.errors import RoveError, UsageError
from rove.inspect.open_crawl import Archive, opened
from rove.inspect.pages import (
    copy_json,
    domain_id,
    page_json,
    page_line,
    settling_request,
    url_known,
)
from rove.inspect.requests import is_stored
from rove.inspect.status import as_json, as_lines, read_status
from rove.model.urls import UrlState
from rove.policy.exclusions import Exclusions

DEFAULT_PAGES = 20

data_dir = data_dir_option("the crawl to look at")
as_json_option = click.option("--json", "json", is_flag=True, help="print JSON")
domain_option = click.option("--domain", metavar="DOMAIN", help="only pages of this domain")


@click.command(short_help="where a crawl stands")
@data_dir
@as_json_option
def status(data_dir: Path, json: bool) -> None:
    """Counts of URLs and domains by state, pages, bytes, rate, and since when."""

    async def work() -> None:
        async with opened(data_dir) as archive:
            found = await read_status(archive.reader, running=archive.data.in_use())
        if json:
            print_json(as_json(found))
        else:
            print("\n".join(as_lines(found)))

    run_reading(work())


@click.command(short_help="list pages")
@data_dir
@domain_option
@click.option("--status", type=int, metavar="N", help="only answers with this HTTP status")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=DEFAULT_PAGES,
    show_default=True,
    metavar="N",
    help="how many at the most",
)
@as_json_option
def pages(data_dir: Path, domain: str | None, status: int | None, limit: int, json: bool) -> None:
    """Pages that were asked for, newest first (of one domain: oldest first)."""

    async def work() -> None:
        wanted = None if domain is None else domain_id(domain)
        shown = 0
        async with opened(data_dir) as archive:
            async for row in archive.reader.pages(domain=wanted, status=status):
                if json:
                    print_json(page_json(row))
                else:
                    print(page_line(row))
                shown += 1
                if shown == limit:
                    break

    run_reading(work())


@click.command(short_help="what is known of a URL")
@click.argument("url")
@data_dir
def show(url: str, data_dir: Path) -> None:
    """What is known of a URL: its record, then its stored text."""

    async def work() -> None:
        async with opened(data_dir) as archive:
            await _show(archive, url)

    run_reading(work())


async def _show(archive: Archive, text: str) -> None:
    url = await url_known(archive.reader, text, (await archive.settings()).ignored_params)
    record = await archive.reader.url(url.domain, url.fingerprint)
    if record is None:
        raise UsageError(f"{url.text} is not known to this crawl")
    print(f"{'url':<14}{record.url}")
    print(
        f"{'state':<14}{record.state.name.lower()}"
        + (f" ({record.reason})" if record.reason else "")
    )
    print(f"{'depth':<14}{record.depth}")
    if record.attempts:
        print(f"{'attempts':<14}{record.attempts}")
    row = await settling_request(archive.reader, record)
    if row is None:
        return
    for name, value in page_json(row).items():
        if name != "url" and not name.endswith("_record") and value not in (None, ""):
            print(f"{name:<14}{value}")
    stored = await archive.text_of(row)
    if stored.copy_of:
        print(f"{'text of':<14}{stored.copy_of}, which had the same before")
    for name, where in (("text", stored.where), ("raw", row.raw)):
        if where is not None:
            print(f"{name:<14}{where.file} at {where.offset:,}, {where.length:,} bytes")
    if stored.place:
        print(f"{'stored at':<14}{stored.place}; look there with 'rove show'")
    elif stored.where is None and row.raw is None and record.state is UrlState.DONE:
        print(f"{'text':<14}not stored any more: it was purged")
    elif stored.where is not None:
        print()
        print(archive.read(stored))


@click.command(short_help="every stored page as JSON Lines")
@data_dir
@domain_option
def export(data_dir: Path, domain: str | None) -> None:
    """Every stored page as JSON Lines (url, fetched, status, title, text ...) to standard output.

    Pages of domains that are excluded by now are left out.
    """

    async def work() -> int:
        wanted = None if domain is None else domain_id(domain)
        unreadable, elsewhere = 0, Counter[str]()
        async with opened(data_dir) as archive:
            excluded = Exclusions(await archive.catalog.exclusions())
            async for row in archive.reader.pages(domain=wanted):
                if not is_stored(row) or excluded.covers_url(row.url):
                    continue
                stored = await archive.text_of(row)
                if stored.where is None and row.raw is None:
                    continue
                if stored.place:
                    elsewhere[stored.place] += 1
                    continue
                try:
                    text = archive.read(stored)
                except RoveError as error:
                    unreadable += 1
                    print(f"rove: {row.url}: {error}", file=sys.stderr)
                    continue
                print_json({**page_json(row), **copy_json(stored.content, row), "text": text})
        for place, count in elsewhere.items():
            print(f"rove: {count:,} pages are not here but at {place}", file=sys.stderr)
        return unreadable

    if run_reading(work()):
        raise RoveError("some pages could not be read; they are named above")
