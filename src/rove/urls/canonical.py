"""URLs as rove knows them: the canonical form, and the domain, origin and fingerprint that follow from it.

Pure functions. The canonical form is versioned: a crawl keeps the version it was started with, since
fingerprints of two versions do not meet. Version 1 is about spelling; version 2 drops parameters besides (drops.py).
What version 2 makes is in the form of version 1 too, so that URLs from the frontier are read without the list: only
those that come from outside need it.

>>> canonical("HTTP://Example.COM:80/a/../%7euser?q=%c3%a9#top").text
'http://example.com/~user?q=%C3%A9'
>>> canonical("mailto:someone@example.com") is None
True
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

import url as whatwg
import xxhash
from publicsuffixlist import PublicSuffixList

from rove.model.urls import NewUrl
from rove.urls.ignored_params import IgnoredParams

MAX_URL_LENGTH = 2_000

_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_CHANGED_ESCAPE = re.compile(
    r"%(?:[0-9A-F][a-f]|[a-f][0-9A-Fa-f]|2[DE]|3[0-9]|[46][1-9A-F]|5[0-9AF]|7[0-9AE])"
)
"""An escape in lower case, or of a character that needs none; most URLs with escapes have neither."""
_NO_SEED = re.compile(r"\s|^[/.:@?#]")
_HOST_PART = re.compile(r"[^/?#]*")
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_UNRESERVED = {
    f"%{ord(c):02X}": c
    for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
}
_FETCHED_SCHEMES = ("http://", "https://")
_LEAST_ORIGIN = len("http://a")
_ANY_LABEL = "x"
"""For a name that is asked about as any other would be."""
_PLAIN_SEED = re.compile(r"(?:(https?)://)?((?:[a-z0-9-]+\.)+[a-z][a-z0-9-]*)/?").fullmatch
"""Nearly every line of most seed files: a host that the parser leaves as it is, unless it is in Punycode."""
_LONGEST_PLAIN = 253
_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SIGN = 1 << 63
_SPECIAL = re.compile("[^A-Za-z0-9_~!$&()*+,;=@:/?.-]").search
"""Finds nothing in a path that the parser leaves as it is, if there are no segments of dots in it."""

# Short ways to what is needed for every link.
_hash = xxhash.xxh3_64_intdigest
_new_tuple = tuple.__new__


class CrawlUrl(NamedTuple):
    """A canonical URL and what is derived from it. A tuple, as a page makes sixty: a third of a dataclass's cost."""

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
    ) -> NewUrl:
        """Return the row that adds this URL to the frontier."""
        text, _, _, domain_name, domain, fingerprint = self
        # As NewUrl(...) does it, in half the time.
        return _new_tuple(
            NewUrl,
            (
                domain,
                domain_name,
                fingerprint,
                text,
                depth,
                hops,
                assume_https,
                sitemap_of,
                penalty,
            ),
        )


def fingerprint(text: str) -> int:
    """A 64-bit signed number for a text: what the databases can hold as an integer."""
    return fingerprint_bytes(text.encode())


def fingerprint_bytes(data: bytes) -> int:
    """Likewise for bytes."""
    return signed(_hash(data))


def signed(value: int) -> int:
    """64 bits as the databases can hold them."""
    return value - 2 * _SIGN if value >= _SIGN else value


@cache
def _suffixes() -> PublicSuffixList:
    """The public suffix list, which takes a while to load: some commands do without."""
    return PublicSuffixList()


@lru_cache(maxsize=8_192)
def domain_of(host: str) -> tuple[str, int]:
    """The registrable domain of a host (itself, where it has none) and its id."""
    name = host if is_address(host) else registrable(host)
    return name, fingerprint(name)


