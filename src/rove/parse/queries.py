"""The queries of links, in the encoding of their page.

Browsers escape the path of a link in UTF-8, but its query in the encoding of the page (URL standard, "query state"). So
must rove, because the server of such a page expects this encoding.
"""

from __future__ import annotations

import re
from functools import cache

from rove.parse.labels import CODECS
from rove.parse.whatwg import decode_as

_UNICODE = frozenset({"utf-8", "utf-16be", "utf-16le"})
_CODECS = {**CODECS, "gbk": "gbk"}
"""Python's encoders. That of gb18030 has characters that are not in GBK."""
_NOT_ASCII = re.compile("[^\0-\x7f]+")
_KEPT = frozenset(range(0x21, 0x7F)) - frozenset(b"\"#<>'")
"""Bytes that stay as they are in the query of a web address."""
_EURO_IN_GBK = b"\x80"
_EUC_JP_BYTES = range(0xA1, 0xFF)


def needs_escapes(encoding: str) -> bool:
    """Whether queries are escaped in another way than the rest of a URL."""
    return encoding not in _UNICODE


def escape_query(href: str, encoding: str) -> str:
    """Escape the non-ASCII characters in the query of an href, in the encoding of its page.

    >>> escape_query("é?q=é#é", "windows-1252")
    'é?q=%E9#é'
    """
    address, hash_mark, fragment = href.partition("#")
    path, question_mark, query = address.partition("?")
    query = _NOT_ASCII.sub(lambda run: _escaped(run[0], encoding), query)
    return path + question_mark + query + hash_mark + fragment


def _escaped(text: str, encoding: str) -> str:
    raw = _encoded(text, encoding)
    if raw is None and len(text) > 1:
        return "".join(_escaped(char, encoding) for char in text)
    if raw is None:  # as in a form: a character reference
        return f"%26%23{ord(text)}%3B"
    return "".join(chr(byte) if byte in _KEPT else f"%{byte:02X}" for byte in raw)


def _encoded(text: str, encoding: str) -> bytes | None:
    """Return a text in a legacy encoding; None if it has characters that the encoding lacks."""
    if encoding == "gbk" and text == "€":
        return _EURO_IN_GBK
    try:
        raw = text.encode(_CODECS[encoding])
    except UnicodeEncodeError:
        raw = b""
    # Python's tables differ from the standard's in places, and a browser would decode what rove encodes.
    if raw and decode_as(encoding, raw) == text:
        return raw
    return _euc_jp().get(text) if encoding == "euc-jp" else None


@cache
def _euc_jp() -> dict[str, bytes]:
    """Map the characters of two bytes in EUC-JP, for which Python's tables differ most."""
    pairs = [bytes((lead, trail)) for lead in reversed(_EUC_JP_BYTES) for trail in reversed(_EUC_JP_BYTES)]
    return {decode_as("euc-jp", pair): pair for pair in pairs}
