"""Sitemaps: lists of a site's own URLs, as XML, plain text or a feed (sitemaps.org/protocol.html).

Sitemaps may be broken, truncated or hostile. So the XML is not parsed but scanned for the few elements that matter. No
entity is ever expanded, a stray "&" does no harm, everything before a fault is read, and the scan takes a third of the
time that expat needs. A URL that is cut off is not returned.

A large sitemap would block the event loop, even in a thread, because regular expressions hold the GIL. reader.py reads
such sitemaps in another process.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from rove.parse.charset import decode
from rove.resources.gunzip import GZIP_MAGIC, gunzip
from rove.urls.canonical import MAX_URL_LENGTH, CrawlUrl, canonical, parse_base
from rove.urls.ignored_params import IgnoredParams

MAX_SITEMAP_BYTES = 10 * 1024 * 1024
"""Decompressed; the rest is ignored. The protocol allows 50 MB, which is too much to hold in memory at once."""
MAX_SITEMAP_URLS = 50_000
"""The protocol's limit."""
MAX_CHILD_SITEMAPS = 1_000
MAX_SHORT_SITEMAP = 32 * 1024
"""Longer ones are read in another process."""

_MAX_ELEMENTS = 4 * MAX_SITEMAP_URLS
"""Elements that are examined. Bounds the time if most of them are duplicates or unusable."""
_MAX_PROLOG = 100
_MAX_ATTRIBUTES = 8 * 1024
_GUNZIP_STEP = 4 * 1024

