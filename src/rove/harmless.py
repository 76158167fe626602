"""Makes text from the web harmless, so that a terminal can show it."""

from __future__ import annotations

import re

_UNSHOWABLE = r"\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff"
_UNSHOWABLE_IN_LINE = re.compile(rf"[\x00-\x1f{_UNSHOWABLE}]")
_UNSHOWABLE_IN_TEXT = re.compile(rf"[\x00-\x08\x0b-\x1f{_UNSHOWABLE}]")


def one_line(text: str) -> str:
    r"""Escape the control and direction characters of untrusted text, so that a terminal can show it safely.

    >>> one_line("a\x1b[2Jb\nc")
    'a\\x1b[2Jb\\x0ac'
    """
    return _UNSHOWABLE_IN_LINE.sub(_escaped, text)


def whole_text(body: bytes) -> str:
    """Decode an untrusted text of several lines and escape it like `one_line`, apart from tabs and line feeds."""
    text = body.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return _UNSHOWABLE_IN_TEXT.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
