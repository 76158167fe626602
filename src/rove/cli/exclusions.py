"""`rove exclude`, `include` and `purge`: act on a webmaster's complaint."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from rove.admin import exclude as exclusions
from rove.admin import purge as purging
from rove.app.preparation import read_exclusions
from rove.cli.options import Command, data_dir_option, option
from rove.cli.output import print_line, print_lines
from rove.errors import UsageError
from rove.frontier.contract import Exclusion
from rove.humanize import counted, size_text, utc_text
from rove.policy.exclusions import domain_around, parse_pattern

KNOWN_SHOWN = 5

data_dir = data_dir_option("The crawl, running or not.")


@click.command(cls=Command, short_help="Never contact a domain again, effective at once.")
@click.argument("domains", nargs=-1, metavar="DOMAIN...")
@option("--reason", default="", metavar="TEXT", help="Saved with the exclusion.")
@option("--file", "file", type=click.Path(path_type=Path), metavar="FILE", help="More domains, one per line.")
@option("--list", "list_all", is_flag=True, help="List all exclusions, lifted ones too.")
@data_dir
def exclude(domains: tuple[str, ...], reason: str, file: Path | None, list_all: bool, data_dir: Path) -> None:
    """Never contact DOMAIN and its subdomains again. A running crawl obeys within seconds, on every machine.

    '=www.example.com' covers that host alone. A '*' matches any characters: 'shop*.example.com'.
    """
    if list_all:
        if domains or file is not None:
            raise UsageError("--list shows all exclusions; use it without domains and --file")
        print_lines(list(map(_line, asyncio.run(exclusions.exclusion_history(data_dir)))) or ["none"])
        return
    patterns = [parse_pattern(domain) for domain in domains] + read_exclusions(file)
    if not patterns:
        empty = f"{file} holds no domain; " if file is not None else ""
        raise UsageError(f"{empty}nothing to exclude: rove exclude DOMAIN, or rove exclude --list")
    for pattern in patterns:
        if domain_around(pattern) is None:
            print_line(f"{pattern} is wider than one domain: everything that it covers is excluded")
    done = asyncio.run(exclusions.exclude(data_dir, patterns, reason))
    known = [pattern for pattern in patterns if pattern not in done.new]
    for pattern in known[:KNOWN_SHOWN]:
        print_line(f"{pattern} was excluded already")
    print_line(f"{counted(len(done.new), 'exclusion')} added; {counted(done.urls, 'URL')} left the queue")
    if done.is_running:
        print_line("the running crawl obeys from now on")


@click.command(cls=Command, short_help="Lift an exclusion.")
@click.argument("domains", nargs=-1, required=True, metavar="DOMAIN...")
@data_dir
def include(domains: tuple[str, ...], data_dir: Path) -> None:
    """Allow the crawl to contact DOMAIN again. Delays continue where they were."""
    patterns = list(dict.fromkeys(map(parse_pattern, domains)))
    reopened = asyncio.run(exclusions.include(data_dir, patterns))
    print_line(f"{counted(len(patterns), 'exclusion')} lifted; {counted(reopened, 'URL')} pending again")


@click.command(cls=Command, short_help="Delete the stored pages of a domain.")
@click.argument("domain")
@option("--yes", is_flag=True, help="Do not ask for confirmation.")
@data_dir_option("The crawl, which must be stopped.")
def purge(domain: str, yes: bool, data_dir: Path) -> None:
    """Delete the stored pages of DOMAIN and its subdomains from the WARC files of this machine.

    The ledger still shows what was requested and when. To keep rove from coming back, use 'rove exclude'.
    """
    pattern = parse_pattern(domain)
    if domain_around(pattern) is None:
        raise UsageError(f"{domain} is not one domain; purge each domain by its name")
    if not yes and not sys.stdin.isatty():
        raise UsageError("this deletes stored pages and cannot ask for confirmation; add --yes")
    if not yes:
        click.confirm(f"delete all stored pages of {pattern} in {data_dir}?", abort=True)
    done = asyncio.run(purging.purge(data_dir, pattern, say=print_line))
    print_line(
        f"{counted(done.records, 'record')} of {pattern} removed from {counted(done.files, 'file')}, "
        f"{counted(done.remaining, 'other')} kept, {size_text(done.bytes_freed)} freed"
    )


def _line(exclusion: Exclusion) -> str:
    since = f"since {utc_text(exclusion.wall)}" if exclusion.wall else "since before it was recorded"
    by = f" by {exclusion.who}" if exclusion.who else ""
    why = f": {exclusion.reason}" if exclusion.reason else ""
    line = f"{exclusion.pattern}  {since}{by}{why}"
    if exclusion.lifted_at is None:
        return line
    return f"{line}; lifted {utc_text(exclusion.lifted_wall)} by {exclusion.lifted_by}"
