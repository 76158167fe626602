"""Finds the domain or URL that a person names on the command line."""

from __future__ import annotations

from typing import NamedTuple

from rove.errors import UsageError
from rove.frontier.contract import FrontierReader, UrlRecord
from rove.model.ledger import RequestKind, RequestRow
from rove.urls.canonical import CrawlUrl, canonical
from rove.urls.domain import domain_of
from rove.urls.ignored_params import IgnoredParams
from rove.urls.seed import parse_seed


class Site(NamedTuple):
    """A registrable domain with all its hosts."""

    name: str
    id: int


def site_given(text: str) -> Site:
    """Return the site that a domain, a host or a URL belongs to; raise UsageError for any other text."""
    seed = parse_seed(text)
    if seed is None:
        raise UsageError(f"{text!r} is not a domain")
    return Site(*domain_of(seed[0].host))


def url_given(text: str, ignored: IgnoredParams | None = None) -> CrawlUrl:
    """Return the canonical URL of a text, without ignored parameters; https is assumed if it names no scheme."""
    seed = parse_seed(text, ignored) if "://" not in text else None
    url = seed[0] if seed is not None else canonical(text, None, ignored)
    if url is None:
        raise UsageError(f"{text!r} is not a URL")
    return url


async def url_known(reader: FrontierReader, text: str, ignored: IgnoredParams | None) -> CrawlUrl:
    """Return the URL that a text means in this crawl.

    It keeps ignored parameters if the frontier has the URL with them: a redirect may have insisted on a session id.
    """
    in_full = url_given(text)
    if await reader.url(in_full.domain, in_full.fingerprint) is not None:
        return in_full
    return url_given(text, ignored)


async def settling_request(reader: FrontierReader, record: UrlRecord) -> RequestRow | None:
    """Return the request that settled a URL; None if the URL was settled without one."""
    if record.visit is None:
        return None
    for row in reversed(await reader.requests(record.visit)):
        if row.fingerprint == record.fingerprint and row.kind is RequestKind.PAGE:
            return row
    return None
