"""Pages that cost the server next to nothing, for benchmarks: put together from parts made once.

A page of 40 KB with 60 links takes 0.25 ms to make as page.py does it, as long as a crawler may
take over it; from ready parts it takes 0.04 ms. The links are real: each page of a host names the
next one, a fresh selection of the others, and other hosts all over the web.
"""

from __future__ import annotations

from functools import cached_property

from rove.demo.draw import Draw
from rove.demo.page import PageContent
from rove.demo.profile import Profile
from rove.demo.prose import LANGUAGES, paragraphs
from rove.demo.site import Host, SitePlan

_VARIANTS = 16
_LINK_BYTES = 55
"""What a link takes on average, for the length of the whole."""


class PlainPages:
    """The pages of a web whose profile says `plain`."""

    def __init__(self, plan: SitePlan, profile: Profile) -> None:
        self._plan = plan
        self._profile = profile
        self._scheme = "https" if profile.secure else "http"

    def page(self, host: Host, place: int) -> PageContent:
        """The page at a place of a host."""
        draw = Draw(self._plan.seed, f"{host.name} {place}")
        listed = (
            self._links_elsewhere(draw)
            if self._profile.linked_hosts
            else self._links(host, place, draw)
        )
        heading = f"{host.name} {place}"
        parts = (
            b"<!DOCTYPE html>\n<html>\n<head>\n<title>%b</title>\n</head>\n" % heading.encode(),
            b"<body>\n<h1>%b</h1>\n<ul>\n" % heading.encode(),
            *listed,
            b"</ul>\n",
            draw.pick(self._texts),
            b"</body>\n</html>\n",
        )
        return PageContent("text/html; charset=utf-8", b"".join(parts))

    def _links(self, host: Host, place: int, draw: Draw) -> list[bytes]:
        """The next page of the host, a selection of the others, and home pages all over the web."""
        links = draw.between(self._profile.links_per_page)
        offsite = round(links * self._profile.offsite_share)
        others = max(0, min(links - offsite - 1, host.places))
        stride = 1 + draw.below(max(1, host.places // max(1, others)))
        start = draw.below(max(1, host.places - stride * others + 1))
        elsewhere = "".join(
            f'<li><a href="{self._scheme}://{self._plan.domain_name(draw.below(self._plan.hosts))}/">see</a>\n'
            for _ in range(offsite)
        )
        return [
            self._anchors[(place + 1) % host.places],
            *self._anchors[start : min(start + stride * others, host.places) : stride],
            elsewhere.encode(),
        ]

    def _links_elsewhere(self, draw: Draw) -> list[bytes]:
        """Pages of the first hosts, of few or of all, and of no others."""
        linked = min(int(self._profile.linked_hosts), self._plan.hosts)
        places = self._profile.pages_per_host[0]
        name = self._plan.domain_name
        links = (
            f'<li><a href="{self._scheme}://{name(draw.below(linked))}/page-{1 + draw.below(places - 1)}">see</a>\n'
            for _ in range(draw.between(self._profile.links_per_page))
        )
        return ["".join(links).encode()]

    @cached_property
    def _anchors(self) -> list[bytes]:
        """The links to all places; their paths are the same on all hosts."""
        most = self._profile.pages_per_host[1]
        paths = ["/", *(f"/page-{place}" for place in range(1, most))]
        return [f'<li><a href="{path}">{path}</a>\n'.encode() for path in paths]

    @cached_property
    def _texts(self) -> list[bytes]:
        """Ready texts in all languages."""
        draw = Draw(self._plan.seed, "plain texts")
        links = _LINK_BYTES * self._profile.links_per_page[1]
        texts = []
        for variant in range(_VARIANTS):
            language = LANGUAGES[variant % len(LANGUAGES)]
            length = draw.between(self._profile.page_bytes) - links
            text = "</p>\n<p>".join(paragraphs(draw, language, length))
            texts.append(f"<p>{text}</p>\n".encode())
        return texts
