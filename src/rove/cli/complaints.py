"""`rove explain` and `rove report`: answers for webmasters who ask what was asked of their site, and why."""

from __future__ import annotations

import time
from pathlib import Path

import click

from rove.cli.options import data_dir_option
from rove.cli.output import print_json, run_reading
from rove.errors import UsageError
from rove.humanize import counted
from rove.inspect.explain import explanation
from rove.inspect.explain_text import as_json, as_lines
from rove.inspect.known import read_known
from rove.inspect.nodes import is_running
from rove.inspect.open_crawl import opened
from rove.inspect.pages import url_given, url_known
from rove.inspect.report import read_report, site_given
from rove.inspect.report_html import write_html
from rove.inspect.report_text import json_records, text_lines

data_dir = data_dir_option("the crawl to look at")


@click.command(short_help="would this URL be fetched, and why")
@click.argument("url")
@data_dir
@click.option("--json", "json", is_flag=True, help="print JSON")
def explain(url: str, data_dir: Path, json: bool) -> None:
    """Whether rove would fetch a URL now, and why or why not: exclusions, scope, robots.txt, delay, state, history."""

    async def work() -> None:
        url_given(url)
        async with opened(data_dir) as archive:
            settings = await archive.settings()
            wanted = await url_known(archive.reader, url, settings.ignored_params)
            known = await read_known(
                archive.reader,
                wanted,
                settings=settings,
                exclusions=await archive.catalog.exclusion_history(),
                is_running=await is_running(archive.data, archive.reader),
            )
        found = explanation(url, wanted, known, now=time.time())
        if json:
            print_json(as_json(found))
        else:
            print("\n".join(as_lines(found)))

    run_reading(work())


@click.command(short_help="everything that was asked of a site")
@click.argument("domain")
@data_dir
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="write one HTML file that can be sent and printed",
)
@click.option("--json", "json", is_flag=True, help="print JSON Lines, with every request")
def report(domain: str, data_dir: Path, html: Path | None, json: bool) -> None:
    """Every request to a site, its robots.txt as it was read, the delays kept, who asks, and how to opt out."""

    async def work() -> None:
        site = site_given(domain)
        if html is not None and json:
            raise UsageError("give --html or --json, not both")
        async with opened(data_dir) as archive:
            found = await read_report(
                archive.reader,
                site,
                settings=await archive.settings(),
                exclusions=await archive.catalog.exclusion_history(),
                now=time.time(),
            )
            if html is not None:
                await write_html(found, archive.reader, html)
                requests = counted(found.totals.requests + found.totals.elsewhere, "request")
                print(f"{html}: {requests} to {site.name}")
            elif json:
                async for record in json_records(found, archive.reader):
                    print_json(record)
            else:
                async for line in text_lines(found, archive.reader):
                    print(line)

    run_reading(work())
