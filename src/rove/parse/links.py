"""The links of a page: from hrefs to distinct canonical URLs, up to a limit.

Parsing a URL is the most expensive step. So duplicates, fragments of the same page and schemes that are not fetched are
removed first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from rove.parse.queries import escape_query, needs_escapes
from rove.policy.constants import DEFAULT_MAX_LINKS
from rove.urls.canonical import MAX_URL_LENGTH, CrawlUrl, LinkBase, UrlForm, parse_base

_MAX_ESCAPED = 50_000
"""Characters of hrefs per page whose queries are escaped in its encoding, which takes a microsecond each."""
_MAX_UNUSABLE = 3_000
"""Distinct hrefs that are examined beyond the limit. Bounds the time if most of them are unusable."""

_LONG = 250
"""No host has more characters. Only the host can get shorter when an href becomes a URL."""
_WHITE_SPACE = "\t\n\f\r "
_OTHER_SCHEMES = (
    "about:", "blob:", "callto:", "data:", "fax:", "file:", "ftp:", "geo:", "intent:", "javascript:", "mailto:",
    "market:", "news:", "skype:", "sms:", "tel:", "viber:", "webcal:", "whatsapp:",
)  # fmt: skip
_LONGEST_SCHEME = max(map(len, _OTHER_SCHEMES))
_NOT_FOLLOWED = frozenset({"nofollow", "sponsored", "ugc"})

# The HTML standard's "shared declarative refresh steps". The atomic group rules out backtracking before the URL.
_REFRESH = re.compile(
    r"""(?>\s*(?:[0-9][0-9.]*|\.[0-9.]*)(?:\s*[;,]|\s)\s*(?:url\s*=\s*)?)"""
    r"""(?:"([^"]*)|'([^']*)|(.+))""",
    re.IGNORECASE | re.DOTALL,
)


def followed(rel: str | None) -> bool:
    """Whether a link with this rel attribute may be followed. As at Google, commas separate words too."""
    return not rel or _NOT_FOLLOWED.isdisjoint(rel.lower().replace(",", " ").split())


def refresh_target(content: str) -> str | None:
    """Return the target of a refresh with this content attribute, or None if it has none."""
    match = _REFRESH.match(content)
    return (match[1] or match[2] or match[3]) if match else None


def resolve(
    hrefs: Iterable[str],
    *,
    url: str,
    base_href: str | None = None,
    form: UrlForm,
    limit: int = DEFAULT_MAX_LINKS,
    encoding: str = "utf-8",
) -> tuple[tuple[CrawlUrl, ...], bool]:
    """Return the distinct URLs of a page's hrefs, in order and without the page itself, and whether some were cut.

    `encoding` is that of the page.
    """
    page = form.canonical(url)
    own = None if page is None else page.text
    base = LinkBase(form, parse_base(url), page)
    if base_href is not None and (moved := form.in_full.canonical(base_href, parse_base(url))) is not None:
        base = LinkBase(form, parse_base(moved.text), moved)
    links: dict[str, CrawlUrl] = {}
    # A fragment alone leads to the base, which need not be the page.
    candidates = _candidates(hrefs, skipped="" if base_href is None else None)
    if limit:
        join = base.join
        escapable = _MAX_ESCAPED if needs_escapes(encoding) else 0
        for href in islice(candidates, limit + _MAX_UNUSABLE):
            if escapable > 0 and "?" in href and not href.isascii():
                escapable -= len(href)
                href = escape_query(href, encoding)
            link = join(href)
            if link is None:
                continue
            text = link.text
            if text != own and text not in links:
                links[text] = link
                if len(links) == limit:
                    break
    return tuple(links.values()), next(candidates, None) is not None


def _candidates(hrefs: Iterable[str], *, skipped: str | None) -> Iterator[str]:
    """Yield the distinct hrefs, without fragments, that may lead to another page; leave `skipped` out."""
    seen = {skipped}
    for href in dict.fromkeys(hrefs):
        if len(href) > _LONG and _escaped_length(href) > MAX_URL_LENGTH + _LONG:
            continue
        start = (href.partition("#")[0] if "#" in href else href).strip(_WHITE_SPACE)
        if start in seen:
            continue
        seen.add(start)
        scheme = start[:_LONGEST_SCHEME]
        if ":" not in scheme or scheme[:4] == "http" or not scheme.lower().startswith(_OTHER_SCHEMES):
            yield start


def _escaped_length(href: str) -> int:
    """Return the length of an href after escaping all bytes that are not ASCII, without parsing it."""
    plain = len(href) if href.isascii() else len(href.encode("ascii", "ignore"))
    return plain if plain == len(href) else 3 * len(href.encode("utf-8", "replace")) - 2 * plain
