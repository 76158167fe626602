"""Recognises crawler traps, sites that generate pages without end, from the text of a URL. Pure.

Each sign of a trap has a penalty, which the frontier adds to the URL's depth, so that suspicious URLs wait behind
others. A URL whose penalties add up to `REFUSED` is not accepted. The tables below hold all numbers and their reasons.

>>> penalty("https://a.test/2019/05/12/title", 2026), penalty("https://a.test/a/b/a/b/a/b/a/b", 2026) >= REFUSED
(0, True)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

REFUSED = 20
"""Such a URL would wait behind all URLs that are twenty links away, which is as deep as Heritrix goes."""

FIRST_YEAR = 1990
"""There was no web before; calendar pages of earlier years are generated."""
YEARS_AHEAD = 2
"""Real calendars plan for the next two years."""


class Sign(NamedTuple):
    """A reason to take a URL for part of a trap."""

    what: str
    penalty: int


class _Scale(NamedTuple):
    """Maps a number to the penalty of the highest bound that it reaches."""

    what: str
    steps: tuple[tuple[int, int], ...]

    def signs(self, number: int) -> list[Sign]:
        if number < self.steps[0][0]:
            return []
        reached = [cost for bound, cost in self.steps if number >= bound]
        return [Sign(self.what.format(f"{number:,}"), reached[-1])]


# Heritrix refuses 3 equal segments in a row, Nutch 3 anywhere, Zeno 4 anywhere. But good pages with 3 exist.
REPEATED_SEGMENT = _Scale("a path segment that occurs {} times", ((3, 4), (4, 12), (5, REFUSED)))
# A relative link that appends to its own path repeats a group of segments: /a/b/a/b/a/b.
REPEATED_SEGMENTS = _Scale("{} path segments that each occur 3 times", ((2, REFUSED),))
# Heritrix refuses more than 20. Few ordinary pages have more than 10.
DEEP_PATH = _Scale("a path of {} segments", ((12, 2), (15, 6), (21, REFUSED)))
# A headline takes 200 characters, percent-encoded in another script 600. Canonical URLs end at 2,000.
LONG_URL = _Scale("{} characters", ((700, 2), (1_000, 5), (1_500, 10)))
# Ordinary pages have one to six. More are the fields of a form, which can be combined without end.
MANY_PARAMETERS = _Scale("{} parameters", ((9, 2), (13, 6), (20, 12), (30, REFUSED)))
# Multiple choice repeats a name, but so does a link that appends to its own query.
REPEATED_NAME = _Scale("a parameter that occurs {} times", ((4, 3), (8, 8), (15, REFUSED)))
# The same name and value twice is a slip; three times is a query that grows. Zeno refuses 4.
REPEATED_PARAMETER = _Scale("a parameter with the same value {} times", ((2, 3), (3, REFUSED)))
# A URL in a query is the way back from a login, or a page to share. A URL nested in that is a login page that
# links to itself.
NESTED = _Scale("a URL in the query, nested {} deep", ((1, 4), (2, 10), (3, REFUSED)))
# A large forum has a few thousand pages.
PAGE_NUMBER = _Scale("page number {}", ((1_000, 2), (10_000, 6), (100_000, 12), (1_000_000, REFUSED)))
# The same, counted in items. It may also be a timestamp, so it never refuses.
OFFSET = _Scale("a list offset of {}", ((20_000, 2), (200_000, 6), (2_000_000, 12)))
# Sorting and filtering shows the same items again. One parameter is cheap: it may be the only way to the list.
FACETS = _Scale("parameters that sort or filter: {}", ((1, 1), (2, 3), (3, 6), (4, 10), (6, REFUSED)))
# Forms, logins, carts, print views, old versions.
ACTIONS = _Scale("parameters that trigger an action: {}", ((1, 5), (2, 10)))
# Calendars never end. But pages about history are full of dates too, so the past never refuses.
CALENDAR_AHEAD = _Scale("a calendar {} years too far ahead", ((1, 6), (8, REFUSED)))
CALENDAR_BEHIND = _Scale("a calendar {} years too far back", ((1, 4), (20, 8), (100, 12)))

_FACETS = frozenset(
    {
        *("sort", "sort_by", "sortby", "sort-by", "sortorder", "sort_order", "sortdir", "sort_dir"),
        *("order", "order_by", "orderby", "order-by", "filter", "filters", "limit", "price"),
        *("per_page", "perpage", "per-page", "pagesize", "page_size", "items_per_page"),
        *("min_price", "max_price", "pricerange", "display_mode", "viewmode"),
        *("product_list_order", "product_list_dir", "product_list_mode", "product_list_limit"),
    }
)
_FACET_STARTS = ("filter_", "filter-", "filter.", "filter[", "f[", "facet[", "facets[")
_ACTIONS = frozenset(
    {
        *("replytocom", "unapproved", "moderation-hash", "like_comment", "share"),
        *("add-to-cart", "add_to_cart", "add_to_wishlist", "remove_item"),
        *("redirect_to", "return_to", "returnto", "returnurl", "return_url", "back_url", "backurl"),
        *("print", "printable", "oldid", "diff", "undo", "veaction"),
    }
)
_ACTION_VALUES = {
    "action": "edit history info raw purge login logout register submit delete print lostpassword",
    "do": "login logout register edit print diff revisions backlink recent",
    "mode": "login register reply quote print posting",
    "view": "print grid list table",
    "dir": "asc desc",
    "format": "print",
    "output": "print",
    "type": "print",
    "tmpl": "print component",
}
_ACTING = frozenset(f"{name}={v}" for name, some in _ACTION_VALUES.items() for v in some.split())
_PAGES = frozenset(
    {
        *("page", "paged", "pg", "pageno", "page_no", "pagenum", "pagenumber", "page_number"),
        *("pageindex", "currentpage", "seite", "pagina"),
    }
)
_OFFSETS = frozenset({"offset", "start", "startindex", "skip", "startat"})
_DATES = frozenset(
    {
        *("year", "yr", "jahr", "annee", "anno", "date", "day", "datum", "month", "week"),
        *("tribe-bar-date", "eventdate", "event_date", "eventdisplay", "cal_date", "calendar"),
    }
)
_NOTED = _FACETS | _ACTIONS | _ACTION_VALUES.keys() | _PAGES | _OFFSETS | _DATES

_OTHER_NUMBER = re.compile(r"[/-][0-9]{4}(?:[0-9]|(?<!199[0-9])(?<!20[0-2][0-9]))")
"""A number of four or more digits that is not a year from 1990 to 2029; only such paths are examined further."""
_PAGE_IN_PATH = re.compile(r"/(?:page|seite|pagina)[/-]([0-9]{4,})(?=[/.]|$)")
_CALENDARS = ("calend", "kalend", "agenda", "schedule", "termine", "veranstalt", "/event")
_DATE_IN_PATH = re.compile(
    # a calendar by name: /calendar/2087
    r"(?:calendar|kalender|calendrier|calendario)\w{0,20}[/-]([12][0-9]{3})(?![0-9])"
    # a year and month in a path with a calendar word: /events/2087-05
    r"|/([12][0-9]{3})(?:-(?:0[1-9]|1[0-2])|/(?:0?[1-9]|1[0-2]))(?![0-9])"
)
_DATE_IN_VALUE = re.compile(r"([12][0-9]{3})(?:[-/.]|[01][0-9]|$)")
_URL_WITHIN = re.compile(r"(?::|%3a)(?:/|%2f){2}|=(?:/|%2f)[^&=%]*+(?:%(?!3[fd])[^&=%]*+)*+%3[fd]")
_QUERY_WITHIN = re.compile(r"%((?:25)++)(?:3[df]|3a%(?:25)++2f)")

_ORIGIN_PARTS = 3
"""Parts of a URL, split at its slashes, that come before the path."""
_LEAST_ORIGIN = len("http://a")
_FEW_PARTS = _ORIGIN_PARTS + 3
_MANY_PARTS = _ORIGIN_PARTS + DEEP_PATH.steps[0][0]
_LONG = LONG_URL.steps[0][0]
_DIGITS_MAY_REPEAT = 4
"""Dates and map tiles repeat numbers: /11/11/11."""
_LONGEST_NUMBER = 9


def penalty(text: str, year: int) -> int:
    """Return how much a canonical URL looks like part of a trap, 0 for most; `year` is the current one."""
    if "?" not in text and len(text) < _LONG and not _OTHER_NUMBER.search(text, _LEAST_ORIGIN):
        # The quick way for most links: only segments could be signs.
        if text.count("/") < _FEW_PARTS - 1:
            return 0
        parts = text.split("/")
        if len(parts) < _MANY_PARTS and len(parts) - len(set(parts)) <= 1:
            return 0
    trap_signs = signs(text, year)
    return sum(sign.penalty for sign in trap_signs) if trap_signs else 0


def signs(text: str, year: int) -> list[Sign]:
    """Return the signs of a trap in a canonical URL. A cheap test precedes each expensive one."""
    path, mark, query = text.partition("?")
    parts = path.split("/")
    result: list[Sign] = []
    # A segment that occurs three times makes the set smaller by two.
    if len(parts) >= _FEW_PARTS and (len(parts) - len(set(parts)) > 1 or len(parts) >= _MANY_PARTS):
        result += _of_segments(parts[_ORIGIN_PARTS:])
    if _OTHER_NUMBER.search(path, _LEAST_ORIGIN):
        result += _of_numbers(path.lower(), year)
    if mark:
        result += _of_query(query, year)
    if len(text) >= _LONG:
        result += LONG_URL.signs(len(text))
    return result


def _of_segments(segments: Sequence[str]) -> list[Sign]:
    if not segments[-1]:
        segments = segments[:-1]
    counts = [
        count for segment, count in Counter(segments).items() if count > _DIGITS_MAY_REPEAT or not segment.isdigit()
    ]
    return [
        *REPEATED_SEGMENT.signs(max(counts, default=0)),
        *REPEATED_SEGMENTS.signs(sum(count >= 3 for count in counts)),
        *DEEP_PATH.signs(len(segments)),
    ]


def _of_numbers(path: str, year: int) -> list[Sign]:
    result: list[Sign] = []
    if "/page" in path or "/seite" in path or "/pagina" in path:
        result += PAGE_NUMBER.signs(max(map(_number, _PAGE_IN_PATH.findall(path)), default=0))
    if any(word in path for word in _CALENDARS):
        result += _of_years([int(one or two) for one, two in _DATE_IN_PATH.findall(path)], year)
    return result


def _of_query(query: str, year: int) -> list[Sign]:
    result: list[Sign] = []
    query = query.lower()
    parameters = query.split("&")
    names = [parameter.partition("=")[0] for parameter in parameters]
    if not _NOTED.isdisjoint(names) or "[" in query or "filter" in query:
        result += _of_noted(parameters, names, year)
    if len(set(parameters)) < len(parameters):
        result += REPEATED_PARAMETER.signs(_most_often(parameters))
    if len(parameters) >= REPEATED_NAME.steps[0][0]:
        result += REPEATED_NAME.signs(_most_often(names))
        result += MANY_PARAMETERS.signs(len(parameters))
    if "%" in query or "/" in query:
        result += NESTED.signs(_nested(query))
    return result


def _of_noted(parameters: Sequence[str], names: Sequence[str], year: int) -> list[Sign]:
    """Return the signs in parameters whose names mean the same on many sites."""
    facets = actions = page = offset = 0
    years: list[int] = []
    for name, parameter in zip(names, parameters, strict=True):
        if name in _FACETS or name.startswith(_FACET_STARTS):
            facets += 1
        elif name in _ACTIONS or parameter in _ACTING:
            actions += 1
        elif name in _PAGES:
            page = max(page, _number(parameter[len(name) + 1 :]))
        elif name in _OFFSETS:
            offset = max(offset, _number(parameter[len(name) + 1 :]))
        elif name in _DATES and (date := _DATE_IN_VALUE.match(parameter, len(name) + 1)):
            years.append(int(date[1]))
    return [
        *FACETS.signs(facets),
        *ACTIONS.signs(actions),
        *PAGE_NUMBER.signs(page),
        *OFFSET.signs(offset),
        *_of_years(years, year),
    ]


def _of_years(years: Sequence[int], year: int) -> list[Sign]:
    if not years:
        return []
    return [*CALENDAR_AHEAD.signs(max(years) - (year + YEARS_AHEAD)), *CALENDAR_BEHIND.signs(FIRST_YEAR - min(years))]


def _nested(query: str) -> int:
    """Return how deep URLs are nested in a query: 0 if it contains none."""
    deeper = [len(escapes) // 2 for escapes in _QUERY_WITHIN.findall(query)]
    return 1 + max(deeper) if deeper else int(_URL_WITHIN.search(query) is not None)


def _most_often(texts: Sequence[str]) -> int:
    return max(Counter(filter(None, texts)).values(), default=0)


def _number(text: str) -> int:
    """Return the number that a text of digits stands for, 0 for any other text."""
    return int(text[:_LONGEST_NUMBER]) if text.isascii() and text.isdigit() else 0
