"""What a page asks of robots: may it be kept, may its links be followed.

It says so in meta elements and in X-Robots-Tag headers. Neither has a standard; this follows what the large
engines document. Rules for our own name hold besides those for all robots, and the most restrictive wins. A
header's value may name a robot, whom all rules up to the next name concern: `otherbot: noindex, nofollow`. Dates
and limits (`unavailable_after: <date>`, `max-snippet: 5`) have colons and commas too, so they are read first.

Pure: the time comes in. What is longer than MAX_LENGTH is not read to its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

MAX_LENGTH = 16_384
"""Characters read of all headers of a page, and of all its meta elements; real ones have a hundred."""

AGENTS = frozenset({"robots", "rove"})
"""The names of the meta elements that concern us."""
_ADDRESSED = AGENTS | {"*", "all"}
_RULES = frozenset({"follow", "index", "nofollow", "noindex", "none"})
_TELLING = ("noindex", "nofollow", "none", "unavailable_after")
"""A value without any of these restricts nothing: most need not be read."""

# All of these see lower-case text. Repeats are bounded or possessive: no value costs more than its length.
_LIMIT = re.compile(r"max-[a-z-]{1,40}+\s{0,9}+[:=]\s{0,9}+[^\s,;]*+")
"""A rule with a value; that of `max-image-preview: none` is not the rule `none`."""
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
_ZONES = {
    # Hours ahead of UTC (RFC 822, section 5.1); an unknown zone counts as UTC, as RFC 5322, section 4.3, has it.
    "est": -5,
    "edt": -4,
    "cst": -6,
    "cdt": -5,
    "mst": -7,
    "mdt": -6,
    "pst": -8,
    "pdt": -7,
    "cet": 1,
    "cest": 2,
    "gmt": 0,
    "utc": 0,
    "ut": 0,
    "z": 0,
}
_UNAVAILABLE = re.compile(
    r"unavailable_after \s{0,9} [:=]? \s{0,9} (?: "
    + _DATE.replace("MONTH", "|".join(_MONTHS)).replace("ZONE", "|".join(_ZONES))
    + r" | [^\s,;]*+ )",
    re.VERBOSE | re.ASCII,
)
_AGENT = re.compile(r"\s*+(\*|\d*[a-z][^\s:/]*+(?: [a-z][^\s:/]*+)*+)(?:/[^\s:]*+)?\s*+:")
"""A robot's name, perhaps of several words or with a version; the rest of an unreadable date is none."""
_SEPARATORS = re.compile(r"[\s,;:=]+")


@dataclass(frozen=True, slots=True)
class Directives:
    """What is not to be done with a page; `|` joins what two sources say."""

    noindex: bool = False
    nofollow: bool = False

    def __or__(self, other: Directives) -> Directives:
        """The most restrictive of both."""
        return Directives(self.noindex or other.noindex, self.nofollow or other.nofollow)


UNRESTRICTED = Directives()


def read_headers(values: Iterable[str], *, now: float) -> Directives:
    """What the values of a page's X-Robots-Tag headers ask of us, at wall-clock second `now`.

    >>> read_headers(["otherbot: noindex, rove: nofollow"], now=0.0)
    Directives(noindex=False, nofollow=True)
    """
    words: set[str] = set()
    for value in _telling(values):
        words.update(_addressed_words(_without_values(value, now)))
    return _meant(words)


def read_metas(contents: Iterable[str], *, now: float) -> Directives:
    """What the contents of a page's meta elements named as in AGENTS ask of us, at wall-clock second `now`."""
    words: set[str] = set()
    for content in _telling(contents):
        words.update(_SEPARATORS.split(_without_values(content, now)))
    return _meant(words)


def _meant(words: set[str]) -> Directives:
    if not words:
        return UNRESTRICTED
    none = "none" in words
    return Directives(none or "noindex" in words, none or "nofollow" in words)


def _telling(values: Iterable[str]) -> Iterator[str]:
    """The values that may restrict something, in lower case, up to MAX_LENGTH in all."""
    left = MAX_LENGTH
    for value in values:
        if left <= 0:
            return
        text = value[:left].lower()
        left -= len(text) + 1
        if any(word in text for word in _TELLING):
            yield text


def _without_values(text: str, now: float) -> str:
    """The same rules without those that have values: a date that is over is a plain noindex."""
    if "max-" in text:
        text = _LIMIT.sub("", text)
    if "unavailable_after" in text:
        text = _UNAVAILABLE.sub(lambda found: "noindex" if _is_over(found, now) else "", text)
    return text


def _addressed_words(text: str) -> Iterator[str]:
    """The words of a header's value that are said to all robots or to us."""
    concerns_us = True
    for part in text.split(","):
        agent = _AGENT.match(part) if ":" in part else None
        if agent is not None and _RULES.isdisjoint(agent[1].split()):
            concerns_us = agent[1] in _ADDRESSED
            part = part[agent.end() :]
        if concerns_us and part:
            yield from _SEPARATORS.split(part)


def _is_over(found: re.Match[str], now: float) -> bool:
    """Whether a date has been reached; one that cannot be read never is, one without time is its first second."""
    month = found["iso_month"] or found["month"] or found["us_month"]
    if month is None:
        return False
    digits = found["iso_year"] or found["year"] or found["us_year"]
    year = int(digits)
    if len(digits) == 2:  # RFC 5322, section 4.3
        year += 2000 if year < 50 else 1900
    try:
        date = datetime(
            year,
            int(month) if month.isdigit() else _MONTHS.index(month) + 1,
            int(found["iso_day"] or found["day"] or found["us_day"]),
            int(found["hour"] or 0),
            int(found["minute"] or 0),
            min(int(found["second"] or 0), 59),  # a leap second
            tzinfo=UTC,
        )
    except ValueError:
        return False
    return date.timestamp() - _offset(found["zone"] or "utc") <= now


def _offset(zone: str) -> float:
    """Seconds that a zone is ahead of UTC."""
    if zone in _ZONES:
        return _ZONES[zone] * 3600.0
    ahead = int(zone[1:3]) * 3600.0 + int(zone[3:].lstrip(":") or 0) * 60.0
    return -ahead if zone[0] == "-" else ahead
