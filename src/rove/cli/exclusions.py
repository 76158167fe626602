"""`rove exclude`, `include` and `purge`: act on a webmaster's complaint."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import click

from rove.admin import exclude as exclusions
from rove.admin import purge as purging
from rove.admin.maintenance import CrawlNamed
from rove.app.preparation import read_exclusions
from rove.cli.crawl_given import crawl_to_change
from rove.cli.options import Command, data_dir_option, option
from rove.cli.output import changing, print_line, print_lines, print_note
from rove.errors import UsageError
from rove.frontier.records import Exclusion
from rove.notation.humanize import counted, size_text, utc_text
from rove.policy.coverage import coverage_text
from rove.policy.exclusions import domain_around, is_public_suffix, parse_pattern

SHOWN = 5
"""Patterns of a file that are described one by one."""

yes_option = option(
    "--yes", is_flag=True, help="Accept a public suffix such as 'com', which covers every domain below it."
)


@click.command(cls=Command, short_help="Never contact a domain again, effective at once.")
@click.argument("domains", nargs=-1, metavar="DOMAIN...")
@option("--reason", default="", metavar="TEXT", help="Saved with the exclusion.")
@option("--file", "file", type=click.Path(path_type=Path), metavar="FILE", help="More domains, one per line.")
@option("--list", "list_all", is_flag=True, help="List all exclusions, lifted ones too.")
@yes_option
@crawl_to_change
@changing
def exclude(
    domains: tuple[str, ...], reason: str, file: Path | None, list_all: bool, yes: bool, crawl: CrawlNamed
) -> None:
    """Never contact DOMAIN and its subdomains again. A running crawl obeys within seconds, on every machine.

    Of a URL, only the host counts: an exclusion covers whole hosts. '=www.example.com' covers that host alone. A '*'
    matches any characters: 'shop*.example.com'.
    """
    if list_all:
        if domains or file is not None:
            raise UsageError("--list shows all exclusions; use it without domains and --file")
        history = asyncio.run(exclusions.exclusion_history(crawl, on_news=print_note))
        print_lines(list(map(_line, history)) or ["none"])
        return
    given = {parse_pattern(domain): domain for domain in domains}
    given |= {pattern: pattern for pattern in read_exclusions(file) if pattern not in given}
    if not given:
        empty = f"{file} holds no domain; " if file is not None else ""
        raise UsageError(f"{empty}nothing to exclude: rove exclude DOMAIN, or rove exclude --list")
    _check_suffixes(given, yes, "exclude")
    done = asyncio.run(exclusions.exclude(crawl, list(given), reason))
    new = set(done.new)
    for pattern, text in islice(given.items(), SHOWN):
        print_line(f"{'excluded' if pattern in new else 'excluded already'}: {coverage_text(pattern, text)}")
    if len(given) > SHOWN:
        print_line(f"and {counted(len(given) - SHOWN, 'other pattern')}")
    if reason and len(new) < len(given):
        print_line("an exclusion that is already in force keeps its reason")
    print_line(f"{counted(len(done.new), 'exclusion')} added; {counted(done.urls, 'URL')} left the queue")
    if done.is_running:
        print_line("the running crawl obeys from now on")


@click.command(cls=Command, short_help="Lift an exclusion.")
@click.argument("domains", nargs=-1, required=True, metavar="DOMAIN...")
@yes_option
@crawl_to_change
@changing
def include(domains: tuple[str, ...], yes: bool, crawl: CrawlNamed) -> None:
    """Allow the crawl to contact DOMAIN again. Delays continue where they were.

    Give DOMAIN as it was excluded; 'rove exclude --list' shows that.
    """
    given = {parse_pattern(domain): domain for domain in domains}
    _check_suffixes(given, yes, "include")
    reopened = asyncio.run(exclusions.include(crawl, list(given)))
    for pattern, text in given.items():
        print_line(f"included: {coverage_text(pattern, text)}")
    print_line(f"{counted(len(given), 'exclusion')} lifted; {counted(reopened, 'URL')} pending again")


@click.command(cls=Command, short_help="Delete the stored pages of a domain.")
@click.argument("domain")
@option("--yes", is_flag=True, help="Do not ask for confirmation.")
@data_dir_option("The crawl, which must be stopped.")
@changing
def purge(domain: str, yes: bool, data_dir: Path) -> None:
    """Delete the stored pages of DOMAIN and its subdomains from the WARC files of this machine, and all their titles.

    The ledger still shows what was requested and when. To keep rove from coming back, use 'rove exclude'.
    """
    pattern = parse_pattern(domain)
    if domain_around(pattern) is None:
        raise UsageError(f"{domain} is not one domain; purge each domain by its name")
    covered = coverage_text(pattern, domain)
    if not yes and not sys.stdin.isatty():
        raise UsageError("this deletes stored pages and cannot ask for confirmation; add --yes")
    if not yes:
        click.confirm(f"delete all stored pages in {data_dir} of {covered}?", abort=True)
    done = asyncio.run(purging.purge(data_dir, pattern, say=print_line))
    if not (done.records or done.titles or done.requests):
        print_line(f"nothing to delete: {data_dir} has no request to {covered}")
        return
    if not done.records:
        print_line(f"no page of {pattern} is stored in {data_dir}")
    else:
        print_line(
            f"{counted(done.records, 'record')} of {pattern} removed from {counted(done.files, 'file')}, "
            f"{counted(done.remaining, 'other')} kept, {size_text(done.bytes_freed)} freed"
        )
    print_line(f"{counted(done.titles, 'title')} removed from the ledger")
    print_line(
        f"kept in the ledger: {counted(done.requests, 'request')} to {covered}: URL, time, address, status and "
        "robots.txt, but no text"
    )


def _check_suffixes(patterns: Iterable[str], yes: bool, command: str) -> None:
    for pattern in patterns:
        if is_public_suffix(pattern) and not yes:
            raise UsageError(
                f"{pattern} is a public suffix: this would {command} every domain below it; add --yes if you mean that"
            )


def _line(exclusion: Exclusion) -> str:
    since = f"since {utc_text(exclusion.wall)}" if exclusion.wall else "since before it was recorded"
    by = f" by {exclusion.who}" if exclusion.who else ""
    why = f": {exclusion.reason}" if exclusion.reason else ""
    line = f"{exclusion.pattern}  {since}{by}{why}"
    if exclusion.lifted_at is None:
        return line
    return f"{line}; lifted {utc_text(exclusion.lifted_wall)} by {exclusion.lifted_by}"
