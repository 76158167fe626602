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
_CONTROLS = bytes(
    code for code in range(0xA0) if not chr(code).isprintable() and chr(code) not in _BLANKS + BREAK
)
_TO_SPACES = bytes.maketrans(_BLANKS.encode("latin-1"), b" " * len(_BLANKS))
_ASCII_CONTROLS = bytes(code for code in _CONTROLS if code < 0x80)
_C1 = re.compile(rb"\xc2[\x80-\x9f]")
_RUN = re.compile("  +")


def tidy(text: str) -> str:
    """The lines of a text, without anything that is not text."""
    text = _cleaned(text)
    lines = [
        _RUN.sub(" ", line) if "  " in line else line
        for part in text.split(BREAK)
        if (line := part.strip())
    ]
    if _KEPT_SPACE in text:
        kept = (line.replace(_KEPT_SPACE, " ").rstrip() for line in lines)
        lines = [line for line in kept if line]
    return "\n".join(lines)


def _cleaned(text: str) -> str:
    """A text with spaces for all blanks, without controls and lone surrogates."""
    try:
        narrow = text.encode("latin-1")
    except UnicodeEncodeError:
        return _cleaned_wide(text)
    # Python keeps such a text as these bytes, so that there and back they are only copied.
    return narrow.translate(_TO_SPACES, _CONTROLS).decode("latin-1")


def _cleaned_wide(text: str) -> str:
    """The same for any text; it is not made anew where nothing has to go, since decoding takes longest."""
    for blank in _BLANKS:
        text = text.replace(blank, " ")
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raw = text.encode("utf-8", "ignore")
        text = raw.decode()
    kept = raw.translate(None, _ASCII_CONTROLS)
    if b"\xc2" in kept:  # the lead byte of U+0080 to U+00BF
        kept = _C1.sub(b"", kept)
    return text if len(kept) == len(raw) else kept.decode()


def tidy_line(text: str, length: int) -> str:
    """A text as one line of at most so many characters."""
    # White space and controls could hide the rest, but not four of five characters of a real title.
    return " ".join(tidy(text[: 5 * length]).split())[:length].rstrip()


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
