"""The text of a page as a data set wants it: whole lines, single spaces, nothing unprintable.

Blocks are put on lines of their own. Inside a line white space is collapsed as a browser does;
non-breaking spaces become spaces, control characters go. No line is empty, none starts or ends
with white space, save for the indent of preformatted text. A page has thousands of words: nothing
here is done for each of them.
"""

from __future__ import annotations

import re

BREAK = "\x1e"
"""Stands between lines in the text that tidy() takes: a control character, lost anyway."""

_KEPT_SPACE = "\ufdd0"
"""A space that is not collapsed: a code point that Unicode keeps free for uses like this."""
_TAB = _KEPT_SPACE * 4

_BLANKS = "\t\n\v\f\r\x1c\x1d\x1f\xa0"
"""What becomes a space."""
_ASCII_CONTROLS = bytes(
    code for code in range(0x80) if not chr(code).isprintable() and chr(code) not in _BLANKS + BREAK
)
_C1_LEAD = b"\xc2"
_C1 = re.compile(rb"\xc2[\x80-\x9f]")
_RUN = re.compile("  +")


def tidy(text: str) -> bytes:
    """The lines of a text, without anything that is not text, in UTF-8.

    Controls are rare: they are looked for in what comes of a text, as that has to be encoded anyway. Where there are
    none, taking them out first would have made no difference.
    """
    for blank in _BLANKS:
        text = text.replace(blank, " ")
    try:
        tidied = _lines(text).encode()
    except UnicodeEncodeError:
        pass  # a lone surrogate
    else:
        if not _has_controls(tidied):
            return tidied
    return _lines(_without_controls(text)).encode()


def _lines(text: str) -> str:
    lines = list(filter(None, map(str.strip, text.split(BREAK))))
    if "  " in text:
        lines = [_RUN.sub(" ", line) if "  " in line else line for line in lines]
    if _KEPT_SPACE in text:
        kept = (line.replace(_KEPT_SPACE, " ").rstrip() for line in lines)
        lines = [line for line in kept if line]
    return "\n".join(lines)


def _has_controls(raw: bytes) -> bool:
    # Bytes are looked for one by one, as that is far quicker than for all of them at once.
    if any(map(raw.__contains__, _ASCII_CONTROLS)):
        return True
    return _C1_LEAD in raw and _C1.search(raw) is not None


def _without_controls(text: str) -> str:
    """A text without controls and lone surrogates."""
    raw = text.encode("utf-8", "ignore").translate(None, _ASCII_CONTROLS)
    return _C1.sub(b"", raw).decode()


def tidy_line(text: str, length: int) -> str:
    """A text as one line of at most so many characters."""
    # White space and controls could hide the rest, but not four of five characters of a real title.
    start = text[: 5 * length]
    if not start.isprintable():
        start = tidy(start).decode()
    return " ".join(start.split())[:length].rstrip()


def keep_lines(text: str) -> str:
    """A preformatted text for tidy(): its line breaks and indents will stay."""
    return (
        text.replace("\r\n", "\n")
        .replace("\r", "\n")
        .replace("\n", BREAK)
        .replace("\t", _TAB)
        .replace(" ", _KEPT_SPACE)
        .replace("\xa0", _KEPT_SPACE)
    )
