"""The knobs of the small web, and the three settings of them that have a name.

FULL holds everything that a real web does to a crawler. CALM never fails and is finite, so that a
crawl to its end comes to an exactly known set of pages. BENCH has large pages that cost little.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from rove.errors import UsageError


class RobotsKind(enum.StrEnum):
    """What a host answers when asked for its robots.txt."""

    NONE = "none"
    """404."""
    EMPTY = "empty"
    OPEN = "open"
    """Rules that allow everything."""
    PRIVATE = "private"
    """/private/ is closed to all."""
    CLOSED = "closed"
    """Everything is closed to all."""
    STRICTER = "stricter"
    """A group of our own closes more than the group for all."""
    SHUT_OUT = "shut-out"
    """A group of our own closes everything, others may come."""
    LAXER = "laxer"
    """Everything is closed to all but us."""
    WILDCARD = "wildcard"
    """Paths with a query are closed, by a pattern."""
    DELAYED = "delayed"
    """A Crawl-delay."""
    MESSY = "messy"
    """Byte order mark, CRLF, comments, odd spelling; /private/ is closed."""
    MOVED = "moved"
    """A redirect to another path of the host; /private/ is closed there."""
    HTML = "html"
    """A page that says 'not found' with status 200: no rules."""
    BROKEN = "broken"
    """500: nothing may be fetched (RFC 9309, 2.3.1.4)."""


class EntryKind(enum.StrEnum):
    """What lies at a place of a host."""

    PAGE = "page"
    TEXT = "text"
    EMPTY = "empty"
    NOINDEX = "noindex"
    """A page not to be stored; its link to one more page counts."""
    NOFOLLOW = "nofollow"
    """A page whose links do not count; one page is linked from nowhere else."""
    PDF = "pdf"
    IMAGE = "image"
    JSON = "json"
    CHAIN = "chain"
    """One to three redirects, then a page."""
    LONG_CHAIN = "long-chain"
    """Five redirects, then a page."""
    LOOP = "loop"
    """Redirects that never end."""
    INWARD = "inward"
    """A redirect into /private/."""
    AWAY = "away"
    """A redirect to another host."""
    TO_WWW = "to-www"
    """The home page of a bare domain whose pages are at www; the site's shape makes it."""
    MISSING = "missing"
    GONE = "gone"
    ERROR = "error"
    UNAVAILABLE = "unavailable"
    FLAKY = "flaky"
    """503 when first asked, a page afterwards."""
    SLOW = "slow"
    STALLED = "stalled"
    """Never answers."""
    CUT = "cut"
    """The connection ends in the middle of the page."""


class SiteShape(enum.StrEnum):
    """Which hosts a domain has; they share its name, and so its politeness."""

    BARE = "bare"
    BARE_AND_BLOG = "bare-and-blog"
    BARE_AND_WWW = "bare-and-www"
    AT_WWW = "at-www"
    """The bare domain's home page redirects to www, where the pages are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The knobs. Spans include both ends, shares go from 0 to 1, weights add up to anything."""

    pages_per_host: tuple[int, int]
    """Places of a host that its links name, whatever lies there."""
    page_bytes: tuple[int, int]
    """Least length of a page's text before it is encoded."""
    links_per_page: tuple[int, int]
    offsite_share: float
    """Links that lead to another domain."""
    entries: Mapping[EntryKind, float]
    robots: Mapping[RobotsKind, float]
    shapes: Mapping[SiteShape, float]
    crawl_delay: float
    """Seconds that the DELAYED robots.txt asks for."""
    plain: bool
    """All places are open UTF-8 pages of one make, for speed; of the knobs for pages, links and
    places only the numbers, lengths and `offsite_share` count then."""
    restricted: float
    """Places that lie under /private/ or /archive/, which some robots.txt files close."""
    odd_links: float
    """Links in an unusual spelling of their URL."""
    odd_pages: float
    """Pages with each of: base href, meta refresh, links that are no web addresses."""
    chunked: float
    encoded: float
    """Pages sent with gzip, deflate or br, where the client takes it."""
    foreign_charsets: float
    """Pages in windows-1251, shift_jis or latin-1, where their language has one of these."""
    slow_seconds: tuple[float, float]
    latency: tuple[float, float]
    """Seconds that every answer takes, of a robots.txt too."""
    secure: bool
    """The links of plain pages are https; the server then needs a certificate."""
    linked_hosts: float
    """All links of plain pages lead to the first so many hosts; 0: to the own host and all others."""


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
    shapes={
        SiteShape.BARE: 70,
        SiteShape.BARE_AND_BLOG: 10,
        SiteShape.BARE_AND_WWW: 10,
        SiteShape.AT_WWW: 10,
    },
    crawl_delay=3.0,
    plain=False,
    restricted=0.2,
    odd_links=0.5,
    odd_pages=0.2,
    chunked=0.2,
    encoded=0.4,
    foreign_charsets=0.5,
    slow_seconds=(0.2, 2.0),
    latency=(0.0, 0.0),
    secure=False,
    linked_hosts=0,
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

BENCH = replace(
    CALM,
    pages_per_host=(200, 200),
    page_bytes=(40_000, 40_000),
    links_per_page=(60, 60),
    offsite_share=0.2,
    robots={RobotsKind.PRIVATE: 1},
    shapes={SiteShape.BARE: 1},
    plain=True,
    odd_links=0.0,
    odd_pages=0.0,
    chunked=0.0,
    encoded=0.0,
    foreign_charsets=0.0,
)

PROFILES: Mapping[str, Profile] = {"full": FULL, "calm": CALM, "bench": BENCH}


def adjusted(profile: Profile, settings: Iterable[str]) -> Profile:
    """A profile with knobs set: `crawl_delay=1`, `pages_per_host=3,12`, `entries.slow=0`."""
    for setting in settings:
        name, _, text = setting.partition("=")
        try:
            profile = _with_knob(profile, name, text)
        except (KeyError, ValueError) as error:
            raise UsageError(f"{setting!r} is no setting of the small web: {error}") from error
    return profile


def _with_knob(profile: Profile, name: str, text: str) -> Profile:
    name, _, option = name.partition(".")
    if name not in {field.name for field in fields(Profile)}:
        raise ValueError(f"there is no knob called {name!r}")
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
