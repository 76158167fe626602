"""Robots directives of a page: whether it may be indexed, its links followed, and whether models may be trained on it.

Pages state them in meta elements and X-Robots-Tag headers. There is no standard; this follows the documentation of the
large search engines. Rules for "rove" apply in addition to those for all robots, and the most restrictive one wins. A
header value may name a robot, and then its rules up to the next name apply to that robot only: `otherbot: noindex,
nofollow`. Dates and limits (`unavailable_after: <date>`, `max-snippet: 5`) contain colons and commas as well, so they
are read first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

MAX_LENGTH = 16_384
"""Characters that are read of a page's headers, and of its meta elements. Real ones have about a hundred."""

AGENTS = frozenset({"robots", "rove"})
"""The names of the meta elements that apply to rove."""
_ADDRESSED = AGENTS | {"*", "all"}
_RULES = frozenset({"follow", "index", "noai", "nofollow", "noimageai", "noindex", "none"})
_RESTRICTIONS = ("noindex", "nofollow", "none", "unavailable_after", "noai", "noimageai")
"""A value without any of these restricts nothing, so most values need not be read."""

# These expect lower-case text. Quantifiers are bounded or possessive, so that matching takes linear time.
_LIMIT = re.compile(r"max-[a-z-]{1,40}+\s{0,9}+[:=]\s{0,9}+[^\s,;/]*+")
"""A rule with a value. The `none` in `max-image-preview: none` is not the rule `none`."""
_DATE = r"""
    (?: (?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}\.?,?\s{0,9} )?
    (?: (?P<iso_year>\d{4}) -? (?P<iso_month>\d\d) -? (?P<iso_day>\d\d)
      | (?P<day>\d{1,2}) [\s-]{1,4} (?P<month>MONTH)[a-z]{0,6}\.?,? [\s-]{1,4} (?P<year>\d{4}|\d\d)
      | (?P<us_month>MONTH)[a-z]{0,6}\.? \s{1,4} (?P<us_day>\d{1,2}),? \s{1,4} (?P<us_year>\d{4})
    ) (?!\d)
    (?: (?:[\s,]{1,4}|t) (?P<hour>\d{1,2}) :? (?P<minute>\d\d) (?: :? (?P<second>\d\d) (?:[.,]\d{1,9})? )? (?!\d) )?
    (?: \s{0,4} (?P<zone>[+-]\d\d(?::?\d\d)? | (?:ZONE)\b) )?
"""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_US_ZONES = {"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7}
_ZONES = _US_ZONES | {"cet": 1, "cest": 2, "gmt": 0, "utc": 0, "ut": 0, "z": 0}
"""Hours ahead of UTC (RFC 822, section 5.1). An unknown zone counts as UTC (RFC 5322, section 4.3)."""
_UNAVAILABLE = re.compile(
    r"unavailable_after \s{0,9} [:=]? \s{0,9} (?: "
    + _DATE.replace("MONTH", "|".join(_MONTHS)).replace("ZONE", "|".join(_ZONES))
    + r" | [^\s,;]*+ )",
    re.VERBOSE | re.ASCII,
)
_AGENT = re.compile(r"\s*+(\*|\d*[a-z][^\s:/]*+(?: [a-z][^\s:/]*+)*+)(?:/[^\s:]*+)?\s*+:")
"""A robot's name, which may have several words or a version. The rest of an unreadable date does not match."""
_SEPARATORS = re.compile(r"[\s,;:=/]+")
_QUOTES = str.maketrans(dict.fromkeys("\"'`“”„‘’", " "))


@dataclass(frozen=True, slots=True)
class Directives:
    """The restrictions of a page."""

    noindex: bool = False
    nofollow: bool = False
    noai: bool = False
    """No model may be trained on the page."""
    noimageai: bool = False
    """No model may be trained on its images."""

    def __or__(self, other: Directives) -> Directives:
        """Combine two sources: a restriction of either one applies."""
        return Directives(
            self.noindex or other.noindex,
            self.nofollow or other.nofollow,
            self.noai or other.noai,
            self.noimageai or other.noimageai,
        )


def read_headers(values: Iterable[str], *, now: float) -> Directives:
    """Read the values of a page's X-Robots-Tag headers; `now` is in seconds since the epoch.

    >>> read_headers(["otherbot: noindex, rove: nofollow"], now=0.0)
    Directives(noindex=False, nofollow=True, noai=False, noimageai=False)
    """
    words: set[str] = set()
    for value in _restricting(values):
        words.update(_addressed_words(_without_values(value, now)))
    return _directives(words)


def read_metas(contents: Iterable[str], *, now: float) -> Directives:
    """Read the contents of a page's meta elements with a name in AGENTS; `now` is in seconds since the epoch."""
    words: set[str] = set()
    for content in _restricting(contents):
        words.update(_SEPARATORS.split(_without_values(content, now)))
    return _directives(words)


def _directives(words: set[str]) -> Directives:
    none = "none" in words
    return Directives(none or "noindex" in words, none or "nofollow" in words, "noai" in words, "noimageai" in words)


def _restricting(values: Iterable[str]) -> Iterator[str]:
    """Yield the values that may restrict something, in lower case and without quotes, up to MAX_LENGTH in total."""
    left = MAX_LENGTH
    for value in values:
        if left <= 0:
            return
        text = value[:left].lower()
        left -= len(text) + 1
        if any(word in text for word in _RESTRICTIONS):
            yield text.translate(_QUOTES)


def _without_values(text: str, now: float) -> str:
    """Remove rules with values. An `unavailable_after` date in the past becomes `noindex`."""
    if "max-" in text:
        text = _LIMIT.sub("", text)
    if "unavailable_after" in text:
        text = _UNAVAILABLE.sub(lambda date: "noindex" if _is_past(date, now) else "", text)
    return text


def _addressed_words(text: str) -> Iterator[str]:
    """Yield the words of a header value that apply to all robots or to rove."""
    applies = True
    for part in text.split(","):
        agent = _AGENT.match(part) if ":" in part else None
        if agent is not None and _RULES.isdisjoint(agent[1].split()):
            applies = agent[1] in _ADDRESSED
            part = part[agent.end() :]
        if applies and part:
            yield from _SEPARATORS.split(part)


def _is_past(match: re.Match[str], now: float) -> bool:
    """Whether a date is in the past. Without a time it means midnight; an unreadable date is never in the past."""
    month = match["iso_month"] or match["month"] or match["us_month"]
    if month is None:
        return False
    digits = match["iso_year"] or match["year"] or match["us_year"]
    year = int(digits)
    if len(digits) == 2:  # RFC 5322, section 4.3
        year += 2000 if year < 50 else 1900
    try:
        date = datetime(
            year,
            int(month) if month.isdigit() else _MONTHS.index(month) + 1,
            int(match["iso_day"] or match["day"] or match["us_day"]),
            int(match["hour"] or 0),
            int(match["minute"] or 0),
            min(int(match["second"] or 0), 59),  # a leap second
            tzinfo=UTC,
        )
    except ValueError:
        return False
    return date.timestamp() - _offset(match["zone"] or "utc") <= now


def _offset(zone: str) -> float:
    """Return the seconds that a time zone is ahead of UTC."""
    if zone in _ZONES:
        return _ZONES[zone] * 3600.0
    ahead = int(zone[1:3]) * 3600.0 + int(zone[3:].lstrip(":") or 0) * 60.0
    return -ahead if zone[0] == "-" else ahead
