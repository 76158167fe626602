"""What a URL's text tells of a trap: a site that makes up pages for as long as somebody asks.

Pure. Each sign has a penalty, which the frontier adds to the depth, so that what looks like a trap waits behind what
does not; a URL whose signs come to `REFUSED` is not accepted. The tables below have all numbers and their reasons.

>>> penalty("https://a.test/2019/05/12/title", 2026), penalty("https://a.test/a/b/a/b/a/b/a/b", 2026) >= REFUSED
(0, True)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

REFUSED = 20
"""A URL with this penalty would come after all that is twenty links away: Heritrix goes no further than that either."""

FIRST_YEAR = 1990
"""There was no web before it; what a calendar shows of earlier years was made up by a program."""
YEARS_AHEAD = 2
"""Next year and the one after it are planned for."""


class Sign(NamedTuple):
    """One thing that speaks for a trap."""

    what: str
    penalty: int


class _Scale(NamedTuple):
    """What a number comes to: the penalty of the last bound that it reaches."""

    what: str
    steps: tuple[tuple[int, int], ...]

    def signs(self, number: int) -> list[Sign]:
        if number < self.steps[0][0]:
            return []
        reached = [cost for bound, cost in self.steps if number >= bound]
        return [Sign(self.what.format(f"{number:,}"), reached[-1])]


# Heritrix refuses 3 equal segments in a row, Nutch 3 anywhere, Zeno 4 anywhere; but there are good pages with 3.
REPEATED_SEGMENT = _Scale("a path segment that is there {} times", ((3, 4), (4, 12), (5, REFUSED)))
# A relative link that leads into itself repeats a group of them: /a/b/a/b/a/b.
REPEATED_SEGMENTS = _Scale("{} path segments that are each there 3 times", ((2, REFUSED),))
# Heritrix refuses more than 20. Of ordinary pages few have more than 10.
DEEP_PATH = _Scale("a path of {} segments", ((12, 2), (15, 6), (21, REFUSED)))
# A headline makes 200 characters, an encoded one in another script 600. The canonical form ends at 2,000.
LONG_URL = _Scale("{} characters", ((700, 2), (1_000, 5), (1_500, 10)))
# A page has one to six; more are the fields of a form, all of which can be combined.
MANY_PARAMETERS = _Scale("{} parameters", ((9, 2), (13, 6), (20, 12), (30, REFUSED)))
# A choice of several things repeats a name; a link that adds to the query that it finds does so too.
REPEATED_NAME = _Scale("a parameter that is there {} times", ((4, 3), (8, 8), (15, REFUSED)))
# The very same twice is a slip, three times it grows. Zeno refuses 4.
REPEATED_PARAMETER = _Scale("a parameter with one value, {} times", ((2, 3), (3, REFUSED)))
# A URL inside a query is the way back from a login, or a page to share; inside of that, a login that leads to itself.
NESTED = _Scale("a URL within the query, encoded times: {}", ((1, 4), (2, 10), (3, REFUSED)))
# A large forum has some thousands of pages.
PAGE_NUMBER = _Scale(
    "page number {}", ((1_000, 2), (10_000, 6), (100_000, 12), (1_000_000, REFUSED))
)
# Likewise in items. It may also be a time, so that it never refuses.
OFFSET = _Scale("a list from number {} on", ((20_000, 2), (200_000, 6), (2_000_000, 12)))
# Orders and selections of a list show the same things again. One is cheap: it may be the only way to the list.
FACETS = _Scale(
    "parameters that sort or filter: {}", ((1, 1), (2, 3), (3, 6), (4, 10), (6, REFUSED))
)
# Forms, logins, carts, printed copies, old versions.
ACTIONS = _Scale("parameters that ask for an action: {}", ((1, 5), (2, 10)))
# Calendars go on for ever. Histories are full of dates too, so that the past never refuses.
CALENDAR_AHEAD = _Scale("a calendar {} years too late", ((1, 6), (8, REFUSED)))
CALENDAR_BEHIND = _Scale("a calendar {} years too early", ((1, 4), (20, 8), (100, 12)))

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
"""A number of four digits or more that is no year of these times: it is looked at only where there are four digits."""
_PAGE_IN_PATH = re.compile(r"/(?:page|seite|pagina)[/-]([0-9]{4,})(?=[/.]|$)")
_CALENDARS = ("calend", "kalend", "agenda", "schedule", "termine", "veranstalt", "/event")
_DATE_IN_PATH = re.compile(
    # a path that says that it is a calendar: /calendar/2087
    r"(?:calendar|kalender|calendrier|calendario)\w{0,20}[/-]([12][0-9]{3})(?![0-9])"
    # a path with the like in it, and a month: /events/2087-05
    r"|/([12][0-9]{3})(?:-(?:0[1-9]|1[0-2])|/(?:0?[1-9]|1[0-2]))(?![0-9])"
)
_DATE_IN_VALUE = re.compile(r"([12][0-9]{3})(?:[-/.]|[01][0-9]|$)")
_URL_WITHIN = re.compile(r"(?::|%3a)(?:/|%2f){2}|=(?:/|%2f)[^&=%]*+(?:%(?!3[fd])[^&=%]*+)*+%3[fd]")
_QUERY_WITHIN = re.compile(r"%((?:25)++)(?:3[df]|3a%(?:25)++2f)")

_ORIGIN_PARTS = 3
"""What comes before the path of a URL that is split at its slashes."""
_LEAST_ORIGIN = len("http://a")
_FEW_PARTS = _ORIGIN_PARTS + 3
_MANY_PARTS = _ORIGIN_PARTS + DEEP_PATH.steps[0][0]
_LONG = LONG_URL.steps[0][0]
_DIGITS_MAY_REPEAT = 4
"""Dates and tiles of maps are made of numbers: /11/11/11."""
_LONGEST_NUMBER = 9


def penalty(text: str, year: int) -> int:
    """How much a canonical URL looks like part of a trap: 0 for most; `year` is the one that it is."""
    if (
        "?" not in text
        and text.count("/") < _FEW_PARTS - 1
        and len(text) < _LONG
        and not _OTHER_NUMBER.search(text, _LEAST_ORIGIN)
    ):
        return 0  # nothing for `signs` to find: a page has sixty links
    found = signs(text, year)
    return sum(sign.penalty for sign in found) if found else 0


def signs(text: str, year: int) -> list[Sign]:
    """What in a canonical URL speaks for a trap. Each test has a cheap one before it."""
    path, mark, query = text.partition("?")
    parts = path.split("/")
    found: list[Sign] = []
    # A segment that is there three times makes the set smaller by two.
    if len(parts) >= _FEW_PARTS and (len(parts) - len(set(parts)) > 1 or len(parts) >= _MANY_PARTS):
        found += _of_segments(parts[_ORIGIN_PARTS:])
    if _OTHER_NUMBER.search(path, _LEAST_ORIGIN):
        found += _of_numbers(path.lower(), year)
    if mark:
        found += _of_query(query, year)
    if len(text) >= _LONG:
        found += LONG_URL.signs(len(text))
    return found


def _of_segments(segments: Sequence[str]) -> list[Sign]:
    if not segments[-1]:
        segments = segments[:-1]
    counts = [
        count
        for segment, count in Counter(segments).items()
        if count > _DIGITS_MAY_REPEAT or not segment.isdigit()
    ]
    return [
        *REPEATED_SEGMENT.signs(max(counts, default=0)),
        *REPEATED_SEGMENTS.signs(sum(count >= 3 for count in counts)),
        *DEEP_PATH.signs(len(segments)),
    ]


def _of_numbers(path: str, year: int) -> list[Sign]:
    found: list[Sign] = []
    if "/page" in path or "/seite" in path or "/pagina" in path:
        found += PAGE_NUMBER.signs(max(map(_number, _PAGE_IN_PATH.findall(path)), default=0))
    if any(word in path for word in _CALENDARS):
        found += _of_years([int(one or two) for one, two in _DATE_IN_PATH.findall(path)], year)
    return found


def _of_query(query: str, year: int) -> list[Sign]:
    found: list[Sign] = []
    query = query.lower()
    parameters = query.split("&")
    names = [parameter.partition("=")[0] for parameter in parameters]
    if not _NOTED.isdisjoint(names) or "[" in query or "filter" in query:
        found += _of_noted(parameters, names, year)
    if len(set(parameters)) < len(parameters):
        found += REPEATED_PARAMETER.signs(_most_often(parameters))
    if len(parameters) >= REPEATED_NAME.steps[0][0]:
        found += REPEATED_NAME.signs(_most_often(names))
        found += MANY_PARAMETERS.signs(len(parameters))
    if "%" in query or "/" in query:
        found += NESTED.signs(_nested(query))
    return found


def _of_noted(parameters: Sequence[str], names: Sequence[str], year: int) -> list[Sign]:
    """What parameters say whose names mean the same on many sites."""
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
    return [
        *CALENDAR_AHEAD.signs(max(years) - (year + YEARS_AHEAD)),
        *CALENDAR_BEHIND.signs(FIRST_YEAR - min(years)),
    ]


def _nested(query: str) -> int:
    """How many times over a URL is encoded in a query."""
    deeper = [len(found) // 2 for found in _QUERY_WITHIN.findall(query)]
    return 1 + max(deeper) if deeper else int(_URL_WITHIN.search(query) is not None)


def _most_often(texts: Sequence[str]) -> int:
    return max(Counter(filter(None, texts)).values(), default=0)


def _number(text: str) -> int:
    """A number of digits alone, 0 for all else."""
    return int(text[:_LONGEST_NUMBER]) if text.isascii() and text.isdigit() else 0
