"""Which pages are read in the event loop: those that cannot take long, whatever they hold.

The HTML parser takes time in proportion to a page's length for all pages that people write, but a few kilobytes can
be made to take minutes and gigabytes. Three things make that, and each is bounded here, by a look at the bytes that is
cheap since it sees far less than a parser does:

- open elements: for many tags the parser walks over all that are open, so that n tags take up to n² steps;
- attributes: each one is compared with those before it in its tag;
- formatting elements (<b>, <font>, <a>): those that are left open are made anew in every block that follows, with all
  their attributes, however long; <html> and <body> gather the attributes of all their tags.

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
_WINDOW_TIMES_TAGS = 500_000
"""Bounds the copying of one tag's attributes into every block, 140 ns each."""
_COPIED_TIMES_TAGS = 1_200_000
"""Bounds the copying of all others."""
_LONGEST_COPIED = 2_000
_LINK_TIMES_TAGS = 20 * 1024 * 1024
"""Bounds the bytes of one link that are copied into every block, 2 ms for each MiB."""
_MAX_UNSETTLED = 4_000
_UNSETTLED_TIMES_TAGS = 200_000
"""Attributes that there may be where it is not known whether a tag ends."""

_MAYBE_COPIED = re.compile(
    rb"<[BbCcEeFfHhIiNnSsTtUu](?:[\s/]|[IiMmOoTt](?:[\s/]|[AaBbDdGgMmNnRr][A-Za-z]{0,3}[\s/]))"
)
"""The tags that may be copied and have attributes, and a few others: all names at once would be slower."""
_COPIED = re.compile(
    rb"<(?:b|i|s|u|em|tt|big|body|code|font|html|nobr|small|strike|strong)(?=[\s/])", re.I
)
"""A tag that may be copied and has attributes."""


def _with_spaces(pattern: bytes) -> re.Pattern[bytes]:
    """A pattern in which _ is white space as HTML has it, where a vertical tab is a letter."""
    return re.compile(pattern.replace(b"_", rb"\t\n\f\r "))


_ATTRIBUTES = _with_spaces(
    rb"""(?:[_/]*+[^_"'<>/=]++(?:[_]*+=[_]*+(?:"[^"]*+"|'[^']*+'|[^_"'<>=][^_"'<>]*+))?+)*+[_/]*+>"""
)
"""The rest of a tag, written so that there is no doubt about its end."""
_MAYBE_LONG_LINK = _with_spaces(
    rb"<[Aa][_/](?!(?:[_/]*+[^_\"'<>/=]{1,100}+(?:[_]*+=[_]*+"
    rb"(?:\"[^\"<]{0,900}+\"|'[^'<]{0,900}+'|[^_\"'<>=][^_\"'<>]{0,900}+))?+){0,9}+[_/]*+>)"
)
"""A link of which it is not plain to see that it has less than 10,000 bytes, which all pages may have."""
_TO_THE_END = rb"""(?:[^>=]*+(?<![_/"'=])=[_]*+(?:"[^"]*+"|'[^']*+'|[^_>"'][^_>]*+))*+[^>=]*+>"""
_ENDS_FROM_DOUBLE = _with_spaces(rb'[^"]*+"' + _TO_THE_END)
_ENDS_FROM_SINGLE = _with_spaces(rb"[^']*+'" + _TO_THE_END)
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
    """Whether the elements that may all be copied have few attributes, and no link has long ones."""
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
    """Whether no <a> is longer than so many bytes; it is copied too, but one at a time, as each one ends the last."""
    return all(
        len(raw) - maybe.end() <= most or _ATTRIBUTES.match(raw, maybe.end(), maybe.end() + most)
        for maybe in _MAYBE_LONG_LINK.finditer(raw)
    )


def _has_short_tags(raw: bytes, tags: int) -> bool:
    """Whether no tag can have many attributes, as it ends in every window of the page, or has none there."""
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
    """Up to where a tag that is open at the start of a window may have attributes; the start, if it surely ends.

    In a window without a kind of quotes, a value in such quotes goes on to its end and brings no attribute. Otherwise
    a double quote that opens nothing, with a '>' behind it, is the end of a tag; and so is the first '>', unless it
    stands in a quoted value: then the rest is read on from there, for either kind of quotes.
    """
    first = raw.find(b">", start, end)
    if first < 0:
        return end
    if raw.find(b"'", start, end) < 0:
        double = raw.find(b'"', start, end)  # looked for alone, as that is far quicker
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
