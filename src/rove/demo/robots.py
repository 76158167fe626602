"""The robots.txt files of the small web."""

from __future__ import annotations

from dataclasses import dataclass

from rove.demo.profile import RobotsKind

ROBOTS_PATH = "/robots.txt"
MOVED_PATH = "/robots2.txt"
ROBOTS_PATHS = frozenset({ROBOTS_PATH, MOVED_PATH})
"""Paths that serve only robots.txt; no page links to them."""

_PRIVATE_FOR_ALL = "User-agent: *\nDisallow: /private/\n"
_TEXTS = {
    RobotsKind.EMPTY: "",
    RobotsKind.OPEN: "User-agent: *\nDisallow:\n",
    RobotsKind.PRIVATE: _PRIVATE_FOR_ALL,
    RobotsKind.CLOSED: "User-agent: *\nDisallow: /\n",
    RobotsKind.STRICTER: (
        "User-agent: *\nDisallow: /private/\n\n"
        "User-agent: rove\nDisallow: /private/\nDisallow: /archive/\nAllow: /archive/open/\n"
    ),
    RobotsKind.SHUT_OUT: "User-agent: *\nDisallow:\n\nUser-agent: rove\nDisallow: /\n",
    RobotsKind.LAXER: "User-agent: rove\nDisallow: /private/\n\nUser-agent: *\nDisallow: /\n",
    RobotsKind.WILDCARD: "User-agent: *\nDisallow: /*?\nDisallow: /private/\n",
    RobotsKind.DELAYED: (
        "User-agent: otherbot\nCrawl-delay: 600\nDisallow: /\n\n"
        "User-agent: *\nCrawl-delay: {crawl_delay:g}\nDisallow: /private/\n"
    ),
    RobotsKind.MESSY: (
        "\ufeffuser-AGENT:*   # everyone\r\n"
        "# Disallow: /notes/\r\n"
        "\r\n"
        "  DISALLOW :  /private/   # keep out\r\n"
        "Noindex: /guides/\r\n"
        "Sitemap: /sitemap.xml\r\n"
    ),
    RobotsKind.MOVED: _PRIVATE_FOR_ALL,
    RobotsKind.HTML: (
        "<!DOCTYPE html><html><head><title>Not found</title></head>"
        "<body><h1>Nothing here</h1><p>The page you want is somewhere else.</p></body></html>\n"
    ),
}


@dataclass(frozen=True, slots=True)
class RobotsPlan:
    """The robots.txt of one host."""

    kind: RobotsKind
    crawl_delay: float
    """The Crawl-delay for rove in seconds; 0 if there is none."""

    def text(self) -> bytes:
        """Return the content of the file, for the kinds that have one."""
        return _TEXTS[self.kind].format(crawl_delay=self.crawl_delay).encode()
