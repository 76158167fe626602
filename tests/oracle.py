"""What a polite crawler called `rove` may fetch from a small web, and which pages it must have stored at the end.

This follows from how the web was made, not from its responses, so it shares no code with a parser.
"""

from __future__ import annotations

from collections.abc import Iterator

from rove.demo.profile import EntryKind, RobotsKind
from rove.demo.robots import ROBOTS_PATH
from rove.demo.site import Entry, Host, Spot
from rove.demo.web import SmallWeb, normal_path

_CLOSED_PREFIXES: dict[RobotsKind, tuple[str, ...]] = {
    RobotsKind.PRIVATE: ("/private/",),
    RobotsKind.CLOSED: ("/",),
    RobotsKind.STRICTER: ("/private/", "/archive/"),
    RobotsKind.SHUT_OUT: ("/",),
    RobotsKind.LAXER: ("/private/",),
    RobotsKind.WILDCARD: ("/private/",),
    RobotsKind.DELAYED: ("/private/",),
    RobotsKind.MESSY: ("/private/",),
    RobotsKind.MOVED: ("/private/",),
    RobotsKind.BROKEN: ("/",),
}


def all_hosts(web: SmallWeb) -> Iterator[str]:
    """Yield every host of a web, including www. and blog. hosts."""
    for index in range(web.hosts):
        bare = web.plan.bare_host(index)
        yield from (label + bare.domain for label in bare.siblings)


def allowed(web: SmallWeb, host: str, path: str) -> bool:
    """Whether the robots.txt of a host allows `rove` to fetch a path, with its query."""
    site = web.plan.host(host)
    return site is None or _allows(site.robots.kind, normal_path(path))


def crawl_delay(web: SmallWeb, host: str) -> float:
    """Return the Crawl-delay of a host for `rove`, or 0."""
    site = web.plan.host(host)
    return 0.0 if site is None else site.robots.crawl_delay


def expected_pages(web: SmallWeb, host: str) -> frozenset[str]:
    """Return the canonical URLs of a host that a complete crawl from all seeds stores.

    These are all texts, empty ones included, that robots.txt allows, that can be reached without nofollow links, that
    are not marked noindex, and that are served in the end.
    """
    site = web.plan.host(host)
    if site is None or not _allows(site.robots.kind, "/"):
        return frozenset()
    spots = [
        spot for position in range(site.entries) for spot in _stored_spots(web, site, web.plan.entry(site, position))
    ]
    return frozenset(f"http://{host}{spot.path}" for spot in spots)


def _allows(kind: RobotsKind, path: str) -> bool:
    """Whether a robots.txt of this kind allows `rove` to fetch a canonical path, with its query."""
    if path == ROBOTS_PATH:
        return True
    if kind is RobotsKind.STRICTER and path.startswith("/archive/open/"):
        return True
    if kind is RobotsKind.WILDCARD and "?" in path:
        return False
    return not path.startswith(_CLOSED_PREFIXES.get(kind, ()))


def _stored_spots(web: SmallWeb, host: Host, entry: Entry) -> Iterator[Spot]:
    """Yield the page that a crawler stores for an entry that it has found."""
    spots = [web.plan.step(entry, step) for step in range(entry.steps + 1)]
    match entry.kind:
        case EntryKind.PAGE | EntryKind.NOFOLLOW | EntryKind.TEXT | EntryKind.EMPTY | EntryKind.SLOW | EntryKind.FLAKY:
            wanted, way = spots[0], spots[:1]
        case EntryKind.NOINDEX | EntryKind.CHAIN | EntryKind.LONG_CHAIN | EntryKind.INWARD:
            wanted, way = spots[-1], spots
        case _:
            return
    if all(_allows(host.robots.kind, spot.path) for spot in way):
        yield wanted
