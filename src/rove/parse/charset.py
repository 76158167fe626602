"""Finds the character encoding of a body as browsers do, and decodes it.

In this order: byte order mark, charset in the header, declaration at the start of the page, UTF-8 if the bytes are
valid UTF-8, a declaration further down (within limits), a guess, windows-1252. Unknown labels are ignored, and wrong
ones give replacement characters, so no page raises an error.
"""

from __future__ import annotations

import codecs
import re

from rove.parse.detect import guess
from rove.parse.labels import encoding_named
from rove.parse.whatwg import decode_as

FALLBACK = "windows-1252"

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_BE, "utf-16be"), (codecs.BOM_UTF16_LE, "utf-16le"))
# UTF-16 without a byte order mark is recognized by its first character, because pages start with "<".
_WIDE_STARTS = ((b"<\0", "utf-16le"), (b"\0<", "utf-16be"))

_PRESCAN = 4096
"""Bytes searched for a declaration. The standard says 1024, but many pages have it later."""
_LATE_METAS = 100
"""How many further declarations are read if nothing else names an encoding."""
_LATE_TAG = 1024
"""Bytes of such a declaration."""
_LATE_STEPS = 5_000
"""How many comments and <meta> tags are skipped in the search for it."""
_WINDOW = 32_768
"""Bytes searched for text to guess from."""
_SAMPLE = 8_192
"""Bytes of text to guess from. Larger samples were slower and not better."""

_HEADER_CHARSET = re.compile(r"""\bcharset\s*=\s*["']?\s*([^\s"';,]+)""", re.IGNORECASE)
# These expect lower-case bytes.
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_META = re.compile(rb"""<meta[\s/]((?:[^>"']+|"[^"]*"|'[^']*')*)""")
_ATTRIBUTE = re.compile(rb"""([^\s=>"'/]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+)))?""")
_META_CHARSET = re.compile(rb"""charset\s*=\s*["']?\s*([^\s"';,]+)""")
_XML_ENCODING = re.compile(rb"""\s*<\?xml\s[^>]*?\bencoding\s*=\s*["']([^"'>]+)""")


def decode(body: bytes, content_type: str | None) -> tuple[str, str]:
    """Decode a body; also return the name of its encoding."""
    name, start = identify(body, content_type)
    return decode_as(name, body[start:] if start else body), name


def identify(body: bytes, content_type: str | None) -> tuple[str, int]:
    """Return the name of a body's encoding and the position of its text, after any byte order mark."""
    for mark, name in _MARKS:
        if body.startswith(mark):
            return name, len(mark)
    return _header_encoding(content_type) or _declared(body) or _inferred(body), 0


def _header_encoding(content_type: str | None) -> str | None:
    if not content_type:
        return None
    charset = _HEADER_CHARSET.search(content_type)
    return encoding_named(charset.group(1)) if charset else None


def _declared(body: bytes) -> str | None:
    """Return the encoding that the page declares, by the standard's prescan of its first bytes."""
    for start, wide in _WIDE_STARTS:
        if body.startswith(start):
            return wide
    head = body[:_PRESCAN].lower()
    declaration = _XML_ENCODING.match(head)
    return _declared_by_meta(head) or (_as_declared(declaration.group(1)) if declaration else None)


def _declared_by_meta(head: bytes) -> str | None:
    """Return the encoding that the first <meta> with a known one declares in a piece of a page, in lower case."""
    if b"charset" in head:
        for meta in _META.finditer(_COMMENT.sub(b"", head)):
            name = _as_declared(_meta_label(meta.group(1)))
            if name is not None:
                return name
    return None


def _declared_late(body: bytes) -> str | None:
    """Return what _declared_by_meta() does for a whole page, but give up on pages that would take long."""
    at, start, metas = 0, -1, 0
    for _ in range(_LATE_STEPS if b"charset" in body else 0):
        if start < at:  # otherwise the same part would be searched after each comment
            start = body.find(b"<meta", at)
        if start < 0:
            return None
        comment = body.find(b"<!--", at, start)
        if comment >= 0:
            at = body.find(b"-->", comment + 4)
            if at < 0:
                return None
            continue
        at = start + 1
        meta = _META.match(body, start, start + _LATE_TAG)
        if meta is not None and b"charset" in meta[1]:
            name = _as_declared(_meta_label(meta[1]))
            metas += 1
            if name is not None or metas == _LATE_METAS:
                return name
    return None


def _meta_label(tag: bytes) -> bytes:
    """Return the encoding label in the attributes of a <meta>, or b'' if there is none."""
    attributes: dict[bytes, bytes] = {}
    for name, double_quoted, single_quoted, unquoted in _ATTRIBUTE.findall(tag):
        attributes.setdefault(name, double_quoted or single_quoted or unquoted)
    if b"charset" in attributes:
        return attributes[b"charset"]
    if attributes.get(b"http-equiv", b"").strip() != b"content-type":
        return b""
    charset = _META_CHARSET.search(attributes.get(b"content", b""))
    return charset.group(1) if charset else b""


def _as_declared(label: bytes) -> str | None:
    """Return the encoding that a label inside the page stands for."""
    name = encoding_named(label.decode("latin-1"))
    # The declaration was readable as ASCII, so the page is not in UTF-16.
    return "utf-8" if name in ("utf-16le", "utf-16be") else name


def _inferred(body: bytes) -> str:
    try:
        # A truncated character at the end is fine, because long bodies are cut.
        codecs.utf_8_decode(body, "strict", False)
    except UnicodeDecodeError as error:
        # The bytes are not UTF-8, even if the page declares it this late.
        return _declared_late(body.lower()) or guess(_sample(body, error.start)) or FALLBACK
    return "utf-8"


def _sample(body: bytes, first: int) -> bytes:
    """Return text from around the first byte that is not UTF-8, without pieces that are plain ASCII."""
    # Cutting at a tag is safe: no encoding among the candidates has '<' or '>' inside a character.
    start = max(body.rfind(b">", 0, first) + 1, first - _WINDOW // 2)
    pieces = body[start : start + _WINDOW].split(b"<")
    return b"\n".join(piece for piece in pieces if not piece.isascii())[:_SAMPLE]
