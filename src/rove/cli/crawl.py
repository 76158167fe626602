"""`rove crawl`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from rove.app.preparation import CrawlOptions
from rove.cli.config_file import config_option, sources_of
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
)
from rove.cli.rules_file import READABLE_FILE, with_rules_of_file
from rove.cli.run import run_crawl
from rove.cli.types import (
    CONCURRENCY,
    DURATION,
    POSITIVE_DURATION,
    Checked,
    Number,
    Parsed,
    WholeNumber,
    or_default,
    or_none,
)
from rove.config import AUTO, DEFAULT_MAX_PAGE_SIZE, DEFAULT_TIMEOUT, DEFAULT_WARC_SIZE, Limits, Settings
from rove.fetch.connect_to import parse_connect_to
from rove.fetch.dns import parse_name_server
from rove.notation.quantities import duration_text
from rove.policy.constants import (
    DEFAULT_DELAY,
    DEFAULT_MAX_LINKS,
    DEFAULT_MAX_PARSED_SIZE,
    DEFAULT_PER_IP,
    DEFAULT_PER_IP_RATE,
    DEFAULT_REDIRECT_HOPS,
)
from rove.policy.file_types import parse_extension
from rove.policy.languages import parse_languages
from rove.policy.outage import DEFAULT_OUTAGE_RULES, OutageRules
from rove.policy.rules import RuleKind, check_rule
from rove.policy.scope import SeedScope, parse_scope
from rove.policy.usage import parse_purpose
from rove.urls.ignored_params import parse_names

MAX_COUNT = 1_000_000_000
"""Upper bound for counts of pages and links: more than anybody needs, and it fits into any database column."""
FLAG: dict[str, Any] = {"default": None}
"""A flag that is None, not False, when it is left out, because a resumed crawl remembers it."""
PAGES = WholeNumber(1, MAX_COUNT)

what = partial(option, group=WHAT_TO_CRAWL)
politely = partial(option, group=HOW_POLITELY)
stop = partial(option, group=WHEN_TO_STOP)
keep = partial(option, group=WHAT_TO_KEEP)
machine = partial(option, group=MACHINE)
postgresql = partial(option, group=POSTGRESQL)
network = partial(option, group=NETWORK)


@click.command(cls=Command, short_help="Crawl from a file of domains.")
@click.argument("seeds", required=False)
@what(
    "--resume",
    is_flag=True,
    help="Continue the crawl in --data-dir; start it from SEEDS if there is none.",
)
@config_option(WHAT_TO_CRAWL)
@what(
    "--exclude",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Domains never to contact, one per line; each covers its subdomains.",
)
@what(
    "--scope",
    **or_default(Parsed("scope", parse_scope), "|".join(SeedScope)),
    default_text=SeedScope.ANYWHERE,
    help="Follow links only to the domains, hosts or directories of the seeds, or anywhere.",
)
@what(
    "--accept",
    multiple=True,
    **or_none(Checked("rule", partial(check_rule, RuleKind.ACCEPT)), "EXPR"),
    help="Take only URLs for which this expression holds (docs/rules.md); repeatable: one must hold.",
)
@what(
    "--reject",
    multiple=True,
    **or_none(Checked("rule", partial(check_rule, RuleKind.REJECT)), "EXPR"),
    help="Take no URL for which this expression holds; repeatable.",
)
@what(
    "--follow-if",
    multiple=True,
    **or_none(Checked("rule", partial(check_rule, RuleKind.FOLLOW_IF)), "EXPR"),
    help="Take links only from pages for which this expression holds; repeatable: one must hold.",
)
@what(
    "--rules",
    **or_none(READABLE_FILE, "FILE"),
    help="Take the rules from this file; they replace all that the crawl remembers.",
)
@what(
    "--languages",
    **or_none(Parsed("languages", parse_languages, any_word=True), "CODES"),
    default_text="all alike",
    help="Visit links on pages in these languages first, such as de,fr; nothing is refused.",
)
@what(
    "--max-depth",
    **or_none(WholeNumber(0, MAX_COUNT), "N"),
    default_text="no limit",
    help="Links to follow from a seed. 0: only the seeds.",
)
@what(
    "--max-links",
    **or_default(WholeNumber(0, 50_000), "N"),
    default_text=str(DEFAULT_MAX_LINKS),
    help="Links to take from one page.",
)
@what("--sitemaps/--no-sitemaps", **FLAG, help="Read the sitemaps that robots.txt names.")
@what(
    "--file-types",
    **or_default(click.Choice(["skip", "visit"]), "skip|visit"),
    default_text="skip",
    help="Links to files without text, such as pictures, PDF and archives. Seeds are always visited.",
)
@what(
    "--skip-extension",
    "skip_extensions",
    multiple=True,
    **or_none(Parsed("extension", parse_extension), "EXTENSION"),
    help="Take no links to files with this extension either; repeatable.",
)
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
    "--info-url",
    **or_none(click.STRING, "URL"),
    help="A page about this crawl, named in the User-Agent before the e-mail address.",
)
@politely(
    "--purpose",
    **or_none(Parsed("purpose", parse_purpose), "search|research|archive|training"),
    default_text="not stated",
    help="What the pages are for. training: keep no page whose site forbids that.",
)
@politely(
    "--delay",
    **or_default(DURATION, "TIME"),
    default_text=duration_text(DEFAULT_DELAY),
    help="Minimum time between two visits to one domain.",
)
@politely(
    "--allow-short-delay/--no-allow-short-delay",
    **FLAG,
    help=f"Allow a --delay below {DEFAULT_DELAY:g} seconds, for sites that are yours or have agreed.",
)
@politely(
    "--per-ip",
    **or_default(WholeNumber(0), "N"),
    default_text=str(DEFAULT_PER_IP),
    help="Visits to one IP address at once, from this machine. 0: no limit.",
)
@politely(
    "--per-ip-rate",
    **or_default(Number(0), "N"),
    default_text=f"{DEFAULT_PER_IP_RATE:g}",
    help="Visits to one IP address per second, from this machine. 0: no limit.",
)
@politely(
    "--redirect-hops",
    **or_default(WholeNumber(0, 5), "N"),
    default_text=str(DEFAULT_REDIRECT_HOPS),
    help="Redirects inside a domain to follow in one visit. 0: each waits for the next visit.",
)
@stop(
    "--max-pages",
    **or_none(PAGES, "N"),
    default_text="no limit",
    help="Stop after this many more pages; ends with the run that reaches it.",
)
@stop(
    "--max-duration",
    **or_none(POSITIVE_DURATION, "TIME"),
    default_text="no limit",
    help="Stop after this time, such as 90s or 1h30m; ends with the run that reaches it.",
)
@stop(
    "--max-pages-per-domain",
    **or_none(PAGES, "N"),
    default_text="no limit",
    help="Fetch at most this many pages of one domain. A new number counts from then on.",
)
@stop(
    "--horizon",
    **or_none(POSITIVE_DURATION, "TIME"),
    default_text="--max-duration, else 30d",
    help="How long the crawl is meant to run. Bounds the URLs queued per domain; grows by itself.",
)
@what(
    "--yes",
    is_flag=True,
    help="Confirm a shorter --horizon that drops URLs, or SEEDS with mostly bad lines.",
)
@data_dir_option("Where to keep everything of this crawl.", file_okay=False, group=WHAT_TO_KEEP)
@keep(
    "--store",
    **or_default(click.Choice(["text", "raw", "both"]), "text|raw|both"),
    default_text="text",
    help="Keep the text of a page, its raw HTTP response, or both.",
)
@keep(
    "--warc-size",
    **size(DEFAULT_WARC_SIZE),
    help="Begin a new WARC file when one has this size.",
)
@keep(
    "--store-if",
    multiple=True,
    **or_none(Checked("rule", partial(check_rule, RuleKind.STORE_IF)), "EXPR"),
    help="Store only pages for which this expression holds; repeatable: one must hold.",
)
@keep(
    "--max-page-size",
    **size(DEFAULT_MAX_PAGE_SIZE),
    help="Receive at most this much of one page, such as 500KiB. The rest is cut off.",
)
@keep(
    "--max-parsed-size",
    **size(DEFAULT_MAX_PARSED_SIZE),
    help="Read text and links from at most this much of one page; more stops the process for longer.",
)
@machine(
    "--concurrency",
    **or_default(CONCURRENCY, "auto|N"),
    default_text=AUTO,
    help="Fetches in flight. auto: as many as the web needs and this machine allows.",
)
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
    **or_default(DURATION, "TIME"),
    default_text=duration_text(DEFAULT_TIMEOUT),
    help="Time limit of one request, from the DNS lookup to the last byte.",
)
@network(
    "--connect-to",
    multiple=True,
    **or_none(Checked("rule", parse_connect_to), "PATTERN=ADDRESS[:PORT]"),
    help="Connect hosts that match PATTERN ('*.test') to this address, without DNS; repeatable.",
)
@network(
    "--dns-server",
    "dns_servers",
    multiple=True,
    **or_none(Checked("address", parse_name_server), "ADDRESS[:PORT]"),
    default_text="those of the system",
    help="Name server to use; repeatable.",
)
@network(
    "--strict-tls/--no-strict-tls",
    **FLAG,
    help="Refuse invalid certificates and old TLS versions instead of marking the pages.",
)
@network(
    "--allow-private-addresses/--no-allow-private-addresses",
    **FLAG,
    help="Allow loopback, private, link-local and reserved addresses.",
)
@click.pass_context
def crawl(context: click.Context, /, **given: Any) -> int:
    """Crawl politely from SEEDS, a file with one domain or URL per line ('-' is standard input).

    A resumed crawl remembers its options until they are given again. --no-... or the value none or default lifts one.
    --max-pages and --max-duration also end with the run that reaches them.
    """
    rules = context.find_object(OutageRules) or DEFAULT_OUTAGE_RULES
    return run_crawl(crawl_options(given, sources_of(context)), outage_rules=rules)


def crawl_options(given: dict[str, Any], sources: dict[str, str]) -> CrawlOptions:
    """Return the options of a crawl; `sources` names the file that a value comes from, if it comes from one."""
    given["drop_params"] = parse_names(given["drop_params"])
    given |= with_rules_of_file(given)
    return CrawlOptions(
        **fields_given(CrawlOptions, given),
        settings=fields_given(Settings, given),
        limits=fields_given(Limits, given),
        sources=sources,
    )
