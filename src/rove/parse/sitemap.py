"""Sitemaps: the URLs that a site lists of itself (sitemaps.org/protocol.html).

XML, packed or not, a plain list, or a feed. They come from anywhere, broken, cut and hostile, so XML is
scanned for the few elements that matter instead of being parsed: no entity is ever expanded, a bare «&» does
no harm, what stands before a fault is read, and it takes a third of the time that expat takes with its
callbacks. What is cut off inside a URL is not taken for one.

Pure and without state. A large sitemap takes longer than the event loop should stand, in a thread too, as a regular
expression lets no other thread run: reader.py has it read in a process apart.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from rove.parse.charset import decode
from rove.parse.guard import MAX_PLAIN_BYTES
from rove.urls.canonical import MAX_URL_LENGTH, CrawlUrl, canonical, parse_base
from rove.urls.ignored_params import IgnoredParams

MAX_SITEMAP_BYTES = 10 * 1024 * 1024
"""Unpacked; what is over it is cut off. The protocol's 50 MB are more than one step should hold."""
MAX_SITEMAP_URLS = 50_000
"""As the protocol has it."""
MAX_CHILD_SITEMAPS = 1_000

_MAX_TRIED = 4 * MAX_SITEMAP_URLS
"""Elements that are looked at: bounds the time when most turn out to be repeated or unfit."""
_MAX_PROLOG = 100
_MAX_ATTRIBUTES = 8 * 1024
_MAX_MEMBERS = 100
"""Members of one gzip file."""
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP = 31
_CHUNK = 64 * 1024

# Repeats are possessive, or end where the text does: a scan takes time in proportion to the length.
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
    """What a sitemap lists, as written, in its order, each once."""

    urls: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()
    """The sitemaps that an index names."""


EMPTY = Sitemap()


def read_sitemap(body: bytes, *, url: str) -> Sitemap:
    """What a sitemap, fetched from url, lists; any bytes make a Sitemap."""
    text, _ = decode(unpacked(body), None)
    if not re.match(r"\s*+<", text):
        return Sitemap(urls=_distinct(_lines(text), MAX_SITEMAP_URLS))
    root = _root(text)
    if root is None:
        return EMPTY
    prefix, name = root["prefix"] or "", root["name"]
    if name == "urlset":
        return Sitemap(urls=_distinct(_texts(text, f"{prefix}loc"), MAX_SITEMAP_URLS))
    if name == "sitemapindex":
        return Sitemap(sitemaps=_distinct(_texts(text, f"{prefix}loc"), MAX_CHILD_SITEMAPS))
    if name in ("rss", "RDF"):
        return Sitemap(urls=_absolute(_texts(text, "link"), url))
    if name == "feed":
        return Sitemap(urls=_absolute(_atom_links(text, f"{prefix}link"), url))
    return EMPTY


def listed(
    sitemap: Sitemap, *, url: str, host: str, ignored: IgnoredParams | None = None
) -> list[CrawlUrl]:
    """The URLs of a sitemap, fetched from url, that it may list for `host`, whose robots.txt named it.

    They are those of that host and of the sitemap's own, over http or https, at any port: the protocol's «cross
    submits», with which a robots.txt vouches for a sitemap. The sitemap's directory then does not matter.
    """
    return _permitted(sitemap.urls, url=url, host=host, ignored=ignored)


def children(
    sitemap: Sitemap, *, url: str, host: str, ignored: IgnoredParams | None = None
) -> list[CrawlUrl]:
    """The sitemaps that an index, fetched from url, may name: the same hosts as for `listed`."""
    return _permitted(sitemap.sitemaps, url=url, host=host, ignored=ignored)


def unpacked(body: bytes) -> bytes:
    """At most MAX_SITEMAP_BYTES of a body, out of gzip if it is that; of a broken file the chunks before the fault."""
    if not body.startswith(_GZIP_MAGIC):
        return body[:MAX_SITEMAP_BYTES]
    pieces: list[bytes] = []
    left = MAX_SITEMAP_BYTES
    try:
        for piece in _inflated(body):
            pieces.append(piece[:left])
            left -= len(pieces[-1])
            if left == 0:
                break
    except zlib.error:
        pass  # what came before is good
    return b"".join(pieces)


