"""The settings of the small web, and two named profiles.

FULL has everything that the real web does to a crawler. CALM never fails and is finite, so that a complete crawl stores
an exactly known set of pages.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from rove.errors import UsageError


class RobotsKind(enum.StrEnum):
    """The robots.txt of a host."""

    NONE = "none"
    """404."""
    EMPTY = "empty"
    OPEN = "open"
    """Rules that allow everything."""
    PRIVATE = "private"
    """/private/ is closed to all robots."""
    CLOSED = "closed"
    """Everything is closed to all robots."""
    STRICTER = "stricter"
    """The group for rove closes more than the group for all robots."""
    SHUT_OUT = "shut-out"
    """Everything is closed to rove and open to others."""
    LAXER = "laxer"
    """Everything is closed to all robots except rove."""
    WILDCARD = "wildcard"
    """A pattern closes paths with a query."""
    DELAYED = "delayed"
    """A Crawl-delay."""
    MESSY = "messy"
    """Byte order mark, CRLF, comments, odd spelling; /private/ is closed."""
    MOVED = "moved"
    """A redirect to another path of the host; /private/ is closed there."""
    HTML = "html"
    """A "not found" page with status 200, so there are no rules."""
    BROKEN = "broken"
    """500, so nothing may be fetched (RFC 9309, section 2.3.1.4)."""


class EntryKind(enum.StrEnum):
    """How the server responds to a request for an entry."""

    PAGE = "page"
    TEXT = "text"
    EMPTY = "empty"
    NOINDEX = "noindex"
    """A noindex page. Its link to one more page is followed."""
    NOFOLLOW = "nofollow"
    """A nofollow page, with the only link to one more page."""
    PDF = "pdf"
    IMAGE = "image"
    JSON = "json"
    CHAIN = "chain"
    """One to three redirects, then a page."""
    LONG_CHAIN = "long-chain"
    """Five redirects, then a page."""
    LOOP = "loop"
    """Endless redirects."""
    INWARD = "inward"
    """A redirect into /private/."""
    AWAY = "away"
    """A redirect to another host."""
    TO_WWW = "to-www"
    """The home page of a bare domain whose pages are at www. Set by SiteShape.AT_WWW."""
    MISSING = "missing"
    GONE = "gone"
    ERROR = "error"
    UNAVAILABLE = "unavailable"
    FLAKY = "flaky"
    """503 for the first request, a page afterwards."""
    SLOW = "slow"
    STALLED = "stalled"
    """The response never comes."""
    CUT = "cut"
    """The connection is closed in the middle of the page."""


class SiteShape(enum.StrEnum):
    """Which hosts a domain has. They share the delay of their domain."""

    BARE = "bare"
    BARE_AND_BLOG = "bare-and-blog"
    BARE_AND_WWW = "bare-and-www"
    AT_WWW = "at-www"
    """The home page of the bare domain redirects to www, which has the pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The settings. Ranges include both ends, shares are from 0 to 1, weights may have any sum."""

    pages_per_host: tuple[int, int]
    """Number of entries per host, of any kind."""
    page_bytes: tuple[int, int]
    """Minimum length of a page before it is encoded."""
    links_per_page: tuple[int, int]
    offsite_share: float
    """Share of links that lead to another domain."""
    entries: Mapping[EntryKind, float]
    robots: Mapping[RobotsKind, float]
    shapes: Mapping[SiteShape, float]
    crawl_delay: float
    """Seconds of Crawl-delay in the DELAYED robots.txt."""
    restricted: float
    """Share of entries under /private/ or /archive/, which some robots.txt files close."""
    odd_links: float
    """Share of links with an unusual spelling of their URL."""
    odd_pages: float
    """Share of pages with a base href; with a meta refresh; with links that do not lead to a web page."""
    chunked: float
    encoded: float
    """Share of pages sent with gzip, deflate or br, if the client accepts it."""
    foreign_charsets: float
    """Share of pages in windows-1251, shift_jis or latin-1, if one of these fits their language."""
    slow_seconds: tuple[float, float]
    latency: tuple[float, float]
    """Seconds before every response, robots.txt included."""


P = TypeVar("P", bound=Profile)

CALM = Profile(
    pages_per_host=(3, 12),
    page_bytes=(300, 4_000),
    links_per_page=(8, 16),
    offsite_share=0.3,
    entries={
        EntryKind.PAGE: 40,
        EntryKind.TEXT: 4,
        EntryKind.EMPTY: 2,
        EntryKind.NOINDEX: 6,
        EntryKind.NOFOLLOW: 6,
        EntryKind.PDF: 3,
        EntryKind.IMAGE: 3,
        EntryKind.JSON: 3,
        EntryKind.CHAIN: 8,
        EntryKind.LONG_CHAIN: 3,
        EntryKind.INWARD: 4,
        EntryKind.AWAY: 6,
        EntryKind.MISSING: 5,
        EntryKind.GONE: 2,
    },
    robots={
        RobotsKind.NONE: 20,
        RobotsKind.EMPTY: 5,
        RobotsKind.OPEN: 15,
        RobotsKind.PRIVATE: 15,
        RobotsKind.CLOSED: 4,
        RobotsKind.STRICTER: 8,
        RobotsKind.SHUT_OUT: 3,
        RobotsKind.LAXER: 6,
        RobotsKind.WILDCARD: 4,
        RobotsKind.DELAYED: 5,
        RobotsKind.MESSY: 6,
        RobotsKind.MOVED: 5,
        RobotsKind.HTML: 4,
    },
    shapes={SiteShape.BARE: 70, SiteShape.BARE_AND_BLOG: 10, SiteShape.BARE_AND_WWW: 10, SiteShape.AT_WWW: 10},
    crawl_delay=3.0,
    restricted=0.2,
    odd_links=0.5,
    odd_pages=0.2,
    chunked=0.2,
    encoded=0.4,
    foreign_charsets=0.5,
    slow_seconds=(0.2, 2.0),
    latency=(0.0, 0.0),
)

FULL = replace(
    CALM,
    pages_per_host=(3, 40),
    page_bytes=(300, 20_000),
    links_per_page=(8, 40),
    entries={
        **CALM.entries,
        EntryKind.LOOP: 1,
        EntryKind.ERROR: 2,
        EntryKind.UNAVAILABLE: 1,
        EntryKind.FLAKY: 2,
        EntryKind.SLOW: 6,
        EntryKind.STALLED: 0.2,
        EntryKind.CUT: 1,
    },
    robots={**CALM.robots, RobotsKind.BROKEN: 2},
)

PROFILES = {"full": FULL, "calm": CALM}


def adjusted(profile: P, settings: Iterable[str]) -> P:
    """Apply settings such as `crawl_delay=1`, `pages_per_host=3,12` or `entries.slow=0` to a profile."""
    for setting in settings:
        name, _, text = setting.partition("=")
        try:
            profile = _with_setting(profile, name, text)
        except (KeyError, ValueError) as error:
            raise UsageError(f"{setting!r} is not a setting of the small web: {error}") from error
    return profile


def _with_setting(profile: P, name: str, text: str) -> P:
    name, _, option = name.partition(".")
    if name not in {field.name for field in fields(profile)}:
        raise ValueError(f"there is no setting called {name!r}")
    before = getattr(profile, name)
    value: Any
    if isinstance(before, Mapping):
        kind = type(next(iter(before)))
        value = {**before, kind(option): float(text)}
    elif isinstance(before, tuple):
        number = type(before[0])
        low, _, high = text.partition(",")
        value = (number(low), number(high or low))
    elif isinstance(before, bool):
        value = {"true": True, "false": False}[text]
    else:
        value = float(text)
    return replace(profile, **{name: value})
