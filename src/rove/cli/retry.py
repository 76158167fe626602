"""`rove retry`: try failed URLs again."""

from __future__ import annotations

import asyncio

import click

from rove.admin import retry as retrying
from rove.admin.maintenance import CrawlNamed
from rove.cli.crawl_given import crawl_to_change
from rove.cli.options import Command, option
from rove.cli.output import changing, print_line, print_note
from rove.cli.resume import not_running
from rove.cli.types import WholeNumber
from rove.inspect.lookup import domain_given
from rove.notation.humanize import counted
from rove.policy.retry_filter import RetryFilter


@click.command(cls=Command, short_help="Try failed URLs again.")
@option("--error", metavar="KIND", default="", help="Only URLs with this error, as 'rove status' names it.")
@option("--domain", metavar="DOMAIN", help="Only URLs of this domain.")
@option("--status", type=WholeNumber(100, 999), metavar="N", help="Only URLs that answered with this HTTP status.")
@option("--seeds", is_flag=True, help="Only seeds, and the URLs that they redirect to.")
@crawl_to_change
@changing
def retry(crawl: CrawlNamed, error: str, domain: str | None, status: int | None, seeds: bool) -> None:
    """Make failed URLs pending again, and let those that wait for a retry be due now.

    They come first in their domains. Delays, Crawl-delays and back-offs are kept. Every retry is recorded: see
    'rove status' and 'rove explain URL'.
    """
    name = "" if domain is None else domain_given(domain)
    wanted = RetryFilter(error=error, status=status, domain_name=name, only_seeds=seeds)
    done = asyncio.run(retrying.retry(crawl, wanted, say=print_note))
    if done.excluded:
        print_line(f"{counted(done.excluded, 'URL')} left alone: excluded")
    if not done.urls:
        named = "; 'rove status' names the errors" if error else ""
        print_line(f"no failed URL to try again{named}")
        return
    print_line(f"{counted(done.urls, 'URL')} to be tried again")
    if not done.is_running:
        print_line(not_running(crawl))
