"""`rove explain`, `report` and `audit`: tell webmasters what the crawl did on their site, and why."""

from __future__ import annotations

import time
from pathlib import Path

import click

from rove.cli.crawl_given import CrawlGiven, crawl_to_read
from rove.cli.options import Command, json_option, option
from rove.cli.output import print_json, print_line, print_lines, print_note, reading
from rove.errors import UsageError
from rove.inspect import audit_text, explain_text
from rove.inspect.audit import audit as audit_ledger
from rove.inspect.explaining import explained
from rove.inspect.lookup import domain_given, site_named, url_given
from rove.inspect.page_query import did_you_mean
from rove.inspect.report import read_report
from rove.inspect.report_html import write_html
from rove.inspect.report_text import json_records, text_lines
from rove.notation.humanize import counted
from rove.urls.canonical import NO_IDS


@click.command(cls=Command, short_help="Tell whether a URL would be fetched, and why.")
@click.argument("url")
@crawl_to_read
@json_option
@reading
async def explain(url: str, crawl: CrawlGiven, json: bool) -> None:
    """Tell whether rove would fetch URL now, and why: exclusions, scope, robots.txt, delay, state and history."""
    url_given(url, NO_IDS)
    async with crawl.opened() as archive:
        answer = await explained(archive, url, now=time.time())
    if json:
        print_json(explain_text.as_json(answer))
    else:
        print_lines(explain_text.as_lines(answer))


@click.command(cls=Command, short_help="List every request to a site.")
@click.argument("domain")
@crawl_to_read
@option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write one HTML file that can be sent and printed.",
)
@option("--json", "json", is_flag=True, help="Print JSON Lines with every request.")
@reading
async def report(domain: str, crawl: CrawlGiven, html: Path | None, json: bool) -> None:
    """List every request to DOMAIN, its robots.txt as it was read, the delays, the contact and how to opt out."""
    name = domain_given(domain)
    if html is not None and json:
        raise UsageError("give --html or --json, not both")
    async with crawl.opened() as archive:
        form = await archive.form()
        site = site_named(name, form)
        report = await read_report(
            archive.reader,
            site,
            settings=await archive.settings(),
            exclusions=await archive.catalog.exclusion_history(),
            now=time.time(),
        )
        if not report.totals.requests:
            print_note(f"rove: no request to {site.name}{await did_you_mean(archive.reader, site, form)}")
        if html is not None:
            await write_html(report, archive.reader, html)
            requests = counted(report.totals.requests, "request")
            print_line(f"{html}: {requests} to {site.name}")
        elif json:
            async for record in json_records(report, archive.reader):
                print_json(record)
        else:
            async for line in text_lines(report, archive.reader):
                print_line(line)


@click.command(cls=Command, short_help="Check that a crawl was polite.")
@crawl_to_read
@json_option
@reading
async def audit(crawl: CrawlGiven, json: bool) -> int:
    """Check every request ever made against the rules: delays, robots.txt, exclusions, nothing fetched twice.

    The exit code is 1 if a rule was broken.
    """
    async with crawl.opened() as archive:
        exclusions = await archive.catalog.exclusion_history()
        report = await audit_ledger(archive.reader, exclusions, await archive.form(), await archive.catalog.retries())
    if json:
        print_json(audit_text.as_json(report))
    else:
        print_lines(audit_text.as_lines(report))
    return 1 if report.total else 0