def registrable(name: str) -> str:
    """The registrable domain of a name, itself where it has none.

    All names below another are in one domain, or each is one of its own, but for those that the list has rules about:
    what is below a name is asked once.
    """
    if name in _with_rules() or not name.islower() or "." in (name[0], name[-1]):
        return _suffixes().privatesuffix(name) or name
    return _shared_below(name.partition(".")[2]) or name


@cache
def _with_rules() -> frozenset[str]:
    """The names that the public suffix list has rules about."""
    return frozenset(re.sub(r"^!|^\*\.", "", rule) for rule in _suffixes()._publicsuffix)


@lru_cache(maxsize=8_192)
def _shared_below(parent: str) -> str:
    """The registrable domain of all that is below a name and has no rule of its own; '' where each is one by itself."""
    child = f"{_ANY_LABEL}.{parent}"
    found = _suffixes().privatesuffix(child)
    return "" if found is None or found == child else found


def is_in_one_domain(host: str) -> bool:
    """Whether all that is below a host is in one domain, as it is not below a public suffix."""
    return is_address(host) or _suffixes().privatesuffix(host) is not None


def is_address(host: str) -> bool:
    """Whether the host of a URL is an IP address: the URL standard makes one of all that ends in a number."""
    return host.startswith("[") or host.rpartition(".")[2].isdigit()


def canonical(
    text: str, base: whatwg.URL | None = None, drops: IgnoredParams | None = None
) -> CrawlUrl | None:
    """The canonical form of a URL (relative to base), or None if it is not one that rove fetches."""
    try:
        parsed = whatwg.URL.parse(text) if base is None else base.join(text)
        result = str(parsed)
        if not result.startswith(_FETCHED_SCHEMES):
            return None
        # What follows from the origin is looked up by its text: asking the parser for each part takes longer.
        origin = result[: result.index("/", _LEAST_ORIGIN)]
        site = _site(origin)
        if site is None:
            result = str(_without_user_and_final_dots(parsed))
            origin = result[: result.index("/", _LEAST_ORIGIN)]
            site = _site(origin)
    except (whatwg.URLError, UnicodeEncodeError):
        return None
    return None if site is None else _finished(result, origin, site, drops)


class Base:
    """What the links of a page are relative to.

    Many links are a path in canonical form already: they are put behind the page's origin, and the parser is not asked.
    """

    __slots__ = ("_drops", "_origin", "_site", "_url")

    def __init__(
        self, url: whatwg.URL | None, form: CrawlUrl | None, drops: IgnoredParams | None = None
    ) -> None:
        """`form`: the canonical form of the URL."""
        self._url = url
        self._drops = drops
        self._origin = "" if form is None else form.origin
        self._site = None if form is None else (form.host, form.domain_name, form.domain)

    def join(self, text: str) -> CrawlUrl | None:
        """What canonical() makes of a link with this as its base."""
        if (
            text[:1] == "/"
            and _SPECIAL(text) is None
            and "//" not in text
            and "/." not in text
            and self._site is not None
        ):
            return _finished(self._origin + text, self._origin, self._site, self._drops)
        return canonical(text, self._url, self._drops)


def _finished(
    result: str, origin: str, site: tuple[str, str, int], drops: IgnoredParams | None
) -> CrawlUrl | None:
    """The rest of the way from what the parser makes of a URL to the canonical form."""
    if "#" in result:
        result = result.partition("#")[0]
    if "%" in result and _CHANGED_ESCAPE.search(result):
        # Beside a stray percent sign, a decoded letter could make a new escape of the two.
        normal = str.upper if _STRAY_PERCENT.search(result) else _normal_escape
        result = _ESCAPE.sub(lambda match: normal(match.group()), result)
    if "?" in result or ";" in result:
        if result[-1] == "?" and result.index("?") == len(result) - 1:
            result = result[:-1]
        if drops is not None and drops.search(result):
            shorter = drops.strip(result)
            if shorter != result:
                return canonical(shorter, None, drops)
    if len(result) > MAX_URL_LENGTH:
        return None
    host, name, domain = site
    number = _hash(result.encode())
    if number >= _SIGN:
        number -= 2 * _SIGN
    # As CrawlUrl(...) does it, in half the time.
    return _new_tuple(CrawlUrl, (result, host, origin, name, domain, number))


