"""From what a page names to the URLs that can be asked: each once, and not too many.

Parsing a URL costs more than everything else about a link, so what need not be parsed is sorted out
before: repeated links, fragments of this page, schemes that are not fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from rove.policy.constants import DEFAULT_MAX_LINKS
from rove.urls.canonical import MAX_URL_LENGTH, CrawlUrl, LinkBase, canonical, parse_base
from rove.urls.ignored_params import IgnoredParams

_MAX_UNFIT = 3_000
"""Different links of a page that are looked at besides: bounds the time when most turn out unfit."""

_LONG = 250
"""Characters; no host is longer, which is the part that may be shorter in a URL than it was in the href."""
_WHITE_SPACE = "\t\n\f\r "
_OTHER_SCHEMES = (
    "about:",
    "blob:",
    "callto:",
    "data:",
    "fax:",
    "file:",
    "ftp:",
    "geo:",
    "intent:",
    "javascript:",
    "mailto:",
    "market:",
    "news:",
    "skype:",
    "sms:",
    "tel:",
    "viber:",
    "webcal:",
    "whatsapp:",
)
_LONGEST_SCHEME = max(map(len, _OTHER_SCHEMES))
_NOT_FOLLOWED = frozenset({"nofollow", "sponsored", "ugc"})

# The standard's «shared declarative refresh steps»; what comes before the URL is not read in two ways.
_REFRESH = re.compile(
    r"""(?>\s*(?:[0-9][0-9.]*|\.[0-9.]*)(?:\s*[;,]|\s)\s*(?:url\s*=\s*)?)"""
    r"""(?:"([^"]*)|'([^']*)|(.+))""",
    re.IGNORECASE | re.DOTALL,
)


def followed(rel: str | None) -> bool:
    """Whether a link with this rel attribute may be followed; commas separate its words too, as Google has it."""
    return not rel or _NOT_FOLLOWED.isdisjoint(rel.lower().replace(",", " ").split())


def refresh_target(content: str) -> str | None:
    """Where a refresh with this content attribute leads, or None if it names no other page."""
    found = _REFRESH.match(content)
    return (found[1] or found[2] or found[3]) if found else None


def resolve(
    hrefs: Iterable[str],
    *,
    url: str,
    base_href: str | None = None,
    limit: int = DEFAULT_MAX_LINKS,
    ignored: IgnoredParams | None = None,
) -> tuple[tuple[CrawlUrl, ...], bool]:
    """The URLs that a page's hrefs mean, in order, each once, without the page itself; whether there were too many."""
    page = canonical(url, None, ignored)
    own = None if page is None else page.fingerprint
    base = LinkBase(parse_base(url), page, ignored)
    if base_href is not None and (moved := canonical(base_href, parse_base(url))) is not None:
        base = LinkBase(parse_base(moved.text), moved, ignored)
    found: dict[int, CrawlUrl] = {}
    candidates = _candidates(hrefs)
    if limit:
        join = base.join
        for href in islice(candidates, limit + _MAX_UNFIT):
            link = join(href)
            if link is None:
                continue
            fingerprint = link.fingerprint
            if fingerprint != own and fingerprint not in found:
                found[fingerprint] = link
                if len(found) == limit:
                    break
    return tuple(found.values()), next(candidates, None) is not None


def _candidates(hrefs: Iterable[str]) -> Iterator[str]:
    """The different hrefs, without fragments, that may lead to another page."""
    seen = {""}
    for href in dict.fromkeys(hrefs):
        if len(href) > _LONG and _spelt_length(href) > MAX_URL_LENGTH + _LONG:
            continue
        start = (href.partition("#")[0] if "#" in href else href).strip(_WHITE_SPACE)
        if start in seen:
            continue
        seen.add(start)
        scheme = start[:_LONGEST_SCHEME]
        if (
            ":" not in scheme
            or scheme[:4] == "http"
            or not scheme.lower().startswith(_OTHER_SCHEMES)
        ):
            yield start


def _spelt_length(href: str) -> int:
    """Characters of an href in a URL, where all bytes that are not ASCII are escaped: parsing those takes long."""
    plain = len(href) if href.isascii() else len(href.encode("ascii", "ignore"))
    return plain if plain == len(href) else 3 * len(href.encode("utf-8", "replace")) - 2 * plain
