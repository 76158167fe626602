"""The canonical form of a URL: one spelling, no ignored parameters.

A `UrlForm` belongs to one crawl. It knows the parameters that the crawl ignores, and the secret that its ids are keyed
with. URLs in the frontier are in canonical form already, so only URLs from outside need the ignored parameters.

>>> plain_url("HTTP://Example.COM:80/a/../%7euser?q=%c3%a9#top").text
'http://example.com/~user?q=%C3%A9'
>>> plain_url("mailto:someone@example.com") is None
True
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import msgspec
import url as whatwg

from rove.model.urls import NewUrl
from rove.urls.domain import domain_of
from rove.urls.ignored_params import ignored_params_with
from rove.urls.keyed_hash import SECRET_BYTES, KeyedHash, keyed_hash
from rove.urls.origin import SHORTEST_ORIGIN, host_and_port, origin_of

MAX_URL_LENGTH = 2_000
SITES_CACHED = 8_192
"""Origins whose domain a form remembers: the links of a page share a few origins."""

_FETCHED_SCHEMES = ("http://", "https://")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_CHANGED_ESCAPE = re.compile(r"%(?:[0-9A-F][a-f]|[a-f][0-9A-Fa-f]|2[DE]|3[0-9]|[46][1-9A-F]|5[0-9AF]|7[0-9AE])")
"""A lower-case escape, or the escape of a character that needs none. Most URLs with escapes have neither."""
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNRESERVED = {f"%{ord(c):02X}": c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"}
_EXTRA_SLASHES = re.compile(r"[\x00-\x20]*+[/\\][\t\n\r]*+[/\\][\t\n\r]*+[/\\][/\\\t\n\r]*+")
"""More than two slashes before a host. The standard ignores them, but the parser only in URLs that have a scheme."""
_NEEDS_PARSER = re.compile("[^A-Za-z0-9_~!$&()*+,;=@:/?.-]").search
"""Finds nothing in a path that the parser leaves unchanged, dot segments aside."""

# This runs for every link, and a global name is quicker than an attribute.
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
        self,
        *,
        depth: int,
        hops: int = 0,
        assume_https: bool = False,
        sitemap_of: str = "",
        penalty: int = 0,
        is_foreign: bool = False,
    ) -> NewUrl:
        """Make the row that adds this URL to the frontier."""
        text, _, _, domain_name, domain, fingerprint = self
        # The same as NewUrl(...), in half the time.
        return _new_tuple(
            NewUrl, (domain, domain_name, fingerprint, text, depth, hops, assume_https, sitemap_of, penalty, is_foreign)
        )


class PlainUrl(NamedTuple):
    """A canonical URL without ids, for those who do not look it up in a frontier."""

    text: str
    host: str
    origin: str
    domain_name: str


class FormKey(msgspec.Struct, frozen=True, kw_only=True):
    """What makes the form of a crawl, so that another process can make the same one."""

    secret: bytes
    drop_params: tuple[str, ...] = ()
    """Parameters to ignore besides the built-in ones."""

    def __repr__(self) -> str:
        """Keep the secret out of logs and tracebacks."""
        return f"FormKey(drop_params={self.drop_params!r})"


class UrlForm:
    """How one crawl writes and numbers URLs."""

    __slots__ = ("_hash", "_ignored", "_site", "in_full", "key", "site_of_plain")

    def __init__(self, key: FormKey, *, hash: KeyedHash | None = None, drops_params: bool = True) -> None:
        """`hash` replaces the one that is keyed with the secret. Without `drops_params`, no parameter is ignored."""
        self.key = key
        self._hash = hash or keyed_hash(key.secret)
        self._ignored = ignored_params_with(key.drop_params) if drops_params else None
        self._site = lru_cache(maxsize=SITES_CACHED)(self._site_of)
        self.site_of_plain = lru_cache(maxsize=SITES_CACHED)(self._site_of_plain)
        """Returns an origin's host, domain and domain id; None unless it is in canonical form."""
        self.in_full: UrlForm = UrlForm(key, hash=self._hash, drops_params=False) if drops_params else self
        """The same form, but with all parameters."""

    def canonical(self, text: str, base: whatwg.URL | None = None) -> CrawlUrl | None:
        """Return the canonical form of a URL, relative to `base` if given; None if rove does not fetch such URLs."""
        try:
            parsed = whatwg.URL.parse(text) if base is None else base.join(text)
            result = str(parsed)
            if not result.startswith(_FETCHED_SCHEMES):
                return None
            # Looking up the origin's text is quicker than asking the parser for each part.
            origin = result[: result.index("/", SHORTEST_ORIGIN)]
            site = self._site(origin)
            if site is None:
                result = str(_without_user_and_final_dots(parsed))
                origin = result[: result.index("/", SHORTEST_ORIGIN)]
                site = self._site(origin)
        except (whatwg.URLError, UnicodeEncodeError):
            extra = None if base is None else _EXTRA_SLASHES.match(text)
            return None if extra is None else self.canonical("//" + text[extra.end() :], base)
        return None if site is None else self.finished(result, origin, site)

    def restored(self, text: str, fingerprint: int) -> CrawlUrl:
        """Rebuild the CrawlUrl of a URL that was stored in canonical form with its fingerprint."""
        origin = origin_of(text)
        site = self._site(origin)
        assert site is not None, f"{text} was stored but is not in canonical form"
        host, name, domain = site
        return CrawlUrl(text, host, origin, name, domain, fingerprint)

    def http_twin(self, url: CrawlUrl) -> CrawlUrl:
        """Return the http URL that differs from an https URL only in its scheme."""
        twin = self.in_full.canonical("http" + url.text.removeprefix("https"))
        assert twin is not None, "the scheme does not decide whether a URL is valid"
        return twin

    def domain_id(self, name: str) -> int:
        """Return the id of a registrable domain."""
        return self._hash(name.encode())

    def robots_fingerprint(self, origin: str) -> int:
        """Return the fingerprint of the frontier's row that asks for the robots.txt of an origin.

        It differs from that of the URL, which may be in the frontier as a page.
        """
        return self._hash(f"robots.txt of {origin}".encode())

    def plain_host(self, origin: str, host: str, name: str) -> CrawlUrl:
        """Return the front page of a host that the parser leaves unchanged; `name` is its registrable domain."""
        text = origin + "/"
        values = (text, host, origin, name, self._hash(name.encode()), self._hash(text.encode()))
        # The same as CrawlUrl(*values), in half the time.
        return _new_tuple(CrawlUrl, values)

    def finished(self, result: str, origin: str, site: tuple[str, str, int]) -> CrawlUrl | None:
        """Turn the parser's output into the canonical form. `site` is the host, its domain and the domain's id."""
        if "#" in result:
            result = result.partition("#")[0]
        if "%" in result and _CHANGED_ESCAPE.search(result):
            # Decoding a letter next to a stray percent sign could create a new escape.
            normal = str.upper if _STRAY_PERCENT.search(result) else _normal_escape
            result = _ESCAPE.sub(lambda match: normal(match.group()), result)
        if "?" in result or ";" in result:
            if result[-1] == "?" and result.index("?") == len(result) - 1:
                result = result[:-1]
            ignored = self._ignored
            if ignored is not None and ignored.search(result):
                shorter = ignored.strip(result)
                if shorter != result:
                    return self.canonical(shorter)
        if len(result) > MAX_URL_LENGTH:
            return None
        host, name, domain = site
        # The same as CrawlUrl(...), in half the time.
        return _new_tuple(CrawlUrl, (result, host, origin, name, domain, self._hash(result.encode())))

    def _site_of(self, origin: str) -> tuple[str, str, int] | None:
        """Return an origin's host, domain and domain id; None if it has user information, outer dots or no host."""
        if "@" in origin:
            return None
        host, _ = host_and_port(origin)
        if not host or host[0] == "." or host[-1] == ".":
            return None
        name = domain_of(host)
        return host, name, self._hash(name.encode())

    def _site_of_plain(self, origin: str) -> tuple[str, str, int] | None:
        url = self.in_full.canonical(origin + "/")
        return self._site(origin) if url is not None and url.origin == origin else None


