"""The text of a page, cleaned for use in data sets: whole lines, single spaces, nothing invisible.

Blocks are on lines of their own. Inside a line, white space is collapsed as in a browser, non-breaking spaces become
spaces, and control characters, soft hyphens and other invisible characters are removed. No line is empty. No line
starts or ends with white space, except for the indent of preformatted text. A page has thousands of words, so there is
no loop over words.
"""

from __future__ import annotations

import re

BREAK = "\x1e"
"""Separates lines in the input of tidy(). It is a control character, which texts would lose anyway."""

_HARD_SPACE = "\ufdd0"
"""A space that is not collapsed, as a code point that Unicode reserves for internal use."""
_TAB = _HARD_SPACE * 4

_BLANKS = "\t\n\v\f\r\x1c\x1d\x1f\xa0"
"""Characters that become a space."""
_ASCII_CONTROLS = bytes(
    code for code in range(0x80) if not chr(code).isprintable() and chr(code) not in _BLANKS + BREAK
)
_C1_CONTROLS = [chr(code) for code in range(0x80, 0xA0)]
_C1_LEAD = b"\xc2"
_C1 = re.compile(rb"\xc2[\x80-\x9f]")
_BLANK_LINES = re.compile(r"\n\s{6,}\n")
_RUN = re.compile("  +")
_LINE_ENDS = "\u2028\u2029"
_INVISIBLE = "\xad\ufeff\u2060"
"""Characters inside words that nobody sees: soft hyphens, and marks that forbid a line break."""
_WORD_BREAK = "\u200b"
"""The zero width space. In scripts without spaces it separates words; elsewhere it breaks them."""
_WITHOUT_SPACES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f"
"""Thai, Lao, Myanmar and Khmer."""
_WORD_BREAKS = re.compile(rf"(?<=([{_WITHOUT_SPACES}])){_WORD_BREAK}+(?=[{_WITHOUT_SPACES}])|{_WORD_BREAK}+")
"""The group matches if the break separates words."""


def tidy(text: str) -> bytes:
    """Return the cleaned lines of a text in UTF-8."""
    # Control characters are rare. Searching the encoded result for them is cheaper than always removing them first.
    for blank in _BLANKS:
        text = text.replace(blank, " ")
    text = _without_invisible(text)
    try:
        tidied = _lines(text).encode()
    except UnicodeEncodeError:
        pass  # a lone surrogate
    else:
        if not _has_controls(tidied):
            return tidied
    return _lines(_without_controls(text)).encode()


def _without_invisible(text: str) -> str:
    for invisible in _INVISIBLE:
        text = text.replace(invisible, "")
    if text.isascii():
        return text
    for line_end in _LINE_ENDS:
        text = text.replace(line_end, BREAK)
    return _WORD_BREAKS.sub(lambda found: _WORD_BREAK if found[1] else "", text) if _WORD_BREAK in text else text


def _lines(text: str) -> str:
    lines = list(filter(None, map(str.strip, text.split(BREAK))))
    if "  " in text:
        lines = [_RUN.sub(" ", line) if "  " in line else line for line in lines]
    if _HARD_SPACE in text:
        indented = (line.replace(_HARD_SPACE, " ").rstrip() for line in lines)
        lines = [line for line in indented if line]
    return "\n".join(lines)


def _has_controls(raw: bytes) -> bool:
    # One search per byte is far quicker than one search for all of them.
    if any(map(raw.__contains__, _ASCII_CONTROLS)):
        return True
    return _C1_LEAD in raw and _C1.search(raw) is not None


def _without_controls(text: str) -> str:
    """Remove control characters and lone surrogates."""
    text = text.encode("utf-8", "ignore").translate(None, _ASCII_CONTROLS).decode()
    # A pattern for all of them would take a call for each one that it finds.
    for control in _C1_CONTROLS:
        text = text.replace(control, "")
    return text


def tidy_line(text: str, length: int) -> str:
    """Return a text as one line of at most `length` characters."""
    # A real title is not four fifths white space and control characters.
    start = text[: 5 * length]
    if not start.isprintable():
        start = tidy(start).decode()
    return " ".join(start.split())[:length].rstrip()


def keep_lines(text: str) -> str:
    """Protect the line breaks and indents of a preformatted text from tidy()."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    # A page may have a million blank lines, which tidy() would remove one by one.
    return (
        _BLANK_LINES.sub("\n", text)
        .replace("\n", BREAK)
        .replace("\t", _TAB)
        .replace(" ", _HARD_SPACE)
        .replace("\xa0", _HARD_SPACE)
    )
