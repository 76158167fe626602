"""Finds the domain or URL that a person names on the command line."""

from __future__ import annotations

from typing import NamedTuple

from rove.errors import UsageError
from rove.frontier.contract import FrontierReader
from rove.frontier.records import DomainRecord, UrlRecord
from rove.model.ledger import RequestKind, RequestRow
from rove.model.urls import UrlState
from rove.urls.canonical import NO_IDS, CrawlUrl, UrlForm
from rove.urls.seed import parse_seed


class Site(NamedTuple):
    """A registrable domain with all its hosts."""

    name: str
    id: int


def domain_given(text: str) -> str:
    """Return the name of the site that a domain, a host or a URL belongs to; raise UsageError for any other text."""
    seed = parse_seed(text, NO_IDS)
    if seed is None:
        raise UsageError(f"{text!r} is not a domain")
    return seed[0].domain_name


def site_named(name: str, form: UrlForm) -> Site:
    """Return the site with this name, as a crawl numbers it."""
    return Site(name, form.domain_id(name))


def site_of(url: CrawlUrl) -> Site:
    """Return the site that a URL belongs to."""
    return Site(url.domain_name, url.domain)


def url_given(text: str, form: UrlForm) -> CrawlUrl:
    """Return the canonical URL of a text; https is assumed if it names no scheme."""
    seed = parse_seed(text, form) if "://" not in text else None
    url = seed[0] if seed is not None else form.canonical(text)
    if url is None:
        raise UsageError(f"{text!r} is not a URL")
    return url


async def url_known(reader: FrontierReader, text: str, form: UrlForm) -> CrawlUrl:
    """Return the URL that a text means in this crawl.

    It keeps ignored parameters if the frontier has the URL with them: a redirect may have insisted on a session id.
    """
    in_full = url_given(text, form.in_full)
    if await record_of(reader, in_full) is not None:
        return in_full
    return url_given(text, form)


async def domain_of_site(reader: FrontierReader, site: Site) -> DomainRecord | None:
    """Return the frontier's record of a site; None if it has none, or if another domain has the same id."""
    record = await reader.domain(site.id)
    return record if record is not None and record.name == site.name else None


class UrlMeant(NamedTuple):
    """The URL that a person means."""

    record: UrlRecord
    instead_of: str
    """Why it is not the URL as it was written; '' if it is."""


async def url_meant(reader: FrontierReader, text: str, form: UrlForm) -> UrlMeant | None:
    """Return the URL that a text means in this crawl; None if it is not known.

    A text without a scheme means https, then http, then the same with or without 'www.'. A stored page comes first.
    """
    expected = url_given(text, form).text
    records = await _known(reader, [text] if "://" in text else _spellings(text), form)
    if not records:
        return None
    record = next((record for record in records if record.state is UrlState.DONE), records[0])
    if record.url in (expected, url_given(text, form.in_full).text):
        return UrlMeant(record, "")
    if record is records[0]:
        return UrlMeant(record, f"{expected} is not known to this crawl")
    return UrlMeant(record, f"{records[0].url} is {records[0].state.name.lower()}")


async def other_spellings(reader: FrontierReader, text: str, form: UrlForm) -> list[str]:
    """Return known URLs that differ from this one by the scheme or by 'www.'."""
    without_scheme = text.partition("://")[2] or text
    return [record.url for record in await _known(reader, _spellings(without_scheme), form)]


def _spellings(text: str) -> list[str]:
    host = text.removeprefix("www.") if text.startswith("www.") else f"www.{text}"
    return [f"{scheme}://{name}" for name in (text, host) for scheme in ("https", "http")]


async def _known(reader: FrontierReader, texts: list[str], form: UrlForm) -> list[UrlRecord]:
    urls = [spelling.canonical(text) for text in texts for spelling in (form.in_full, form)]
    records = [await record_of(reader, url) for url in dict.fromkeys(urls) if url is not None]
    return [record for record in records if record is not None]


async def record_of(reader: FrontierReader, url: CrawlUrl) -> UrlRecord | None:
    """Return the frontier's record of a URL; None if it has none, or if another URL has the same fingerprint."""
    record = await reader.url(url.domain, url.fingerprint)
    return record if record is not None and record.url == url.text else None


async def settling_request(reader: FrontierReader, record: UrlRecord) -> RequestRow | None:
    """Return the request that settled a URL; None if the URL was settled without one."""
    if record.visit is None:
        return None
    for row in reversed(await reader.requests(record.visit)):
        if row.fingerprint == record.fingerprint and row.kind is RequestKind.PAGE:
            return row
    return None