def is_short(body: bytes) -> bool:
    """Whether a sitemap is read at once: what is packed may be long."""
    return len(body) <= MAX_PLAIN_BYTES and not body.startswith(_GZIP_MAGIC)


def _inflated(body: bytes) -> Iterator[bytes]:
    """The content of a gzip file, in pieces: a kilobyte can stand for a megabyte, so no step makes more than a chunk.

    The members of a file follow one another (RFC 1952, section 2.2); what is not one ends it.
    """
    at = 0
    for _ in range(_MAX_MEMBERS):
        member = zlib.decompressobj(_GZIP)
        while not member.eof and at < len(body):
            feed = body[at : at + _CHUNK]
            at += len(feed)
            while feed and not member.eof:
                yield member.decompress(feed, _CHUNK)
                feed = member.unconsumed_tail
        at -= len(member.unused_data)
        if not body.startswith(_GZIP_MAGIC, at):
            return


def _root(text: str) -> re.Match[str] | None:
    """The start of a document's first element; None also for a document that brings entities of its own."""
    at = 0
    for _ in range(_MAX_PROLOG):
        found = _PROLOG.match(text, at)
        if found is None:
            return _ROOT.match(text, at)
        if found["after_doctype"] not in (None, ">"):
            return None
        at = found.end()
    return None


def _texts(text: str, element: str) -> Iterator[str]:
    """The contents of all elements of a name that hold nothing but text or one CDATA section."""
    pattern = re.compile(
        rf"<(?:{re.escape(element)}(?:\s[^<>]*+)?+>\s*+(?:([^<]*+)</|<{_CDATA}\s*+</)"
        rf"|{_COMMENT}|{_CDATA})"
    )
    for found in islice(pattern.finditer(text), _MAX_TRIED):
        escaped, verbatim, _ = found.groups()
        if escaped:
            yield _unescaped(escaped).strip()
        elif verbatim:
            yield verbatim.strip()


def _atom_links(text: str, element: str) -> Iterator[str]:
    """The hrefs of a feed's links to pages."""
    pattern = re.compile(
        rf"<(?:{re.escape(element)}\s([^<>]{{1,{_MAX_ATTRIBUTES}}}+)>|{_COMMENT}|{_CDATA})"
    )
    for found in islice(pattern.finditer(text), _MAX_TRIED):
        attributes = {name: one or two for name, one, two in _ATTRIBUTE.findall(found[1] or "")}
        if attributes.get("rel", "alternate") == "alternate":
            yield _unescaped(attributes.get("href", "")).strip()


def _lines(text: str) -> Iterator[str]:
    return (found[0] for found in islice(_LINE.finditer(text), _MAX_TRIED))


def _absolute(texts: Iterable[str], url: str) -> tuple[str, ...]:
    """The links of a feed, in full: unlike those of other sitemaps they may be relative."""
    base = parse_base(url)
    found: dict[str, None] = {}
    for text in _distinct(texts, MAX_SITEMAP_URLS):
        if text.startswith(("http://", "https://")):
            found[text] = None
        elif (joined := canonical(text, base)) is not None:
            found[joined.text] = None
    return tuple(found)


def _distinct(texts: Iterable[str], limit: int) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for text in texts:
        if text and len(text) <= MAX_URL_LENGTH:
            found[text] = None
            if len(found) == limit:
                break
    return tuple(found)


def _permitted(
    texts: Iterable[str], *, url: str, host: str, ignored: IgnoredParams | None
) -> list[CrawlUrl]:
    """The canonical URLs on a host or on that of url, each once, without url itself."""
    own = canonical(url)
    hosts = {host} if own is None else {host, own.host}
    found: dict[int, CrawlUrl] = {}
    for text in texts:
        listed_url = canonical(text, None, ignored)
        if listed_url is not None and listed_url.host in hosts:
            found.setdefault(listed_url.fingerprint, listed_url)
    if own is not None:
        found.pop(own.fingerprint, None)
    return list(found.values())


def _unescaped(text: str) -> str:
    """Text with XML's own entities resolved, and with all others as they are."""
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
