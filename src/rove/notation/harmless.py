"""Makes text from the web harmless, so that a terminal shows it and does not obey it.

Escape sequences can change the colours, the title and the contents of a terminal. Characters that change the direction
of text make a line read as something else, and line separators forge lines.
"""

from __future__ import annotations

import re

_UNSHOWABLE = r"\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
"""DEL and C1 controls, marks and overrides of direction, separators, byte order marks, annotations, lone surrogates."""
_UNSHOWABLE_IN_LINE = re.compile(rf"[\x00-\x1f{_UNSHOWABLE}]")
_UNSHOWABLE_IN_TEXT = re.compile(rf"[\x00-\x08\x0b-\x1f{_UNSHOWABLE}]")
_UNSHOWABLE_IN_UTF_8 = re.compile(
    rb"\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xaf]|\xef\xbb\xbf|\xef\xbf[\xb9-\xbb]"
)
"""The same without surrogates, which have no bytes in UTF-8, and without C0 controls, which JSON always escapes."""


def one_line(text: str) -> str:
    r"""Escape the control and direction characters of untrusted text, so that a terminal can show it safely.

    >>> one_line("a\x1b[2Jb\nc")
    'a\\x1b[2Jb\\x0ac'
    """
    return _UNSHOWABLE_IN_LINE.sub(_escaped, text)


def some_lines(text: str) -> str:
    r"""Escape a text like `one_line`, apart from tabs and line feeds.

    >>> some_lines("a\x1b[2J\n\tb")
    'a\\x1b[2J\n\tb'
    """
    return _UNSHOWABLE_IN_TEXT.sub(_escaped, text)


def whole_text(body: bytes) -> str:
    """Decode an untrusted text of several lines and escape it like `some_lines`."""
    return some_lines(body.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n"))


def ascii_escapes(json: bytes) -> bytes:
    r"""Write the unshowable characters of a JSON text as \u escapes, which are the same characters to its readers.

    >>> ascii_escapes('"\u202e\x9b"'.encode())
    b'"\\u202e\\u009b"'
    """
    if json.isascii() and b"\x7f" not in json:
        return json  # most pages; the search takes ten times as long
    return _UNSHOWABLE_IN_UTF_8.sub(_json_escape, json)


def without_surrogates(text: str) -> str:
    r"""Replace lone surrogates, which no UTF-8 text can hold.

    >>> without_surrogates("a\ud800b")
    'a\ufffdb'
    """
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _json_escape(match: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(match[0].decode())
