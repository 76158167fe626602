"""`rove domains`, `queue` and `skipped`: look at what a crawl knows and does next, and at what it leaves out."""

from __future__ import annotations

import click

from rove.cli.crawl_given import CrawlGiven, crawl_to_read
from rove.cli.options import Command, json_option, option, whole_number
from rove.cli.output import print_json, print_lines, print_note, reading
from rove.cli.types import Parsed
from rove.frontier.domain_list import MOST_LISTED, DomainOrder, DomainQuery, DomainState, DomainTrait
from rove.frontier.url_queue import MOST_QUEUED
from rove.inspect.domain_rows import domain_json, domain_lines
from rove.inspect.lookup import domain_given, domain_of_site, site_named
from rove.inspect.open_crawl import Archive
from rove.inspect.page_query import did_you_mean
from rove.inspect.queue_rows import queued_json, queued_lines
from rove.inspect.skipped_rows import examples_by_reason, parse_reason, skipped_json, skipped_lines
from rove.model.skipped import SAMPLED
from rove.notation.humanize import counted

DEFAULT_ROWS = 20
DEFAULT_EXAMPLES = 5
_ORDERS = [order.value for order in DomainOrder]
_STATES = [*(state.value for state in DomainState), *(trait.value for trait in DomainTrait)]


@click.command(cls=Command, short_help="List domains.")
@crawl_to_read
@option("--by", type=click.Choice(_ORDERS), default=DomainOrder.PENDING.value, help="What they are sorted by.")
@option("--state", type=click.Choice(_STATES), help="Only domains in this state.")
@option("--search", metavar="TEXT", default="", help="Only domains whose names contain this text.")
@option("--limit", **whole_number(1, MOST_LISTED), default=DEFAULT_ROWS, help="Maximum number of domains.")
@json_option
@reading
async def domains(crawl: CrawlGiven, by: str, state: str | None, search: str, limit: int, json: bool) -> None:
    """List domains: state, pages, pending URLs, next visit, failed visits, and the delay with its cause.

    --by overdue lists only domains that are due, --by next only those that wait for a visit.
    """
    async with crawl.opened() as archive:
        delay = (await archive.settings()).delay
        query = DomainQuery(by=DomainOrder(by), only=_chosen(state), search=search, delay=delay)
        page = await archive.reader.domains(query, limit=limit)
        known = sum((await archive.reader.counts()).domains.values())
    if json:
        for domain in page.domains:
            print_json(domain_json(domain, delay))
        return
    if page.domains:
        print_lines(domain_lines(page.domains, delay))
    matching = "" if page.matching in (None, known) else f" that match, of {known:,}"
    total = known if page.matching is None else page.matching
    print_note(f"rove: {len(page.domains):,} of {counted(total, 'domain')}{matching}")


@click.command(cls=Command, short_help="List pending URLs in the order of their requests.")
@crawl_to_read
@option("--domain", metavar="DOMAIN", help="Only URLs of this domain.")
@option("--limit", **whole_number(1, MOST_QUEUED), default=DEFAULT_ROWS, help="Maximum number of URLs.")
@json_option
@reading
async def queue(crawl: CrawlGiven, domain: str | None, limit: int, json: bool) -> None:
    """List pending URLs in the order in which they will be requested, and when.

    The times are estimates: every visit requests one page, no new URL is found, and no visit waits for a free slot.
    """
    name = None if domain is None else domain_given(domain)
    async with crawl.opened() as archive:
        site = None if name is None else site_named(name, await archive.form())
        delay = (await archive.settings()).delay
        urls = await archive.reader.queue(delay=delay, domain=None if site is None else site.id, limit=limit)
        note = await _queue_note(archive, name, len(urls))
    if json:
        for url in urls:
            print_json(queued_json(url))
        return
    if urls:
        print_lines(queued_lines(urls))
    print_note(f"rove: {note}")


@click.command(cls=Command, short_help="Show examples of links that were not taken.")
@crawl_to_read
@option(
    "--reason",
    type=Parsed("reason", parse_reason),
    metavar="REASON",
    help="Only links with this reason, such as trap or rule-2.",
)
@option("--domain", metavar="DOMAIN", help="Only links to this domain or on its pages.")
@option("--limit", **whole_number(1, SAMPLED), default=DEFAULT_EXAMPLES, help="Maximum number of links of each reason.")
@json_option
@reading
async def skipped(crawl: CrawlGiven, reason: str | None, domain: str | None, limit: int, json: bool) -> None:
    """Show examples of links that were not taken, with the reason and the page that has the link.

    Of each reason, up to 1,000 links are kept: a random choice among their URLs. All are counted, and a URL that is
    found ten times counts ten times.
    """
    name = None if domain is None else domain_given(domain)
    async with crawl.opened() as archive:
        links, counts = await archive.reader.skipped(), (await archive.reader.counts()).not_accepted
    found = examples_by_reason(links, counts, reason=reason, domain=name)
    if not found:
        print_note("rove: every link was taken" if reason is None else f"rove: no link has the reason {reason}")
    for known, examples in found.items():
        total = counts.get(known, 0)
        if not json:
            print_lines(skipped_lines(known, examples, total=total, limit=limit))
            continue
        for link in examples[:limit]:
            print_json(skipped_json(link, total))


async def _queue_note(archive: Archive, name: str | None, shown: int) -> str:
    """Return the sentence under a queue: how many URLs are pending, and why none of them may be requested."""
    if name is None:
        return f"{shown:,} of {counted((await archive.reader.counts()).urls_pending, 'pending URL')}"
    form = await archive.form()
    site = site_named(name, form)
    domain = await domain_of_site(archive.reader, site)
    if domain is None:
        return f"no URL of {name}{await did_you_mean(archive.reader, site, form)}"
    note = f"{shown:,} of {counted(domain.pending, 'pending URL')} of {name}"
    if domain.is_excluded:
        return f"{note}, which is excluded"
    return f"{note}, which has reached --max-pages-per-domain" if domain.is_capped else note


def _chosen(state: str | None) -> DomainState | DomainTrait | None:
    if state is None:
        return None
    return DomainTrait(state) if state in list(DomainTrait) else DomainState(state)
