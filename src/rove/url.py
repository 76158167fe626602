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

from rove.drops import Drops
from rove.model import NewUrl

MAX_URL_LENGTH = 2_000

_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
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
_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class CrawlUrl(NamedTuple):
    """A canonical URL and what is derived from it. A tuple, as a page makes sixty: a third of a dataclass's cost."""

    text: str
    host: str
    origin: str
    domain_name: str
    domain: int
    fingerprint: int

    def offer(
        self,
        *,
        depth: int,
        hops: int = 0,
        bare: bool = False,
        sitemap_of: str = "",
        penalty: int = 0,
    ) -> NewUrl:
        """This URL as something to add to the frontier."""
        return NewUrl(
            self.domain,
            self.domain_name,
            self.fingerprint,
            self.text,
            depth,
            hops,
            bare,
            sitemap_of,
            penalty,
        )


def fingerprint(text: str) -> int:
    """A 64-bit signed number for a text: what the databases can hold as an integer."""
    return fingerprint_bytes(text.encode())


def fingerprint_bytes(data: bytes) -> int:
    """Likewise for bytes."""
    return signed(xxhash.xxh3_64_intdigest(data))


def signed(value: int) -> int:
    """64 bits as the databases can hold them."""
    return value - (1 << 64) if value >= 1 << 63 else value


@cache
def _suffixes() -> PublicSuffixList:
    """The public suffix list, which takes a while to load: some commands do without."""
    return PublicSuffixList()


@lru_cache(maxsize=8_192)
def domain_of(host: str) -> tuple[str, int]:
    """The registrable domain of a host (itself, where it has none) and its id."""
    name = host if is_address(host) else (_suffixes().privatesuffix(host) or host)
    return name, fingerprint(name)


def is_in_one_domain(host: str) -> bool:
    """Whether all that is below a host is in one domain, as it is not below a public suffix."""
    return is_address(host) or _suffixes().privatesuffix(host) is not None


def is_address(host: str) -> bool:
    """Whether the host of a URL is an IP address: the URL standard makes one of all that ends in a number."""
    return host.startswith("[") or host.rpartition(".")[2].isdigit()


def canonical(
    text: str, base: whatwg.URL | None = None, drops: Drops | None = None
) -> CrawlUrl | None:
    """The canonical form of a URL (relative to base), or None if it is not one that rove fetches."""
    try:
        parsed = whatwg.URL.parse(text) if base is None else base.join(text)
        result = str(parsed)
        if not result.startswith(_FETCHED_SCHEMES):
            return None
        origin = result[: result.index("/", _LEAST_ORIGIN)]
        if origin[-1] == "." or ".:" in origin or "@" in origin:
            result = str(_without_user_and_final_dots(parsed))
            origin = result[: result.index("/", _LEAST_ORIGIN)]
    except (whatwg.URLError, UnicodeEncodeError):
        return None
    # What follows from the origin is looked up by its text: asking the parser for each part takes longer.
    host, name, domain = _site(origin)
    if not host or host[0] == "." or host[-1] == ".":
        return None
    if "#" in result:
        result = result.partition("#")[0]
    if "%" in result:
        # Beside a stray percent sign, a decoded letter could make a new escape of the two.
        normal = str.upper if _STRAY_PERCENT.search(result) else _normal_escape
        result = _ESCAPE.sub(lambda match: normal(match.group()), result)
    if result[-1] == "?" and result.index("?") == len(result) - 1:
        result = result[:-1]
    if drops is not None and ("?" in result or ";" in result) and drops.search(result):
        shorter = drops.strip(result)
        if shorter != result:
            return canonical(shorter, None, drops)
    if len(result) > MAX_URL_LENGTH:
        return None
    # As CrawlUrl(...) does it, in half the time.
    return tuple.__new__(
        CrawlUrl, (result, host, origin, name, domain, fingerprint_bytes(result.encode()))
    )


def origin_of(text: str) -> str:
    """The origin of a URL in canonical form."""
    return text[: text.index("/", _LEAST_ORIGIN)]


def restored(text: str, fingerprint: int) -> CrawlUrl:
    """A URL that was kept in canonical form, with what follows from it."""
    origin = origin_of(text)
    host, name, domain = _site(origin)
    return CrawlUrl(text, host, origin, name, domain, fingerprint)


def parse_base(text: str) -> whatwg.URL | None:
    """A URL to join others to."""
    try:
        return whatwg.URL.parse(text)
    except (whatwg.URLError, UnicodeEncodeError):
        return None


def parse_seed(text: str, drops: Drops | None = None) -> tuple[CrawlUrl, bool] | None:
    """A line of a seed file: its URL, and whether it was a bare domain (then https is assumed)."""
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
def _site(origin: str) -> tuple[str, str, int]:
    """The host, and the domain's name and id; the links of a page share a few of these."""
    host = origin.partition("://")[2]
    if host[-1:] != "]":
        host = host.partition(":")[0] if host[:1] != "[" else host.rpartition(":")[0]
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