class LinkBase:
    """The base URL of a page's links.

    Many links are in canonical form already, or are a path that is. They do not need the parser.
    """

    __slots__ = ("_form", "_origin", "_site", "_url")

    def __init__(self, form: UrlForm, url: whatwg.URL | None, page: CrawlUrl | None) -> None:
        """Take the base URL both as the parser has it and in canonical form."""
        self._form = form
        self._url = url
        self._origin = "" if page is None else page.origin
        self._site = None if page is None else (page.host, page.domain_name, page.domain)

    def join(self, text: str) -> CrawlUrl | None:
        """Return the same as UrlForm.canonical() with this base."""
        if (
            text[:1] == "/"
            and _NEEDS_PARSER(text) is None
            and "//" not in text
            and "/." not in text
            and self._site is not None
        ):
            return self._form.finished(self._origin + text, self._origin, self._site)
        if text[:4] == "http":
            end = text.find("/", SHORTEST_ORIGIN)
            if end > 0 and _NEEDS_PARSER(text, end) is None and text.find("/.", end) < 0:
                origin = text[:end]
                site = self._form.site_of_plain(origin)
                if site is not None:
                    return self._form.finished(text, origin, site)
        return self._form.canonical(text, self._url)


@lru_cache(maxsize=16)
def form_with(key: FormKey) -> UrlForm:
    """Return the form of a crawl; the same one for the same key."""
    return UrlForm(key)


NO_IDS = UrlForm(FormKey(secret=bytes(SECRET_BYTES)))
"""The form of no crawl, for those who need only texts and hosts. Its ids mean nothing in a frontier."""


def plain_url(text: str, base: whatwg.URL | None = None) -> PlainUrl | None:
    """Return the canonical form of a URL with all its parameters; None if rove does not fetch such URLs."""
    url = NO_IDS.in_full.canonical(text, base)
    return None if url is None else PlainUrl(*url[:4])


def parse_base(text: str) -> whatwg.URL | None:
    """Parse a URL that others are relative to; None if it is not a URL."""
    try:
        return whatwg.URL.parse(text)
    except (whatwg.URLError, UnicodeEncodeError):
        return None


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
