"""`rove crawl`."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from pathlib import Path
from typing import Any

import click
import uvloop
from rich.console import Console

from rove.app.application import CrawlApp, Running, Summary
from rove.app.panel import Panel
from rove.app.preparation import CrawlOrder
from rove.cli.options import (
    DEFAULT_DATA_DIR,
    crawl_name_option,
    data_dir_option,
    log_level_option,
    max_memory_option,
    min_free_disk_option,
    processes_option,
    sizes_given,
)
from rove.config import DEFAULT_CONCURRENCY, DEFAULT_TIMEOUT, parse_duration
from rove.crawl.shutdown import Ending
from rove.humanize import counted, seconds_text, size_text
from rove.policy.constants import DEFAULT_DELAY, DEFAULT_MAX_LINKS, DEFAULT_REDIRECT_HOPS
from rove.resources.runtime import tune_process
from rove.urls.ignored_params import parse_names

_NEW_LIMIT = {Ending.MAX_PAGES: " --max-pages N", Ending.MAX_DURATION: " --max-duration TIME"}
MOST = 1_000_000_000
"""Of pages, links, connections: more than there can be, and less than a database cannot hold."""
_SETTINGS = (
    "email",
    "info_url",
    "delay",
    "allow_short_delay",
    "concurrency",
    "max_depth",
    "seeds_only",
    "connect_to",
    "dns_servers",
    "strict_tls",
    "allow_private_addresses",
    "store",
    "redirect_hops",
    "per_ip",
    "sitemaps",
    "drop_params",
    "max_links",
    "timeout",
)


@click.command(short_help="crawl from a file of domains")
@click.argument("seeds", required=False)
@click.option(
    "--email", metavar="ADDRESS", help="how webmasters reach you; required for a new crawl"
)
@data_dir_option("where everything of this crawl lives", file_okay=False)
@click.option(
    "--exclude",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="domains never to be touched, one a line; each covers its subdomains",
)
@click.option(
    "--delay",
    type=float,
    metavar="SECONDS",
    help=f"least time between two visits to one domain [default: {DEFAULT_DELAY:g}]",
)
@click.option(
    "--allow-short-delay", is_flag=True, default=None, help="needed for a --delay below 70"
)
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"fetches in flight [default: {DEFAULT_CONCURRENCY}]",
)
@click.option(
    "--max-pages", type=click.IntRange(min=1, max=MOST), metavar="N", help="end after so many pages"
)
@click.option("--max-duration", metavar="TIME", help="end after 90s, 30m, 24h, 2d")
@click.option(
    "--max-depth",
    type=click.IntRange(min=0, max=MOST),
    metavar="N",
    help="links followed from a seed; 0 fetches the seeds alone",
)
@click.option(
    "--max-pages-per-domain",
    type=click.IntRange(min=1, max=MOST),
    metavar="N",
    help="pages of one domain",
)
@click.option(
    "--horizon",
    metavar="TIME",
    help="how long the crawl is meant to go on, which bounds the URLs kept of one domain "
    "[default: --max-duration, else 30d]",
)
@click.option(
    "--seeds-only",
    is_flag=True,
    default=None,
    help="follow links only into the seeds' domains (fetching starts when all seeds are loaded)",
)
@click.option(
    "--info-url",
    metavar="URL",
    help="a page about this crawl, named in the User-Agent beside the e-mail",
)
@click.option(
    "--connect-to",
    multiple=True,
    metavar="PATTERN=ADDRESS[:PORT]",
    help="reach hosts that match PATTERN ('*.test') there, without DNS; repeatable",
)
@click.option(
    "--dns-server",
    "dns_servers",
    multiple=True,
    metavar="ADDRESS[:PORT]",
    help="ask this name server instead of the machine's own; repeatable",
)
@click.option(
    "--strict-tls",
    is_flag=True,
    default=None,
    help="refuse certificates that do not hold, and old TLS, instead of marking the pages",
)
@click.option(
    "--allow-private-addresses",
    is_flag=True,
    default=None,
    help="do not refuse loopback, private, link-local and reserved addresses",
)
@click.option(
    "--store",
    type=click.Choice(["text", "raw", "both"]),
    help="what is kept of a page: its text, the raw answer, or both [default: text]",
)
@click.option(
    "--sitemaps",
    is_flag=True,
    default=None,
    help="read the sitemaps that robots.txt names",
)
@click.option(
    "--drop-param",
    "drop_params",
    multiple=True,
    metavar="NAME",
    help="leave this parameter out of all URLs, besides session ids and tracking parameters ('x_*': all that "
    "begin with x_); for a new crawl; repeatable",
)
@click.option(
    "--max-links",
    type=click.IntRange(min=0, max=50_000),
    metavar="N",
    help=f"links taken from one page; the rest is left [default: {DEFAULT_MAX_LINKS}]",
)
@click.option(
    "--redirect-hops",
    type=click.IntRange(min=0, max=5),
    metavar="N",
    help="redirects inside a domain followed at once; 0: each is a visit of its own "
    f"[default: {DEFAULT_REDIRECT_HOPS}]",
)
@click.option(
    "--per-ip",
    type=click.IntRange(min=1),
    metavar="N",
    help="connections at once to one address, within a process [default: no limit]",
)
@click.option(
    "--timeout",
    type=float,
    metavar="SECONDS",
    help="what one request may take, from the name to the last byte "
    f"[default: {DEFAULT_TIMEOUT:g}]",
)
@click.option(
    "--resume", is_flag=True, help="go on with the crawl in --data-dir; SEEDS are added to it"
)
@click.option(
    "--frontier",
    metavar="POSTGRESQL_URL",
    help="keep the frontier in this database, for many machines [default: SQLite in --data-dir]",
)
@crawl_name_option
@processes_option
@max_memory_option
@min_free_disk_option
@log_level_option
def crawl(**given: Any) -> int:
    """Crawl politely from SEEDS, a file with one domain or URL a line ('-' is standard input)."""
    duration = given["max_duration"]
    given["drop_params"] = parse_names(given["drop_params"])
    options = {name: given[name] for name in _SETTINGS if given[name] not in (None, ())}
    if given["horizon"] is not None:
        options["horizon"] = parse_duration(given["horizon"])
    options |= sizes_given(max_memory=given["max_memory"], min_free_disk=given["min_free_disk"])
    order = CrawlOrder(
        data_dir=given["data_dir"],
        seeds=given["seeds"],
        resume=given["resume"],
        exclude=given["exclude"],
        options=options,
        max_pages=given["max_pages"],
        max_duration=None if duration is None else parse_duration(duration),
        max_pages_per_domain=given["max_pages_per_domain"],
        log_level=given["log_level"],
        frontier=given["frontier"],
        crawl_name=given["crawl_name"],
        processes=given["processes"],
    )
    return run_crawl(order)


def run_crawl(order: CrawlOrder) -> int:
    """Crawl as ordered, with a panel, stopping in good order at a signal; the exit code."""
    console = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
    received: list[int] = []

    async def watch(running: Running) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, stop, running, number)
        panel = Panel(
            console,
            progress=running.crew.progress,
            frontier=running.frontier,
            delay=running.settings.delay,
            remaining_limits=running.remaining_limits,
        )
        await panel.show()

    def stop(running: Running, number: int) -> None:
        if received:
            console.print("stopped at once")
            running.crew.kill()
            os._exit(128 + number)
        received.append(number)
        console.print("stopping: fetches in flight get a few seconds; once more stops at once")
        running.crew.stop()

    tune_process()
    app = CrawlApp(order, say=console.print, watch=watch)
    try:
        summary = uvloop.run(app.run())
    except KeyboardInterrupt:
        return 130
    _show_summary(console, order, summary)
    return 128 + received[0] if received and summary.ending is Ending.STOPPED else 0


def _show_summary(console: Console, order: CrawlOrder, summary: Summary) -> None:
    progress, counts = summary.progress, summary.counts
    pending = counts.urls_pending
    console.print(
        f"{summary.ending}: {counted(progress.pages, 'page')}, {size_text(progress.bytes)}, "
        f"{progress.requests:,} requests in {seconds_text(summary.seconds)} "
        f"({progress.pages / max(summary.seconds, 0.001):.1f} pages/s)"
    )
    if summary.ending is Ending.MAX_PAGES and not progress.pages:
        console.print("the limit was reached before; give a new --max-pages to go on")
    elif summary.ending is Ending.MAX_DURATION and summary.seconds < 1:
        console.print("the limit was reached before; give a new --max-duration to go on")
    elif summary.ending is Ending.EXHAUSTED and pending:
        console.print(
            f"{pending:,} URLs are left: they wait for sites that keep failing, or for a limit"
        )
    elif pending:
        is_default = order.data_dir == DEFAULT_DATA_DIR
        place = "" if is_default else f" --data-dir {shlex.quote(str(order.data_dir))}"
        limit = _NEW_LIMIT.get(summary.ending, "")
        console.print(
            f"{pending:,} URLs are pending; go on with: rove crawl --resume{place}{limit}"
        )