# Quantifiers are possessive or run to the end of the text, so that a scan takes linear time.
_COMMENT = r"!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->|\Z)"
_CDATA = r"!\[CDATA\[([^\]]*+(?:\](?!\]>)[^\]]*+)*+)(?:\]\]>|\Z)"
_PROLOG = re.compile(
    rf"""\s*+<(?:\?[^?]*+(?:\?(?!>)[^?]*+)*+(?:\?>|\Z)|{_COMMENT}"""
    r"""|!DOCTYPE(?:[^\[<>"']++|"[^"]*+"|'[^']*+')*+(?P<after_doctype>[>\[]?))"""
)
_ROOT = re.compile(r"\s*+<(?P<prefix>[\w.-]{1,60}+:)?+(?P<name>[\w.-]{1,60}+)(?=[\s/>])")
_ATTRIBUTE = re.compile(r"""([\w:.-]{1,40}+)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)')""")
_ENTITY = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6}));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_LINE = re.compile(r"http(?<![^\r\n]http)s?://\S++")
"""A URL at the start of a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitemap:
    """The distinct URLs that a sitemap lists, as written and in its order."""

    urls: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()
    """The sitemaps that a sitemap index lists."""


def read_sitemap(body: bytes, *, url: str) -> Sitemap:
    """Read a sitemap that was fetched from `url`. Never raises: unusable bytes give an empty Sitemap."""
    text = decode(decompressed(body), None)
    if not re.match(r"\s*+<", text):
        lines = (match[0] for match in islice(_LINE.finditer(text), _MAX_ELEMENTS))
        return Sitemap(urls=_distinct(lines, MAX_SITEMAP_URLS))
    root = _root(text)
    if root is None:
        return Sitemap()
    prefix, name = root["prefix"] or "", root["name"]
    if name == "urlset":
        return Sitemap(urls=_distinct(_texts(text, f"{prefix}loc"), MAX_SITEMAP_URLS))
    if name == "sitemapindex":
        return Sitemap(sitemaps=_distinct(_texts(text, f"{prefix}loc"), MAX_CHILD_SITEMAPS))
    if name in ("rss", "RDF"):
        return Sitemap(urls=_absolute(_texts(text, "link"), url))
    if name == "feed":
        return Sitemap(urls=_absolute(_atom_links(text, f"{prefix}link"), url))
    return Sitemap()


def permitted(texts: Iterable[str], *, url: str, host: str, ignored: IgnoredParams | None = None) -> list[CrawlUrl]:
    """Return those URLs of the sitemap at `url` that it may list for `host`, whose robots.txt named it, each once.

    Allowed are URLs on that host and on the sitemap's own host, over http or https, at any port. This is the protocol's
    "cross submit": robots.txt vouches for the sitemap, so the sitemap's directory does not matter.
    """
    own = canonical(url)
    hosts = {host} if own is None else {host, own.host}
    permitted: dict[int, CrawlUrl] = {}
    for text in texts:
        listed_url = canonical(text, None, ignored)
        if listed_url is not None and listed_url.host in hosts:
            permitted.setdefault(listed_url.fingerprint, listed_url)
    if own is not None:
        permitted.pop(own.fingerprint, None)
    return list(permitted.values())


def decompressed(body: bytes) -> bytes:
    """Return at most MAX_SITEMAP_BYTES of a body, decompressed if it is gzip; a damaged file up to the damage."""
    if not body.startswith(GZIP_MAGIC):
        return body[:MAX_SITEMAP_BYTES]
    pieces: list[bytes] = []
    with suppress(zlib.error, EOFError):
        pieces.extend(gunzip(body, limit=MAX_SITEMAP_BYTES, step=_GUNZIP_STEP))
    return b"".join(pieces)[:MAX_SITEMAP_BYTES]


def is_short(body: bytes) -> bool:
    """Whether a sitemap is short enough for the event loop. A compressed one may be long."""
    return len(body) <= MAX_SHORT_SITEMAP and not body.startswith(GZIP_MAGIC)


def _root(text: str) -> re.Match[str] | None:
    """Find the start tag of the root element. Return None for a document that declares entities."""
    position = 0
    for _ in range(_MAX_PROLOG):
        prolog = _PROLOG.match(text, position)
        if prolog is None:
            return _ROOT.match(text, position)
        if prolog["after_doctype"] not in (None, ">"):
            return None
        position = prolog.end()
    return None


def _texts(text: str, element: str) -> Iterator[str]:
    """Yield the text of each element with this name that contains only text or one CDATA section."""
    pattern = re.compile(
        rf"<(?:{re.escape(element)}(?:\s[^<>]*+)?+>\s*+(?:([^<]*+)</|<{_CDATA}\s*+</)"
        rf"|{_COMMENT}|{_CDATA})"
    )
    for match in islice(pattern.finditer(text), _MAX_ELEMENTS):
        escaped, verbatim, _ = match.groups()
        if escaped:
            yield _unescaped(escaped).strip()
        elif verbatim:
            yield verbatim.strip()


def _atom_links(text: str, element: str) -> Iterator[str]:
    """Yield the href of each link to a page in an Atom feed."""
    pattern = re.compile(rf"<(?:{re.escape(element)}\s([^<>]{{1,{_MAX_ATTRIBUTES}}}+)>|{_COMMENT}|{_CDATA})")
    for match in islice(pattern.finditer(text), _MAX_ELEMENTS):
        attributes = {name: one or two for name, one, two in _ATTRIBUTE.findall(match[1] or "")}
        if attributes.get("rel", "alternate") == "alternate":
            yield _unescaped(attributes.get("href", "")).strip()


def _absolute(texts: Iterable[str], url: str) -> tuple[str, ...]:
    """Make the links of a feed absolute. Only in feeds may they be relative."""
    base = parse_base(url)
    urls: dict[str, None] = {}
    for text in _distinct(texts, MAX_SITEMAP_URLS):
        if text.startswith(("http://", "https://")):
            urls[text] = None
        elif (joined := canonical(text, base)) is not None:
            urls[joined.text] = None
    return tuple(urls)


def _distinct(texts: Iterable[str], limit: int) -> tuple[str, ...]:
    distinct: dict[str, None] = {}
    for text in texts:
        if text and len(text) <= MAX_URL_LENGTH:
            distinct[text] = None
            if len(distinct) == limit:
                break
    return tuple(distinct)


def _unescaped(text: str) -> str:
    """Resolve XML's predefined entities and character references; leave all others unchanged."""
    ampersands = text.count("&")
    if ampersands == text.count("&amp;"):  # nearly always
        return text.replace("&amp;", "&") if ampersands else text
    return _ENTITY.sub(_character, text)


def _character(entity: re.Match[str]) -> str:
    name, decimal, hexadecimal = entity.groups()
    if name:
        return _NAMED[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    is_character = 0 < code < 0xD800 or 0xDFFF < code <= 0x10FFFF
    return chr(code) if is_character else entity[0]
