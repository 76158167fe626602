"""Sitemaps: lists of a site's own URLs, as XML, plain text or a feed (sitemaps.org/protocol.html).

Sitemaps may be broken, truncated or hostile. So the XML is not parsed but scanned for the few elements that matter. No
entity is ever expanded, a stray "&" does no harm, everything before a fault is read, and the scan takes a third of the
time that expat needs. A URL that is cut off is not returned.

A large sitemap would block the event loop, even in a thread, because regular expressions hold the GIL. So it is read in
slices of a few milliseconds.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from rove.parse.charset import identify
from rove.parse.labels import CODECS
from rove.parse.whatwg import decode_as
from rove.resources.gunzip import GZIP_MAGIC, gunzip
from rove.urls.canonical import MAX_URL_LENGTH, CrawlUrl, UrlForm, parse_base, plain_url

MAX_SITEMAP_BYTES = 10 * 1024 * 1024
"""Decompressed; the rest is ignored. The protocol allows 50 MB, which is too much to hold in memory at once."""
MAX_SITEMAP_URLS = 50_000
"""The protocol's limit."""
MAX_CHILD_SITEMAPS = 1_000

_MAX_ELEMENTS = 4 * MAX_SITEMAP_URLS
"""Elements that are examined. Bounds the time if most of them are duplicates or unusable."""
_MAX_PROLOG = 100
_MAX_ATTRIBUTES = 8 * 1024
_MAX_CONTENT = 16 * 1024
"""Characters of an element with CDATA sections or comments. Bounds the time that it takes to join them."""
_GUNZIP_STEP = 4 * 1024
_SLICE_URLS = 500
"""URLs that are resolved in one slice."""
_SLICE = 256 * 1024
"""Characters that are searched, and bytes that are decompressed or decoded, in one slice."""
_LONGEST_ELEMENT = 32 * 1024
"""Longer elements are not found where a slice ends."""
_MAX_PROLOG_LENGTH = 64 * 1024

_CUT_AT_TAGS = frozenset(CODECS) - {"utf-8", "utf-16be", "utf-16le", "iso-2022-jp"}
"""Encodings that are decoded in slices. UTF-8 and UTF-16 are quick without, and no sitemap is in ISO-2022-JP."""

# Quantifiers are possessive or run to the end of the text, so that a scan takes linear time.
_COMMENT = r"!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->|\Z)"
_CDATA = r"!\[CDATA\[([^\]]*+(?:\](?!\]>)[^\]]*+)*+)(?:\]\]>|\Z)"
_SECTION = re.compile(rf"<(?:{_CDATA}|{_COMMENT})")
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
class Listed:
    """What one slice of a sitemap lists."""

    urls: Sequence[CrawlUrl] = ()
    sitemaps: Sequence[CrawlUrl] = ()
    """The sitemaps that a sitemap index lists."""


def read_sitemap(body: bytes, *, url: str, host: str, form: UrlForm) -> Iterator[Listed]:
    """Read a sitemap that was fetched from `url` because the robots.txt of `host` named it, in short slices.

    Never raises: unusable bytes list nothing. Each URL is listed once. Allowed are URLs on that host and on the
    sitemap's own host, over http or https, at any port. This is the protocol's "cross submit": robots.txt vouches for
    the sitemap, so the sitemap's directory does not matter.
    """
    own = plain_url(url)
    hosts = {host} if own is None else {host, own.host}
    known = set() if own is None else {own.text}
    is_index = False
    batch: list[CrawlUrl] = []
    for number, entry in enumerate(entries(body, url=url)):
        match entry:
            case str(text):
                listed = form.canonical(text)
                if listed is not None and listed.host in hosts and listed.text not in known:
                    known.add(listed.text)
                    batch.append(listed)
            case IsIndex():
                is_index = True
            case None:
                yield Listed()
        if number % _SLICE_URLS == _SLICE_URLS - 1:
            yield Listed(sitemaps=batch) if is_index else Listed(urls=batch)
            batch = []
    yield Listed(sitemaps=batch) if is_index else Listed(urls=batch)


class IsIndex:
    """Says that the texts that follow are sitemaps."""


def entries(body: bytes, *, url: str) -> Iterator[str | IsIndex | None]:
    """Yield the distinct URLs of a sitemap as written and in its order, and None after each slice of the work."""
    unzipped = yield from _decompressed(body)
    text = yield from _decoded(unzipped)
    if not re.match(r"\s*+<", text[:_MAX_PROLOG_LENGTH]):
        yield from _distinct((line and line[0] for line in _found(_LINE, text)), MAX_SITEMAP_URLS)
        return
    root = _root(text)
    if root is None:
        return
    prefix, name = root["prefix"] or "", root["name"]
    if name == "urlset":
        yield from _distinct(_texts(text, f"{prefix}loc"), MAX_SITEMAP_URLS)
    elif name == "sitemapindex":
        yield IsIndex()
        yield from _distinct(_texts(text, f"{prefix}loc"), MAX_CHILD_SITEMAPS)
    elif name in ("rss", "RDF"):
        yield from _absolute(_texts(text, "link"), url)
    elif name == "feed":
        yield from _absolute(_atom_links(text, f"{prefix}link"), url)


