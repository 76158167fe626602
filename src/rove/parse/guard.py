"""Decide which pages are safe to parse in the event loop.

The HTML parser takes linear time for pages that people write, but a few kilobytes can be crafted to take minutes and
gigabytes. Three things cause that. A cheap scan of the bytes bounds each of them:

- open elements: for many tags the parser walks over all open elements, so n tags take up to n² steps;
- attributes: each one is compared with all earlier ones in its tag;
- formatting elements (<b>, <font>, <a>): if left open, they are created again in every following block, with all their
  attributes. <html> and <body> collect the attributes of all their tags.

A page that is not plain is usually just long. Another process reads it (reader.py). The times in this module were
measured, and the tests check them with the worst known pages.
"""

from __future__ import annotations

import re

MAX_PLAIN_BYTES = 128 * 1024
MAX_PLAIN_TAGS = 2_000
"""All of them may be open at once, which takes up to 4 ns for each pair."""
MAX_PLAIN_NODES = 30_000
"""Elements of the parsed page; each takes 0.8 µs."""

_HARMLESS_BYTES = 4_096
_WINDOW_TIMES_BYTES = 128 * 1024 * 1024
"""Bounds the comparison of attributes, which grows with the square of a tag's length and the number of tags."""
_WINDOW_TIMES_TAGS = 500_000
"""Bounds the copies of one tag's attributes into every block; each takes 140 ns."""
_COPIED_TIMES_TAGS = 1_200_000
"""Bounds the copies of all other tags."""
_LONGEST_COPIED = 2_000
_LINK_TIMES_TAGS = 20 * 1024 * 1024
"""Bounds the bytes of one link that are copied into every block; each MiB takes 2 ms."""
_MAX_UNSETTLED = 4_000
_UNSETTLED_TIMES_TAGS = 200_000
"""Attributes allowed in places where it is not certain that a tag ends."""

_MAYBE_COPIED = re.compile(rb"<[BbCcEeFfHhIiNnSsTtUu](?:[\s/]|[IiMmOoTt](?:[\s/]|[AaBbDdGgMmNnRr][A-Za-z]{0,3}[\s/]))")
"""A quick test for tags that may be copied and have attributes; it also matches a few others."""
_COPIED = re.compile(rb"<(?:b|i|s|u|em|tt|big|body|code|font|html|nobr|small|strike|strong)(?=[\s/])", re.I)
"""A tag that may be copied and has attributes."""


def _with_spaces(pattern: bytes) -> re.Pattern[bytes]:
    """Compile a pattern in which _ stands for HTML white space, which does not include the vertical tab."""
    return re.compile(pattern.replace(b"_", rb"\t\n\f\r "))


_ATTRIBUTES = _with_spaces(
    rb"""(?:[_/]*+[^_"'<>/=]++(?:[_]*+=[_]*+(?:"[^"]*+"|'[^']*+'|[^_"'<>=][^_"'<>]*+))?+)*+[_/]*+>"""
)
"""The rest of a tag that is written so clearly that its end is certain."""
_MAYBE_LONG_LINK = _with_spaces(
    rb"<[Aa][_/](?!(?:[_/]*+[^_\"'<>/=]{1,100}+(?:[_]*+=[_]*+"
    rb"(?:\"[^\"<]{0,900}+\"|'[^'<]{0,900}+'|[^_\"'<>=][^_\"'<>]{0,900}+))?+){0,9}+[_/]*+>)"
)
"""A link that may have 10,000 bytes or more."""
_TO_THE_END = rb"""(?:[^>=]*+(?<![_/"'=])=[_]*+(?:"[^"]*+"|'[^']*+'|[^_>"'][^_>]*+))*+[^>=]*+>"""
_ENDS_FROM_DOUBLE = _with_spaces(rb'[^"]*+"' + _TO_THE_END)
_ENDS_FROM_SINGLE = _with_spaces(rb"[^']*+'" + _TO_THE_END)
"""The end of a tag, starting inside a quoted value."""
_OPENS_AFTER = b"= \t\n\f\r"
_SEPARATORS = b" \t\n\f\r/\"'"


def is_plain(raw: bytes) -> bool:
    """Whether a page certainly takes less than a tenth of a second to parse."""
    length = len(raw)
    if length <= _HARMLESS_BYTES:
        return True
    if length > MAX_PLAIN_BYTES:
        return False
    tags = raw.count(b"<")
    return tags <= MAX_PLAIN_TAGS and _copies_little(raw, tags) and _has_short_tags(raw, tags)


def _copies_little(raw: bytes, tags: int) -> bool:
    """Whether elements that may be copied have few attributes, and links are short."""
    total = 0
    for maybe in _MAYBE_COPIED.finditer(raw):
        copied = _COPIED.match(raw, maybe.start())
        if copied is not None:
            attributes = _ATTRIBUTES.match(raw, copied.end(), copied.end() + _LONGEST_COPIED)
            if attributes is None:
                return False
            total += attributes.end() - attributes.start()
    if total * tags > _COPIED_TIMES_TAGS:
        return False
    return len(raw) * tags <= _LINK_TIMES_TAGS or _has_short_links(raw, _LINK_TIMES_TAGS // tags)


def _has_short_links(raw: bytes, most: int) -> bool:
    """Whether no <a> is longer than `most` bytes. Only one <a> is open at a time, so only one is copied."""
    return all(
        len(raw) - maybe.end() <= most or _ATTRIBUTES.match(raw, maybe.end(), maybe.end() + most)
        for maybe in _MAYBE_LONG_LINK.finditer(raw)
    )


def _has_short_tags(raw: bytes, tags: int) -> bool:
    """Whether no tag can have many attributes, because in every window of the page it ends or has none."""
    length = len(raw)
    window = min(_WINDOW_TIMES_BYTES // length, _WINDOW_TIMES_TAGS // (tags + 1))
    most = min(_MAX_UNSETTLED, _UNSETTLED_TIMES_TAGS // (tags + 1))
    unsettled = 0
    for start in range(0, length, window):
        end = _unsettled_end(raw, start, start + window)
        if end > start:
            piece = raw[start:end]
            unsettled += len(piece) - len(piece.translate(None, _SEPARATORS))
            if unsettled > most:
                return False
    return True


def _unsettled_end(raw: bytes, start: int, end: int) -> int:
    """Return how far a tag that is open at the start of a window may have attributes; the start if it certainly ends.

    If a window lacks one kind of quotes, a value in such quotes continues to its end and adds no attribute. Otherwise a
    double quote that opens nothing, followed by '>', ends the tag. So does the first '>', unless it is inside a quoted
    value; then the scan continues from there, for both kinds of quotes.
    """
    first = raw.find(b">", start, end)
    if first < 0:
        return end
    if raw.find(b"'", start, end) < 0:
        double = raw.find(b'"', start, end)  # searching for one byte is far quicker
        if double < 0:
            return start
        quote = raw.find(b'">', double, end)
        if quote > start and raw[quote - 1] not in _OPENS_AFTER:
            return start
    until = start
    for kind, ends in ((b'"', _ENDS_FROM_DOUBLE), (b"'", _ENDS_FROM_SINGLE)):
        if raw.find(kind, first, end) < 0:
            if raw.find(kind, start, first) >= 0:
                until = first
        elif ends.match(raw, first, end) is None:
            return end
    return until
