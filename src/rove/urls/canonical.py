"""The canonical form of a URL: one spelling, no ignored parameters.

URLs in the frontier are in this form already, so only URLs from outside need the list of ignored parameters.

>>> canonical("HTTP://Example.COM:80/a/../%7euser?q=%c3%a9#top").text
'http://example.com/~user?q=%C3%A9'
>>> canonical("mailto:someone@example.com") is None
True
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import url as whatwg
import xxhash

from rove.model.urls import NewUrl
from rove.urls.domain import domain_of
from rove.urls.ignored_params import IgnoredParams
from rove.urls.origin import SHORTEST_ORIGIN, host_and_port, origin_of

MAX_URL_LENGTH = 2_000

_FETCHED_SCHEMES = ("http://", "https://")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_CHANGED_ESCAPE = re.compile(r"%(?:[0-9A-F][a-f]|[a-f][0-9A-Fa-f]|2[DE]|3[0-9]|[46][1-9A-F]|5[0-9AF]|7[0-9AE])")
"""A lower-case escape, or the escape of a character that needs none. Most URLs with escapes have neither."""
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNRESERVED = {f"%{ord(c):02X}": c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"}
_NEEDS_PARSER = re.compile("[^A-Za-z0-9_~!$&()*+,;=@:/?.-]").search
"""Finds nothing in a path that the parser leaves unchanged, dot segments aside."""
_SIGN_BIT = 1 << 63

# These run for every link, and a global name is quicker than an attribute.
_hash = xxhash.xxh3_64_intdigest
_new_tuple = tuple.__new__


class CrawlUrl(NamedTuple):
    """A canonical URL and the values derived from it. A tuple costs a third of a dataclass; a page makes sixty."""

    text: str
    host: str
    origin: str
    domain_name: str
    domain: int
    fingerprint: int

    def new_url(
        self, *, depth: int, hops: int = 0, assume_https: bool = False, sitemap_of: str = "", penalty: int = 0
    ) -> NewUrl:
        """Make the row that adds this URL to the frontier."""
        text, _, _, domain_name, domain, fingerprint = self
        # The same as NewUrl(...), in half the time.
        return _new_tuple(
            NewUrl, (domain, domain_name, fingerprint, text, depth, hops, assume_https, sitemap_of, penalty)
        )


def canonical(text: str, base: whatwg.URL | None = None, ignored: IgnoredParams | None = None) -> CrawlUrl | None:
    """Return the canonical form of a URL, relative to `base` if given; None if rove does not fetch such URLs."""
    try:
        parsed = whatwg.URL.parse(text) if base is None else base.join(text)
        result = str(parsed)
        if not result.startswith(_FETCHED_SCHEMES):
            return None
        # Looking up the origin's text is quicker than asking the parser for each part.
        origin = result[: result.index("/", SHORTEST_ORIGIN)]
        site = _site(origin)
        if site is None:
            result = str(_without_user_and_final_dots(parsed))
            origin = result[: result.index("/", SHORTEST_ORIGIN)]
            site = _site(origin)
    except (whatwg.URLError, UnicodeEncodeError):
        return None
    return None if site is None else _finished(result, origin, site, ignored)


class LinkBase:
    """The base URL of a page's links.

    Many links are a path in canonical form already. They are appended to the page's origin without the parser.
    """

    __slots__ = ("_ignored", "_origin", "_site", "_url")

    def __init__(self, url: whatwg.URL | None, form: CrawlUrl | None, ignored: IgnoredParams | None = None) -> None:
        """Take the base URL both as the parser has it and in canonical form."""
        self._url = url
        self._ignored = ignored
        self._origin = "" if form is None else form.origin
        self._site = None if form is None else (form.host, form.domain_name, form.domain)

    def join(self, text: str) -> CrawlUrl | None:
        """Return the same as canonical() with this base."""
        if (
            text[:1] == "/"
            and _NEEDS_PARSER(text) is None
            and "//" not in text
            and "/." not in text
            and self._site is not None
        ):
            return _finished(self._origin + text, self._origin, self._site, self._ignored)
        return canonical(text, self._url, self._ignored)


def restored(text: str, fingerprint: int) -> CrawlUrl:
    """Rebuild the CrawlUrl of a URL that was stored in canonical form with its fingerprint."""
    origin = origin_of(text)
    site = _site(origin)
    assert site is not None, f"{text} was stored but is not in canonical form"
    host, name, domain = site
    return CrawlUrl(text, host, origin, name, domain, fingerprint)


def http_twin(url: CrawlUrl) -> CrawlUrl:
    """Return the http URL that differs from an https URL only in its scheme."""
    twin = canonical("http" + url.text.removeprefix("https"))
    assert twin is not None, "the scheme does not decide whether a URL is valid"
    return twin


def parse_base(text: str) -> whatwg.URL | None:
    """Parse a URL that others are relative to; None if it is not a URL."""
    try:
        return whatwg.URL.parse(text)
    except (whatwg.URLError, UnicodeEncodeError):
        return None


@lru_cache(maxsize=8_192)
def _site(origin: str) -> tuple[str, str, int] | None:
    """Return an origin's host, domain name and domain id; None if it has user information, outer dots or no host."""
    # Cached because the links of a page share a few origins.
    if "@" in origin:
        return None
    host, _ = host_and_port(origin)
    if not host or host[0] == "." or host[-1] == ".":
        return None
    return host, *domain_of(host)


def _finished(result: str, origin: str, site: tuple[str, str, int], ignored: IgnoredParams | None) -> CrawlUrl | None:
    """Turn the parser's output into the canonical form."""
    if "#" in result:
        result = result.partition("#")[0]
    if "%" in result and _CHANGED_ESCAPE.search(result):
        # Decoding a letter next to a stray percent sign could create a new escape.
        normal = str.upper if _STRAY_PERCENT.search(result) else _normal_escape
        result = _ESCAPE.sub(lambda match: normal(match.group()), result)
    if "?" in result or ";" in result:
        if result[-1] == "?" and result.index("?") == len(result) - 1:
            result = result[:-1]
        if ignored is not None and ignored.search(result):
            shorter = ignored.strip(result)
            if shorter != result:
                return canonical(shorter, None, ignored)
    if len(result) > MAX_URL_LENGTH:
        return None
    host, name, domain = site
    number = _hash(result.encode())
    if number >= _SIGN_BIT:  # fingerprint(), inlined
        number -= 2 * _SIGN_BIT
    # The same as CrawlUrl(...), in half the time.
    return _new_tuple(CrawlUrl, (result, host, origin, name, domain, number))


def _without_user_and_final_dots(parsed: whatwg.URL) -> whatwg.URL:
    """Remove user name, password and the trailing dots of the host."""
    parsed = parsed.with_username("").with_password(None)
    host: str = parsed.host_str or ""
    if not host.endswith("."):
        return parsed
    # Without its dots the host may be an IPv4 address, which only the parser recognizes.
    return whatwg.URL.parse(str(parsed.with_host(host.rstrip("."))))


def _normal_escape(escape: str) -> str:
    escape = escape.upper()
    return _UNRESERVED.get(escape, escape)