def origin_of(text: str) -> str:
    """The origin of a URL in canonical form."""
    return text[: text.index("/", _LEAST_ORIGIN)]


def restored(text: str, fingerprint: int) -> CrawlUrl:
    """A URL that was kept in canonical form, with what follows from it."""
    origin = origin_of(text)
    site = _site(origin)
    assert site is not None, f"{text} was canonical when it was kept"
    host, name, domain = site
    return CrawlUrl(text, host, origin, name, domain, fingerprint)


def parse_base(text: str) -> whatwg.URL | None:
    """A URL to join others to."""
    try:
        return whatwg.URL.parse(text)
    except (whatwg.URLError, UnicodeEncodeError):
        return None


def parse_seed(text: str, drops: IgnoredParams | None = None) -> tuple[CrawlUrl, bool] | None:
    """A line of a seed file: its URL, and whether it was a bare domain (then https is assumed)."""
    plain = _PLAIN_SEED(text)
    if plain is not None and "xn--" not in text and len(text) <= _LONGEST_PLAIN:
        return _plain_seed(*plain.groups())
    if _HAS_SCHEME.match(text):
        found = canonical(text, None, drops)
        return None if found is None else (found, False)
    if _NO_SEED.search(text):
        return None
    host_part = _HOST_PART.match(text)[0]  # type: ignore[index]
    found = canonical("https://" + text, None, drops)
    if found is None or "@" in host_part or not _is_seed_host(found.host, host_part):
        return None
    is_bare = found.text == f"https://{found.host}/" and ":" not in host_part.rpartition("]")[2]
    return found, is_bare


def _plain_seed(scheme: str | None, host: str) -> tuple[CrawlUrl, bool]:
    """What parse_seed makes of a host that needs no parser, in a third of the time."""
    origin = f"{scheme or 'https'}://{host}"
    text = origin + "/"
    name = registrable(host)
    values = (text, host, origin, name, fingerprint(name), fingerprint(text))
    return _new_tuple(CrawlUrl, values), scheme is None


def _is_seed_host(host: str, as_written: str) -> bool:
    """Whether a line means a host: lists come with ranks, quotes and commas, which a URL parser lets pass."""
    if is_address(host):
        return as_written.startswith((host, "["))
    is_name = _HOST_NAME.fullmatch(host) is not None
    return is_name and ("." in host or host == "localhost")


def http_twin(found: CrawlUrl) -> CrawlUrl:
    """The same https URL over http."""
    twin = canonical("http" + found.text.removeprefix("https"))
    assert twin is not None, "a URL stays one without its s"
    return twin


@lru_cache(maxsize=8_192)
def _site(origin: str) -> tuple[str, str, int] | None:
    """The host, and the domain's name and id; None where a user or dots stand in the way, or there is no host.

    The links of a page share a few of these.
    """
    host = origin.partition("://")[2]
    if host[-1:] != "]":
        host = host.partition(":")[0] if host[:1] != "[" else host.rpartition(":")[0]
    if not host or host[0] == "." or host[-1] == "." or "@" in origin:
        return None
    return host, *domain_of(host)


def _without_user_and_final_dots(parsed: whatwg.URL) -> whatwg.URL:
    """The same URL without name and password, and without the dots of the DNS root.

    What the dots hid may be an address, so it is parsed again.
    """
    parsed = parsed.with_username("").with_password(None)
    host: str = parsed.host_str or ""
    if not host.endswith("."):
        return parsed
    return whatwg.URL.parse(str(parsed.with_host(host.rstrip("."))))


def _normal_escape(escape: str) -> str:
    escape = escape.upper()
    return _UNRESERVED.get(escape, escape)
