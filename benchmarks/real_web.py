"""A small web whose pages are like those of the real web, and hosts whose pages harm a crawler.

The pages come from templates that are compressed in advance. For a page, only the part with its name and its links to
other hosts is made and compressed; the parts together are one gzip stream.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from functools import cached_property

from isal import isal_zlib

from benchmarks import hostile_pages, real_folder, real_pages
from benchmarks.plain_web import PlainProfile, PlainWeb
from benchmarks.real_pages import NAME, Template
from rove.demo.draw import Draw, number
from rove.demo.profile import EntryKind
from rove.demo.response import WebResponse
from rove.demo.site import Entry, Host, SitePlan, Spot

HOSTILE_SEED = 2
_HOSTILE_LINKS, _HOSTILE_TURNS = 100, 10
"""Links of a hostile page to further ones of its host: to different ones from each of this many pages."""
_GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_TRAILER = struct.Struct("<II")
_RAW = -15
"""The window of zlib for a stream without head and trailer."""
_QUERIES = 0.08
"""Share of paths with a query."""


def path_of(seed: int, position: int) -> str:
    """Return the path of an entry, which is the same on all hosts."""
    if not position:
        return "/"
    choice = number(seed, f"path {position}")
    words = [_WORDS[(choice >> shift) % len(_WORDS)] for shift in range(0, 40, 5)]
    name = f"{'-'.join(words[2 : 3 + (choice >> 40) % 6])}-{position}"
    if (choice >> 44) % 100 < 100 * _QUERIES:
        return f"/{words[0]}/view?id={name}"
    return f"/{words[0]}/{words[1]}/{name}{('', '/', '.html', '/')[(choice >> 52) % 4]}"


_WORDS = """
news article category product about archive topics support events people shop travel culture science health sports
business opinion services gallery contact library research community programme resources collection
""".split()  # noqa: SIM905


class RealWeb(PlainWeb):
    """A small web of real-like pages."""

    def __init__(self, seed: int, hosts: int, profile: PlainProfile, folder: str = "") -> None:
        """`folder` has real pages, which are served instead of generated ones."""
        super().__init__(seed, hosts, profile)
        self._paths = [path_of(seed, position) for position in range(profile.pages_per_host[1])]
        self._count = int(profile.templates)
        self._hostile = profile.hostile
        self._hostile_scale = profile.hostile_scale
        self.plan = _RealPlan(seed, hosts, profile, self._paths)
        self._scheme = "https" if profile.secure else "http"
        self._folder = folder

    def is_hostile(self, host: str) -> bool:
        """Tell whether all pages of a host are hostile."""
        return number(HOSTILE_SEED, host) < self._hostile * (1 << 64)

    def page(self, host: Host, spot: Spot, draw: Draw, codings: tuple[str, ...]) -> WebResponse:
        position = spot.entry.number
        templates = self.hostile_templates if self.is_hostile(host.name) else self.templates
        template = templates[number(self.seed, f"template {host.name} {position}") % len(templates)]
        elsewhere = [self.elsewhere(draw) for _ in range(template.source.other_hosts)]
        part = template.source.navigation_of(f"{host.name} {position}", host.name, elsewhere)
        if "gzip" not in codings or not template.is_sent_compressed:
            return _response(template.source.content_type, "", template.source.head + part + template.source.rest)
        return _response(template.source.content_type, "gzip", template.compressed(part))

    def prepare(self) -> None:
        """Make the templates."""
        assert self.templates
        assert self.hostile_templates or not self._hostile

    @cached_property
    def templates(self) -> list[Prepared]:
        """The pages of the web, without their names."""
        paths = self._paths
        if self._folder:
            found = real_folder.templates(self.seed, self._folder, paths, self._scheme, self.host_name, self.hosts)
        else:
            found = real_pages.templates(self.seed, self._count, paths, self._scheme)
        return [Prepared.of(template) for template in found]

    @cached_property
    def hostile_templates(self) -> list[Prepared]:
        """The pages of the hostile hosts, which link to other pages of the web, too."""
        if not self._hostile:
            return []
        return [
            Prepared.of(self._hostile_template(turn, shape.rest), is_sent_compressed=shape.is_compressed)
            for turn, shape in enumerate(hostile_pages.shapes(self._hostile_scale))
        ]

    def _hostile_template(self, turn: int, rest: bytes) -> Template:
        # Each shape links to other pages, so that a crawl of a hostile host does not end.
        paths = self._paths[1 + turn :: _HOSTILE_TURNS][:_HOSTILE_LINKS]
        links = "".join(f'<a href="{path}">{path}</a>\n' for path in paths)
        name = NAME.decode()
        return Template(
            content_type="text/html; charset=utf-8",
            head=b"<!DOCTYPE html>\n",
            navigation=f"<title>{name}</title>\n<h1>{name}</h1>\n{links}".encode(),
            rest=rest,
            other_hosts=0,
            links_elsewhere=0,
        )

    def elsewhere(self, draw: Draw) -> bytes:
        """Return the address of a page of another host, mostly of its home page."""
        place = draw.below(len(self._paths)) if draw.chance(0.4) else 0
        return f"{self.plan.domain_name(draw.below(self.hosts))}{self._paths[place]}".encode()


class _RealPlan(SitePlan):
    def __init__(self, seed: int, hosts: int, profile: PlainProfile, paths: list[str]) -> None:
        super().__init__(seed, hosts, profile)
        self._paths = paths

    def entry(self, host: Host, position: int) -> Entry:
        return Entry(position, EntryKind.PAGE, self._paths[position], "", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A template with its compressed parts."""

    source: Template
    head: bytes
    head_check: int
    rest: bytes
    is_sent_compressed: bool
    """Otherwise it is sent as it is, even to a client that accepts gzip."""

    @classmethod
    def of(cls, source: Template, *, is_sent_compressed: bool = True) -> Prepared:
        """Compress the parts that all pages share, as servers do it."""
        head = _GZIP_HEAD + _deflated(source.head, last=False)
        check = isal_zlib.crc32(source.head)
        rest = _deflated(source.rest, last=True)
        return cls(source=source, head=head, head_check=check, rest=rest, is_sent_compressed=is_sent_compressed)

    def compressed(self, part: bytes) -> bytes:
        """Return a whole page as a gzip stream."""
        source = self.source
        quick = isal_zlib.compressobj(1, isal_zlib.DEFLATED, _RAW)
        between = quick.compress(part) + quick.flush(isal_zlib.Z_FULL_FLUSH)
        check = isal_zlib.crc32(source.rest, isal_zlib.crc32(part, self.head_check))
        size = len(source.head) + len(part) + len(source.rest)
        return b"".join((self.head, between, self.rest, _TRAILER.pack(check, size % (1 << 32))))


def _deflated(part: bytes, *, last: bool) -> bytes:
    """Compress a part, so that another one can follow."""
    compressor = zlib.compressobj(6, zlib.DEFLATED, _RAW)
    return compressor.compress(part) + compressor.flush(zlib.Z_FINISH if last else zlib.Z_FULL_FLUSH)


def _response(content_type: str, coding: str, body: bytes) -> WebResponse:
    headers = [("Content-Type", content_type)]
    if coding:
        headers += [("Content-Encoding", coding), ("Vary", "Accept-Encoding")]
    return WebResponse(status=200, headers=tuple(headers), body=body)
