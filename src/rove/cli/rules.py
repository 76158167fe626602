"""`rove rules`: list the rules of a crawl, and try an expression on URLs."""

from __future__ import annotations

import click

from rove.cli.crawl_given import CrawlGiven, crawl_to_read
from rove.cli.options import Command, json_option, option, whole_number
from rove.cli.output import print_json, print_line, print_note, reading
from rove.config import settings_from_json
from rove.errors import UsageError
from rove.inspect.lookup import url_given
from rove.inspect.rule_list import as_json, as_line, listed_rules
from rove.policy.expressions.expression import compiled, facts_in
from rove.policy.expressions.facts import SOURCE_FACTS, Place, Subject
from rove.urls.canonical import NO_IDS

LIST, TEST = "list", "test"


@click.command(cls=Command, short_help="List the rules, or try one on URLs.")
@click.argument("action", type=click.Choice([LIST, TEST]), default=LIST, metavar="[list|test]")
@click.argument("expression", required=False, metavar="[EXPR]")
@click.argument("urls", nargs=-1, metavar="[URL...]")
@option("--depth", **whole_number(0), default=1, help="Links from a seed to the URLs that are tried.")
@option("--from", "source", metavar="URL", help="The page that links to them, for same_domain and same_host.")
@json_option
@crawl_to_read
@reading
async def rules(
    crawl: CrawlGiven,
    action: str,
    expression: str | None,
    urls: tuple[str, ...],
    depth: int,
    source: str | None,
    json: bool,
) -> None:
    """List the rules of a crawl with how often each has decided, or try EXPR as a rule about links on URLs.

    The test needs no crawl. To try an expression about pages, use 'rove pages --where EXPR'.
    """
    if action == TEST:
        if expression is None or not urls:
            raise UsageError("give an expression and URLs: rove rules test EXPR URL...")
        _test(expression, urls, depth=depth, source=source, as_lines_of_json=json)
    elif expression is not None or source is not None:
        raise UsageError("'rove rules list' lists all rules; to try one: rove rules test EXPR URL...")
    else:
        await _list(crawl, as_lines_of_json=json)


def _test(expression: str, urls: tuple[str, ...], *, depth: int, source: str | None, as_lines_of_json: bool) -> None:
    holds = compiled(expression, Place.LINK)
    needed = sorted(SOURCE_FACTS & facts_in(expression))
    if needed and source is None:
        raise UsageError(f"{needed[0]} depends on the page that links to a URL; add --from URL")
    page = None if source is None else url_given(source, NO_IDS)
    for text in urls:
        url = url_given(text, NO_IDS)
        is_true = holds(
            Subject(
                url.text,
                depth=depth,
                same_domain=page is not None and page.domain == url.domain,
                same_host=page is not None and page.host == url.host,
            )
        )
        if as_lines_of_json:
            print_json({"url": url.text, "holds": is_true})
        else:
            print_line(f"{'yes' if is_true else 'no':<5}{url.text}")


async def _list(crawl: CrawlGiven, *, as_lines_of_json: bool) -> None:
    async with crawl.opened() as archive:
        saved = await archive.catalog.settings()
        settings = None if saved is None else settings_from_json(saved)
        counts = await archive.reader.counts()
    listed = listed_rules(settings.rules.rules if settings else (), counts)
    for rule in listed:
        if as_lines_of_json:
            print_json(as_json(rule))
        else:
            print_line(as_line(rule))
    if not listed:
        print_note("rove: the crawl has no rules")
