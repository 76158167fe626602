"""A small web of cheap pages, assembled from prepared parts.

A page takes a sixth of the time of the demo's pages, so that the server does not slow down the crawler. The links are
real: each page links to the next one of its host, a random selection of the others, and other hosts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property

from rove.demo.draw import Draw, number
from rove.demo.page import PageContent
from rove.demo.profile import EntryKind, Profile, RobotsKind, SiteShape
from rove.demo.prose import LANGUAGES, paragraphs
from rove.demo.response import WebResponse, success
from rove.demo.site import Entry, Host, SitePlan, Spot
from rove.demo.web import SmallWeb

SILENT_SEED = 1
NEVER = 3_600.0
"""Seconds until a silent host would answer."""
_VARIANTS = 16
_LINK_BYTES = 55
"""Average length of a link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainProfile(Profile):
    """The settings of a plain web. Of those for pages and links, only numbers, lengths and `offsite_share` apply."""

    secure: bool = False
    """Links are https. The server then needs a certificate."""
    linked_hosts: float = 0
    """If not 0, all links lead to the first `linked_hosts` hosts."""
    silent: float = 0
    """Share of hosts that accept connections and never answer."""
    latency_later: tuple[float, float] = (0.0, 0.0)
    """The latency after `change_after` seconds."""
    change_after: float = 0
    """Seconds after the first request at which the latency changes; 0: never."""
    real: bool = False
    """The pages are like those of the real web."""
    templates: float = 200
    """The number of different real pages."""
    hostile: float = 0
    """Share of hosts whose pages harm a crawler, in a real web."""
    hostile_scale: float = 1
    """How large the hostile pages are; 1: up to 5 MiB."""


BENCH = PlainProfile(
    pages_per_host=(200, 200),
    page_bytes=(40_000, 40_000),
    links_per_page=(60, 60),
    offsite_share=0.2,
    entries={EntryKind.PAGE: 1},
    robots={RobotsKind.PRIVATE: 1},
    shapes={SiteShape.BARE: 1},
    crawl_delay=0.0,
    restricted=0.0,
    odd_links=0.0,
    odd_pages=0.0,
    chunked=0.0,
    encoded=0.0,
    foreign_charsets=0.0,
    slow_seconds=(0.0, 0.0),
    latency=(0.0, 0.0),
)


class PlainWeb(SmallWeb):
    """A small web in which all entries are similar open pages in UTF-8."""

    def __init__(self, seed: int, hosts: int, profile: PlainProfile) -> None:
        super().__init__(seed, hosts, profile)
        self.plan = _PlainPlan(seed, hosts, profile)
        self._pages = _PlainPages(self.plan, profile)
        self._later = PlainWeb(seed, hosts, _later(profile)) if profile.change_after else None
        self._silent = profile.silent
        self._change_after = profile.change_after
        self._first_request: float | None = None

    def path(self, position: int) -> str:
        """Return the path of an entry, which is the same on all hosts."""
        return self.plan.entry(self.plan.bare_host(0), position).path

    def is_hostile(self, host: str) -> bool:
        """Tell whether all pages of a host are hostile."""
        return False

    def prepare(self) -> None:
        """Make what all pages share, before the first request."""

    def latency(self, host: str, target: str) -> float:
        """Return the seconds until the answer to a request begins."""
        if self._silent and number(SILENT_SEED, host) < self._silent * (1 << 64):
            return NEVER
        if self._later is not None:
            now = time.monotonic()
            if self._first_request is None:
                self._first_request = now
            if now - self._first_request >= self._change_after:
                return self._later.latency(host, target)
        return super().latency(host, target)

    def page(self, host: Host, spot: Spot, draw: Draw, codings: tuple[str, ...]) -> WebResponse:
        return success(self._pages.page(host, spot.entry.number))


def _later(profile: PlainProfile) -> PlainProfile:
    return replace(profile, latency=profile.latency_later, change_after=0)


class _PlainPlan(SitePlan):
    def entry(self, host: Host, position: int) -> Entry:
        return Entry(position, EntryKind.PAGE, f"/page-{position}" if position else "/", "", 0)


class _PlainPages:
    def __init__(self, plan: SitePlan, profile: PlainProfile) -> None:
        self._plan = plan
        self._profile = profile
        self._scheme = "https" if profile.secure else "http"

    def page(self, host: Host, position: int) -> PageContent:
        """Make the page of an entry."""
        draw = Draw(self._plan.seed, f"{host.name} {position}")
        listed = self._links_elsewhere(draw) if self._profile.linked_hosts else self._links(host, position, draw)
        heading = f"{host.name} {position}"
        parts = (
            b"<!DOCTYPE html>\n<html>\n<head>\n<title>%b</title>\n</head>\n" % heading.encode(),
            b"<body>\n<h1>%b</h1>\n<ul>\n" % heading.encode(),
            *listed,
            b"</ul>\n",
            draw.pick(self._texts),
            b"</body>\n</html>\n",
        )
        return PageContent("text/html; charset=utf-8", b"".join(parts))

    def _links(self, host: Host, position: int, draw: Draw) -> list[bytes]:
        """Link to the next page of the host, a selection of the others, and home pages of other domains."""
        links = draw.between(self._profile.links_per_page)
        offsite = round(links * self._profile.offsite_share)
        others = max(0, min(links - offsite - 1, host.entries))
        stride = 1 + draw.below(max(1, host.entries // max(1, others)))
        start = draw.below(max(1, host.entries - stride * others + 1))
        elsewhere = "".join(
            f'<li><a href="{self._scheme}://{self._plan.domain_name(draw.below(self._plan.hosts))}/">see</a>\n'
            for _ in range(offsite)
        )
        return [
            self._anchors[(position + 1) % host.entries],
            *self._anchors[start : min(start + stride * others, host.entries) : stride],
            elsewhere.encode(),
        ]

    def _links_elsewhere(self, draw: Draw) -> list[bytes]:
        """Link only to pages of the first `linked_hosts` hosts."""
        linked = min(int(self._profile.linked_hosts), self._plan.hosts)
        entries = self._profile.pages_per_host[0]
        name = self._plan.domain_name
        links = (
            f'<li><a href="{self._scheme}://{name(draw.below(linked))}/page-{1 + draw.below(entries - 1)}">see</a>\n'
            for _ in range(draw.between(self._profile.links_per_page))
        )
        return ["".join(links).encode()]

    @cached_property
    def _anchors(self) -> list[bytes]:
        """Links to all entries; the paths are the same on all hosts."""
        most = self._profile.pages_per_host[1]
        paths = ["/", *(f"/page-{position}" for position in range(1, most))]
        return [f'<li><a href="{path}">{path}</a>\n'.encode() for path in paths]

    @cached_property
    def _texts(self) -> list[bytes]:
        """Prepared texts in all languages."""
        draw = Draw(self._plan.seed, "plain texts")
        links = _LINK_BYTES * self._profile.links_per_page[1]
        texts = []
        for variant in range(_VARIANTS):
            language = LANGUAGES[variant % len(LANGUAGES)]
            length = draw.between(self._profile.page_bytes) - links
            text = "</p>\n<p>".join(paragraphs(draw, language, length))
            texts.append(f"<p>{text}</p>\n".encode())
        return texts
