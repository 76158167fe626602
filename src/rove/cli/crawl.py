"""`rove crawl`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from rove.app.preparation import CrawlOptions
from rove.cli.options import (
    HOW_POLITELY,
    MACHINE,
    NETWORK,
    POSTGRESQL,
    WHAT_TO_CRAWL,
    WHAT_TO_KEEP,
    WHEN_TO_STOP,
    Command,
    crawl_name_option,
    data_dir_option,
    fields_given,
    machine_options,
    option,
    size,
    whole_number,
)
from rove.cli.run import run_crawl
from rove.config import DEFAULT_CONCURRENCY, DEFAULT_MAX_PAGE_SIZE, DEFAULT_TIMEOUT, Settings, parse_duration
from rove.policy.constants import DEFAULT_DELAY, DEFAULT_MAX_LINKS, DEFAULT_REDIRECT_HOPS
from rove.policy.outage import DEFAULT_OUTAGE_RULES, OutageRules
from rove.urls.ignored_params import parse_names

MAX_COUNT = 1_000_000_000
"""Upper bound for counts of pages and links: more than anybody needs, and it fits into any database column."""
FLAG: dict[str, Any] = {"is_flag": True, "default": None}
"""A flag that is None, not False, when it is left out, because a resumed crawl remembers it."""

what = partial(option, group=WHAT_TO_CRAWL)
politely = partial(option, group=HOW_POLITELY)
stop = partial(option, group=WHEN_TO_STOP)
keep = partial(option, group=WHAT_TO_KEEP)
machine = partial(option, group=MACHINE)
postgresql = partial(option, group=POSTGRESQL)
network = partial(option, group=NETWORK)


@click.command(cls=Command, short_help="Crawl from a file of domains.")
@click.argument("seeds", required=False)
@what("--resume", is_flag=True, help="Continue the crawl in --data-dir. Options are remembered; SEEDS are added.")
@what(
    "--exclude",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Domains never to contact, one per line; each covers its subdomains.",
)
@what(
    "--seeds-only", **FLAG, help="Follow links only to the seeds' domains. Fetching starts when all seeds are loaded."
)
@what(
    "--max-depth",
    **whole_number(0, MAX_COUNT),
    default_text="no limit",
    help="Links to follow from a seed. 0: only the seeds.",
)
@what(
    "--max-links", **whole_number(0, 50_000), default_text=str(DEFAULT_MAX_LINKS), help="Links to take from one page."
)
@what("--sitemaps", **FLAG, help="Read the sitemaps that robots.txt names.")
@what(
    "--drop-param",
    "drop_params",
    multiple=True,
    metavar="NAME",
    default_text="only session ids and tracking parameters",
    help="New crawls only: remove this query parameter from URLs; 'x_*' is a prefix; repeatable.",
)
@politely(
    "--email",
    metavar="ADDRESS",
    help="Your e-mail address, so that webmasters can reach you; required for a new crawl.",
)
@politely(
    "--info-url", metavar="URL", help="A page about this crawl, named in the User-Agent before the e-mail address."
)
@politely(
    "--delay",
    type=float,
    metavar="SECONDS",
    default_text=f"{DEFAULT_DELAY:g}",
    help="Minimum time between two visits to one domain.",
)
@politely(
    "--allow-short-delay",
    **FLAG,
    help=f"Allow a --delay below {DEFAULT_DELAY:g} seconds, for sites that are yours or have agreed.",
)
@politely(
    "--per-ip",
    **whole_number(1),
    default_text="no limit",
    help="Connections to one IP address at once, for each process.",
)
@politely(
    "--redirect-hops",
    **whole_number(0, 5),
    default_text=str(DEFAULT_REDIRECT_HOPS),
    help="Redirects inside a domain to follow in one visit. 0: each waits for the next visit.",
)
@stop("--max-pages", **whole_number(1, MAX_COUNT), default_text="no limit", help="Stop after this many pages.")
@stop(
    "--max-duration",
    type=parse_duration,
    metavar="TIME",
    default_text="no limit",
    help="Stop after this time, such as 90s, 30m, 24h or 2d.",
)
@stop(
    "--max-pages-per-domain",
    **whole_number(1, MAX_COUNT),
    default_text="no limit",
    help="Fetch at most this many pages of one domain.",
)
@stop(
    "--horizon",
    type=parse_duration,
    metavar="TIME",
    default_text="--max-duration, else 30d",
    help="How long the crawl is meant to run. Bounds the URLs queued for one domain.",
)
@data_dir_option("Where to keep everything of this crawl.", file_okay=False, group=WHAT_TO_KEEP)
@keep(
    "--store",
    type=click.Choice(["text", "raw", "both"]),
    default_text="text",
    help="Keep the text of a page, its raw HTTP response, or both.",
)
@keep(
    "--max-page-size",
    **size(DEFAULT_MAX_PAGE_SIZE),
    help="Receive at most this much of one page, such as 500KiB. The rest is cut off.",
)
@machine("--concurrency", **whole_number(1), default_text=str(DEFAULT_CONCURRENCY), help="Fetches in flight.")
@machine_options
@postgresql(
    "--frontier",
    metavar="POSTGRESQL_URL",
    default_text="SQLite in --data-dir",
    help="Keep the frontier in this database, so that several machines can crawl.",
)
@crawl_name_option
@network(
    "--timeout",
    type=float,
    metavar="SECONDS",
    default_text=f"{DEFAULT_TIMEOUT:g}",
    help="Time limit of one request, from the DNS lookup to the last byte.",
)
@network(
    "--connect-to",
    multiple=True,
    metavar="PATTERN=ADDRESS[:PORT]",
    help="Connect hosts that match PATTERN ('*.test') to this address, without DNS; repeatable.",
)
@network(
    "--dns-server",
    "dns_servers",
    multiple=True,
    metavar="ADDRESS[:PORT]",
    default_text="those of the system",
    help="Name server to use; repeatable.",
)
@network("--strict-tls", **FLAG, help="Refuse invalid certificates and old TLS versions instead of marking the pages.")
@network("--allow-private-addresses", **FLAG, help="Allow loopback, private, link-local and reserved addresses.")
@click.pass_context
def crawl(context: click.Context, /, **given: Any) -> int:
    """Crawl politely from SEEDS, a file with one domain or URL per line ('-' is standard input)."""
    given["drop_params"] = parse_names(given["drop_params"])
    options = CrawlOptions(**fields_given(CrawlOptions, given), settings=fields_given(Settings, given))
    return run_crawl(options, outage_rules=context.find_object(OutageRules) or DEFAULT_OUTAGE_RULES)
