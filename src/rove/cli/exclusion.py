"""`rove exclude`, `include` and `purge`: what a webmaster's complaint leads to."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import click

from rove.admin import exclude as exclusions
from rove.admin import purge as purging
from rove.app.preparation import read_exclusions
from rove.cli.options import data_dir_option
from rove.errors import UsageError
from rove.frontier.contract import Exclusion
from rove.humanize import counted, size_text
from rove.policy.exclusions import domain_around, parse_pattern

data_dir = data_dir_option("the crawl, running or not")


@click.command(short_help="never touch a domain again, at once")
@click.argument("domains", nargs=-1, metavar="DOMAIN...")
@click.option("--reason", default="", metavar="TEXT", help="kept with the exclusion")
@click.option(
    "--file",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="more domains, one a line",
)
@click.option(
    "--list", "list_all", is_flag=True, help="show all exclusions and what became of them"
)
@data_dir
def exclude(
    domains: tuple[str, ...], reason: str, file: Path | None, list_all: bool, data_dir: Path
) -> None:
    """Never touch DOMAIN and its subdomains again, on any machine of a running crawl, within seconds.

    '=www.example.com' is that host alone; a '*' stands for any letters: 'shop*.example.com'.
    """
    if list_all:
        if domains or file is not None:
            raise UsageError("--list shows all exclusions: give it alone")
        print("\n".join(map(_line, asyncio.run(exclusions.exclusion_history(data_dir)))) or "none")
        return
    patterns = [parse_pattern(domain) for domain in domains] + read_exclusions(file)
    if not patterns:
        empty = f"{file} holds no domain; " if file is not None else ""
        raise UsageError(f"{empty}say what to exclude: rove exclude DOMAIN; or see --list")
    for pattern in patterns:
        if domain_around(pattern) is None:
            print(f"{pattern} is not one domain: all that it covers is excluded")
    done = asyncio.run(exclusions.exclude(data_dir, patterns, reason))
    known = [pattern for pattern in patterns if pattern not in done.new]
    for pattern in known[:5]:
        print(f"{pattern} was excluded already")
    print(f"{counted(len(done.new), 'exclusion')} made; {counted(done.urls, 'URL')} left the queue")
    if done.is_running:
        print("the running crawl keeps to it from now on")


@click.command(short_help="lift an exclusion")
@click.argument("domains", nargs=-1, required=True, metavar="DOMAIN...")
@data_dir
def include(domains: tuple[str, ...], data_dir: Path) -> None:
    """Let a crawl go on with DOMAIN, which was excluded; delays go on where they were."""
    patterns = list(dict.fromkeys(map(parse_pattern, domains)))
    opened = asyncio.run(exclusions.include(data_dir, patterns))
    print(f"{counted(len(patterns), 'exclusion')} lifted; {counted(opened, 'URL')} pending again")


@click.command(short_help="delete the stored pages of a domain")
@click.argument("domain")
@click.option("--yes", is_flag=True, help="do not ask")
@data_dir_option("the crawl, which must be stopped")
def purge(domain: str, yes: bool, data_dir: Path) -> None:
    """Rewrite the WARC files of this machine without the records of DOMAIN and its subdomains.

    What was asked and when stays in the ledger. See 'rove exclude' to keep rove from coming back.
    """
    pattern = parse_pattern(domain)
    if domain_around(pattern) is None:
        raise UsageError(f"{domain} is not one domain: purge each by its name")
    if not yes and not sys.stdin.isatty():
        raise UsageError("this deletes stored pages, and there is nobody to ask: add --yes")
    if not yes:
        click.confirm(f"delete all stored pages of {pattern} in {data_dir}?", abort=True)
    done = asyncio.run(purging.purge(data_dir, pattern, say=print))
    print(
        f"{counted(done.records, 'record')} of {pattern} removed from {counted(done.files, 'file')}, "
        f"{done.kept:,} others kept, {size_text(done.bytes_freed)} freed"
    )


def _line(exclusion: Exclusion) -> str:
    made = f"since {_when(exclusion.wall)}" if exclusion.wall else "since before it was noted"
    by = f" by {exclusion.who}" if exclusion.who else ""
    why = f": {exclusion.reason}" if exclusion.reason else ""
    lifted = (
        f"; lifted {_when(exclusion.lifted_wall)} by {exclusion.lifted_by}"
        if exclusion.lifted_at is not None
        else ""
    )
    return f"{exclusion.pattern}  {made}{by}{why}{lifted}"


def _when(wall: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(wall))
