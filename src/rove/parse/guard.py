"""Which pages are read in the event loop: those that cannot take long, whatever they hold.

The HTML parser takes time in proportion to a page's length for all pages that people write, but a few kilobytes can
be made to take minutes and gigabytes. Three things make that, and each is bounded here, by a look at the bytes that is
cheap since it sees far less than a parser does:

- open elements: for many tags the parser walks over all that are open, so that n tags take up to n² steps;
- attributes: each one is compared with those before it in its tag;
- formatting elements (<b>, <font>): those that are left open are made anew in every block that follows, with all
  their attributes; <html> and <body> gather the attributes of all their tags.

A page that is not plain is not evil: most are long. It is read elsewhere (reader.py). What is said here of times was
measured; the tests hold the worst pages that were found to them.
"""

from __future__ import annotations

import re

MAX_PLAIN_BYTES = 128 * 1024
MAX_PLAIN_TAGS = 2_000
"""Tags, of which all may be open at once: 4 ns for each pair at the worst."""
MAX_PLAIN_NODES = 30_000
"""Elements of a page that is read in the event loop, counted when they are there: 0.8 µs each."""

_HARMLESS_BYTES = 4_096
_WINDOW_TIMES_BYTES = 128 * 1024 * 1024
"""Bounds the comparing of attributes: it grows with the square of a tag and the number of tags."""
_WINDOW_TIMES_TAGS = 1_000_000
"""Bounds the copying of one tag's attributes into every block, 140 ns each."""
_COPIED_TIMES_TAGS = 1_200_000
"""Bounds the copying of all others."""
_MAX_UNSETTLED = 300
"""Attributes that there may be in windows of which it is not known whether a tag ends there."""

_COPIED = re.compile(
    rb"<(?:[BbIiSsUu]|[BbCcEeFfHhNnSsTt][IiMmOoTt][A-Za-z]{0,4}+)(?=[\s/])", re.ASCII
)
"""A tag with attributes that may be copied, and some others: all names at once would be slower."""
_COPIED_NAMES = frozenset(
    b"<b <i <s <u <em <tt <big <body <code <font <html <nobr <small <strike <strong".split()
)
_ATTRIBUTES = re.compile(
    rb"""(?:[\s/]*+[^\s"'<>/=]++(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'<>=][^\s"'<>]*+))?+)*+[\s/]*+>"""
)
"""The rest of a tag, written so that there is no doubt about its end."""
_TO_THE_END = rb"""(?:[^>=]*+(?<![\s/"'=])=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+))*+[^>=]*+>"""
_ENDS_FROM_DOUBLE = re.compile(rb'[^"]*+"' + _TO_THE_END)
_ENDS_FROM_SINGLE = re.compile(rb"[^']*+'" + _TO_THE_END)
"""The end of a tag, from inside of a quoted value."""
_OPENS_AFTER = b"= \t\n\f\r"
_SEPARATORS = b" \t\n\f\r/\"'"


def is_plain(raw: bytes) -> bool:
    """Whether a page takes less than a tenth of a second to parse, however it was made."""
    length = len(raw)
    if length <= _HARMLESS_BYTES:
        return True
    if length > MAX_PLAIN_BYTES:
        return False
    tags = raw.count(b"<")
    return tags <= MAX_PLAIN_TAGS and _copies_little(raw, tags) and _has_short_tags(raw, tags)


def _copies_little(raw: bytes, tags: int) -> bool:
    """Whether the elements that may all be copied have few attributes."""
    total = 0
    for found in _COPIED.finditer(raw):
        if found[0].lower() in _COPIED_NAMES:
            attributes = _ATTRIBUTES.match(raw, found.end(), found.end() + MAX_PLAIN_TAGS)
            if attributes is None:
                return False
            total += attributes.end() - attributes.start()
    return total * tags <= _COPIED_TIMES_TAGS


def _has_short_tags(raw: bytes, tags: int) -> bool:
    """Whether no tag can have many attributes, since it ends soon: in every window of the page, or nothing is there."""
    length = len(raw)
    window = min(_WINDOW_TIMES_BYTES // length, _WINDOW_TIMES_TAGS // (tags + 1))
    unsettled = 0
    for start in range(0, length, window):
        if not _ends_tags(raw, start, start + window):
            piece = raw[start : start + window]
            unsettled += len(piece) - len(piece.translate(None, _SEPARATORS))
            if unsettled > _MAX_UNSETTLED:
                return False
    return True


def _ends_tags(raw: bytes, start: int, end: int) -> bool:
    """Whether a tag that is open at the start of a window, in any state, ends within it or has no attribute there.

    A single-quoted value goes on through a window without single quotes. A double quote that opens nothing, with a '>'
    behind it, is the end of a tag in every other state. Else the first '>' is: unless it stands in a quoted value, of
    either kind, and then the rest is read on from there.
    """
    has_single = raw.find(b"'", start, end) >= 0
    if not has_single:
        quote = raw.find(b'">', start, end)
        if quote > start and raw[quote - 1] not in _OPENS_AFTER:
            return True
    first = raw.find(b">", start, end) + 1
    return (
        first > 0
        and _ENDS_FROM_DOUBLE.match(raw, first, end) is not None
        and (not has_single or _ENDS_FROM_SINGLE.match(raw, first, end) is not None)
    )
