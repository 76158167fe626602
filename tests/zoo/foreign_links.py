"""Sites that fill another site's queue with URLs of their choice, and what that site sees.

A victim has pages of its own, each of which leads to two more. A flood names paths on the victim that do not exist: by
the links of one page, or by the Sitemap lines of many robots.txt files.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.acceptance.site import Reply, Site, site

LINES_PER_HOST = 100
"""Sitemap lines that rove reads from one robots.txt."""


class Flood(enum.StrEnum):
    """How the URLs are named."""

    NONE = "none"
    LINKS = "links"
    SITEMAPS = "sitemaps"


@dataclass(frozen=True, kw_only=True)
class ForeignLinks:
    """An attack on some victims, each by sites of its own."""

    flood: Flood
    victims: int = 1
    urls: int = 2_000
    """URLs that are named in the queue of each victim."""
    pages: int = 1 << 30
    """Pages that a victim has."""

    @property
    def names(self) -> list[str]:
        """The victims."""
        return [f"victim{number}.test" for number in range(self.victims)]

    @property
    def seeds(self) -> list[str]:
        """The front pages of all victims and of all sites of the flood."""
        return [f"http://{host}/" for host in (*self.names, *self._flooding)]

    @property
    def _flooding(self) -> list[str]:
        match self.flood:
            case Flood.NONE:
                hosts = 0
            case Flood.LINKS:
                hosts = 1
            case Flood.SITEMAPS:
                hosts = self.urls // LINES_PER_HOST
        return [f"flood{host}-{victim}.test" for host in range(hosts) for victim in range(self.victims)]

    def answer(self, host: str, path: str) -> Reply:
        """Answer for all hosts."""
        if host.startswith("victim"):
            return self._page_of_victim(path)
        flood, _, victim = host.removeprefix("flood").removesuffix(".test").partition("-")
        target = f"http://victim{victim}.test/junk/{flood}"
        if path == "/robots.txt":
            lines = "".join(f"Sitemap: {target}/{n}.xml\n" for n in range(LINES_PER_HOST))
            return Reply(lines if self.flood is Flood.SITEMAPS else "", type="text/plain")
        links = "".join(f'<a href="{target}/{n}">{n}</a>' for n in range(self.urls))
        return Reply(f"<title>{host}</title>{links if self.flood is Flood.LINKS else ''}")

    def _page_of_victim(self, path: str) -> Reply:
        number = 0 if path == "/" else int(path[1:]) if path[1:].isdecimal() else self.pages
        if number >= self.pages:
            return Reply("Nothing here.", status=404)
        next_pages = [n for n in (2 * number + 1, 2 * number + 2) if n < self.pages]
        links = "".join(f'<a href="/{n}">{n}</a>' for n in next_pages)
        return Reply(f"<title>{number}</title><p>Page {number} of the victim.</p>{links}")


def is_own(path: str) -> bool:
    """Whether a path is a page of a victim, not one that others named."""
    return not path.startswith("/junk/") and path != "/robots.txt"


@contextmanager
def flooding(attack: ForeignLinks) -> Iterator[Site]:
    """Serve the victims and the sites of the flood."""
    with site(attack.answer) as web:
        yield web