def _decompressed(body: bytes) -> Generator[None, None, bytes]:
    """Return at most MAX_SITEMAP_BYTES of a body, decompressed if it is gzip; a damaged file up to the damage."""
    if not body.startswith(GZIP_MAGIC):
        return body[:MAX_SITEMAP_BYTES]
    pieces: list[bytes] = []
    size = 0
    with suppress(zlib.error, EOFError):
        for piece in gunzip(body, limit=MAX_SITEMAP_BYTES, step=_GUNZIP_STEP):
            pieces.append(piece)
            size += len(piece)
            if size > _SLICE:
                size = 0
                yield
    return b"".join(pieces)[:MAX_SITEMAP_BYTES]


def _decoded(body: bytes) -> Generator[None, None, str]:
    name, position = identify(body, None)
    if name not in _CUT_AT_TAGS:
        return decode_as(name, body[position:])
    pieces: list[str] = []
    while position < len(body):
        # No legacy encoding has this byte inside a character.
        end = body.find(b">", position + _SLICE) + 1 or len(body)
        pieces.append(decode_as(name, body[position:end]))
        position = end
        yield
    return "".join(pieces)


def is_named_like_a_sitemap(url: str) -> bool:
    """Whether a URL ends like that of a sitemap, so that no page is lost if it is read as one."""
    return url.partition("?")[0].endswith((".xml", ".xml.gz"))


def _root(text: str) -> re.Match[str] | None:
    """Find the start tag of the root element. Return None for a document that declares entities."""
    position = 0
    for _ in range(_MAX_PROLOG):
        prolog = _PROLOG.match(text, position, _MAX_PROLOG_LENGTH)
        if prolog is None:
            return _ROOT.match(text, position, _MAX_PROLOG_LENGTH)
        if prolog["after_doctype"] not in (None, ">"):
            return None
        position = prolog.end()
    return None


def _found(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str] | None]:
    """Yield the matches of a pattern, and None after each slice of the text."""
    position, elements = 0, 0
    while position < len(text) and elements < _MAX_ELEMENTS:
        end = position + _SLICE
        following = end - _LONGEST_ELEMENT if end < len(text) else end
        for match in pattern.finditer(text, position, end):
            if match.end() == end < len(text):  # it may go on in the next slice
                if match.start() < end - _LONGEST_ELEMENT:
                    following = max(following, _end_of_unread(text, match.start()))
                break
            following = max(following, match.end())
            elements += 1
            yield match
        position = following
        yield None


def _end_of_unread(text: str, start: int) -> int:
    """Return the end of the comment or CDATA section that begins here; 0 if there is none."""
    for opening, closing in (("<!--", "-->"), ("<![CDATA[", "]]>")):
        if text.startswith(opening, start):
            return text.find(closing, start + len(opening)) + 1 or len(text)
    return 0


def _texts(text: str, element: str) -> Iterator[str | None]:
    """Yield the text of each element with this name that contains only text, CDATA sections and comments."""
    mixed = rf"(?:[^<]++|<{_CDATA}|<{_COMMENT})*+"
    pattern = re.compile(
        # Nearly always there is only text or one CDATA section, which take less time.
        rf"<(?:{re.escape(element)}(?:\s[^<>]*+)?+>\s*+(?:([^<]*+)</|<{_CDATA}\s*+</|(?P<mixed>{mixed})</)"
        rf"|{_COMMENT}|{_CDATA})"
    )
    for match in _found(pattern, text):
        if match is None:
            yield None
            continue
        escaped, verbatim, mixed_text = match.group(1, 2, "mixed")
        if mixed_text:
            yield _joined(mixed_text).strip()
        elif escaped:
            yield _unescaped(escaped).strip()
        elif verbatim:
            yield verbatim.strip()


def _joined(content: str) -> str:
    """Return text and CDATA sections as one text, without comments; '' if there are too many of them for a URL."""
    if len(content) > _MAX_CONTENT:
        return ""
    texts: list[str] = []
    position = 0
    for section in _SECTION.finditer(content):
        texts += (_unescaped(content[position : section.start()]), section[1] or "")
        position = section.end()
    return "".join((*texts, _unescaped(content[position:])))


def _atom_links(text: str, element: str) -> Iterator[str | None]:
    """Yield the href of each link to a page in an Atom feed."""
    pattern = re.compile(rf"<(?:{re.escape(element)}\s([^<>]{{1,{_MAX_ATTRIBUTES}}}+)>|{_COMMENT}|{_CDATA})")
    for match in _found(pattern, text):
        if match is None:
            yield None
            continue
        attributes = {name: one or two for name, one, two in _ATTRIBUTE.findall(match[1] or "")}
        if attributes.get("rel", "alternate") == "alternate":
            yield _unescaped(attributes.get("href", "")).strip()


def _absolute(texts: Iterable[str | None], url: str) -> Iterator[str | None]:
    """Make the links of a feed absolute. Only in feeds may they be relative."""
    base = parse_base(url)
    for text in _distinct(texts, MAX_SITEMAP_URLS):
        if text is None or text.startswith(("http://", "https://")):
            yield text
        elif (joined := plain_url(text, base)) is not None:
            yield joined.text


def _distinct(texts: Iterable[str | None], limit: int) -> Iterator[str | None]:
    """Yield each text once, at most `limit` of them, and each None."""
    known: set[str] = {""}
    for text in texts:
        if text is None:
            yield None
        elif text not in known and len(text) <= MAX_URL_LENGTH:
            known.add(text)
            yield text
            if len(known) > limit:
                return


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
