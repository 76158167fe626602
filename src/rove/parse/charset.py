"""Bytes to characters: which encoding a body is in, in the order that browsers ask.

A byte order mark, the header's charset, the page's own declaration, UTF-8 where the bytes are that,
a guess, windows-1252. A label that is unknown is passed over and one that lies gives replacement
characters: nothing that a page says makes this raise.
"""

from __future__ import annotations

import codecs
import re

from rove.parse.detect import guess
from rove.parse.labels import CODECS, encoding_named

FALLBACK = "windows-1252"

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_BE, "utf-16be"),
    (codecs.BOM_UTF16_LE, "utf-16le"),
)
# UTF-16 without a mark, known by its first character; a page starts with one of the two.
_WIDE_STARTS = ((b"<\0", "utf-16le"), (b"\0<", "utf-16be"))

_PRESCAN = 4096
"""Bytes searched for a declaration: the standard says 1024, pages often put it later."""
_WINDOW = 32_768
"""Bytes looked through for text to guess from."""
_SAMPLE = 8_192
"""Bytes of text given to the guess; more made it slower and no better."""

_HEADER_CHARSET = re.compile(r"""\bcharset\s*=\s*["']?\s*([^\s"';,]+)""", re.IGNORECASE)
# These work on lower-cased bytes.
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_META = re.compile(rb"""<meta[\s/]((?:[^>"']+|"[^"]*"|'[^']*')*)""")
_ATTRIBUTE = re.compile(rb"""([^\s=>"'/]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+)))?""")
_META_CHARSET = re.compile(rb"""charset\s*=\s*["']?\s*([^\s"';,]+)""")
_XML_ENCODING = re.compile(rb"""\s*<\?xml\s[^>]*?\bencoding\s*=\s*["']([^"'>]+)""")


def decode(body: bytes, content_type: str | None) -> tuple[str, str]:
    """The text of a body, and the name of the encoding that it was read in."""
    name, start = _identify(body, content_type)
    return body[start:].decode(CODECS[name], "replace"), name


def to_utf8(body: bytes, content_type: str | None) -> tuple[bytes, str]:
    """A body as UTF-8 without a byte order mark, and the name of the encoding it was in.

    What is labelled UTF-8 is passed on unchecked: the HTML parser takes invalid bytes, and decoding
    and encoding again costs half as much as parsing.
    """
    name, start = _identify(body, content_type)
    raw = body[start:]
    if name != "utf-8":
        raw = raw.decode(CODECS[name], "replace").encode("utf-8", "replace")
    return raw, name


def _identify(body: bytes, content_type: str | None) -> tuple[str, int]:
    """The encoding of a body, and where its text starts behind the byte order mark."""
    for mark, name in _MARKS:
        if body.startswith(mark):
            return name, len(mark)
    return _header_encoding(content_type) or _declared(body) or _inferred(body), 0


def _header_encoding(content_type: str | None) -> str | None:
    if not content_type:
        return None
    found = _HEADER_CHARSET.search(content_type)
    return encoding_named(found.group(1)) if found else None


def _declared(body: bytes) -> str | None:
    """What the page says itself: the standard's prescan of its first bytes."""
    for start, wide in _WIDE_STARTS:
        if body.startswith(start):
            return wide
    head = body[:_PRESCAN].lower()
    if b"charset" in head:
        for meta in _META.finditer(_COMMENT.sub(b"", head)):
            name = _as_declared(_meta_label(meta.group(1)))
            if name is not None:
                return name
    declaration = _XML_ENCODING.match(head)
    return _as_declared(declaration.group(1)) if declaration else None


def _meta_label(tag: bytes) -> bytes:
    """The label in the attributes of a <meta>, b'' if there is none."""
    attributes: dict[bytes, bytes] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(tag):
        attributes.setdefault(name, double or single or bare)
    if b"charset" in attributes:
        return attributes[b"charset"]
    if attributes.get(b"http-equiv", b"").strip() != b"content-type":
        return b""
    found = _META_CHARSET.search(attributes.get(b"content", b""))
    return found.group(1) if found else b""


def _as_declared(label: bytes) -> str | None:
    """The encoding that a label inside the page means."""
    name = encoding_named(label.decode("latin-1"))
    # The declaration could be read as ASCII, so it cannot be in UTF-16.
    return "utf-8" if name in ("utf-16le", "utf-16be") else name


def _inferred(body: bytes) -> str:
    try:
        # A character that is cut off at the end is no error: bodies are cut at the size cap.
        codecs.utf_8_decode(body, "strict", False)
    except UnicodeDecodeError as error:
        return guess(_sample(body, error.start)) or FALLBACK
    return "utf-8"


def _sample(body: bytes, first: int) -> bytes:
    """Text from around the first byte that is not UTF-8, without the pieces that are plain ASCII.

    A tag's end is a safe cut: no encoding that is guessed at has '<' or '>' inside a character.
    """
    start = max(body.rfind(b">", 0, first) + 1, first - _WINDOW // 2)
    pieces = body[start : start + _WINDOW].split(b"<")
    return b"\n".join(piece for piece in pieces if not piece.isascii())[:_SAMPLE]
