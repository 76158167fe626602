"""The links of a page: from hrefs to distinct canonical URLs, up to a limit.

Parsing a URL is the most expensive step. So duplicates, fragments of the same page and schemes that are not fetched are
removed first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from rove.policy.constants import DEFAULT_MAX_LINKS
from rove.urls.canonical import MAX_URL_LENGTH, CrawlUrl, LinkBase, canonical, parse_base
from rove.urls.ignored_params import IgnoredParams

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
    limit: int = DEFAULT_MAX_LINKS,
    ignored: IgnoredParams | None = None,
) -> tuple[tuple[CrawlUrl, ...], bool]:
    """Return the distinct URLs of a page's hrefs, in order and without the page itself, and whether some were cut."""
    page = canonical(url, None, ignored)
    own = None if page is None else page.fingerprint
    base = LinkBase(parse_base(url), page, ignored)
    if base_href is not None and (moved := canonical(base_href, parse_base(url))) is not None:
        base = LinkBase(parse_base(moved.text), moved, ignored)
    links: dict[int, CrawlUrl] = {}
    candidates = _candidates(hrefs)
    if limit:
        join = base.join
        for href in islice(candidates, limit + _MAX_UNUSABLE):
            link = join(href)
            if link is None:
                continue
            fingerprint = link.fingerprint
            if fingerprint != own and fingerprint not in links:
                links[fingerprint] = link
                if len(links) == limit:
                    break
    return tuple(links.values()), next(candidates, None) is not None


def _candidates(hrefs: Iterable[str]) -> Iterator[str]:
    """Yield the distinct hrefs, without fragments, that may lead to another page."""
    seen = {""}
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
