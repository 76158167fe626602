"""Bodies that the small web serves: HTML in several charsets, and other media types."""

from __future__ import annotations

import enum
import struct
import zlib
from dataclasses import dataclass
from html import escape

from rove.demo.draw import Draw, number
from rove.demo.links import NOT_THE_WEB, Viewpoint, anchor, targets
from rove.demo.profile import EntryKind, Profile
from rove.demo.prose import LANGUAGES, LEGACY_CHARSETS, Language, paragraphs, title
from rove.demo.site import Host, SitePlan, Spot

_META_ROBOTS = {EntryKind.NOINDEX: "noindex", EntryKind.NOFOLLOW: "NoFollow"}


class Declared(enum.Enum):
    """Where a page declares its charset."""

    HEADER = enum.auto()
    META = enum.auto()
    NOWHERE = enum.auto()


_DECLARED = tuple(Declared)


@dataclass(frozen=True, slots=True)
class PageContent:
    """A body and its content type."""

    content_type: str
    body: bytes


def html_page(plan: SitePlan, profile: Profile, host: Host, spot: Spot, draw: Draw) -> PageContent:
    """Make the HTML page of an address."""
    language = _language(plan, host)
    charset, declared = _charset(profile, language, draw)
    base_path = "/deep/down/here" if draw.chance(profile.odd_pages) else ""
    utf8 = charset == "utf-8" and declared is not Declared.NOWHERE
    view = Viewpoint(host.name, base_path or spot.path, utf8)
    anchors = [
        anchor(target, view, draw.below(1 << 16) if draw.chance(profile.odd_links) else None)
        for target in targets(plan, profile, host, spot, draw)
    ]
    head = _head_lines(profile, host, spot, draw)
    if declared is Declared.META:
        head.insert(0, f'<meta charset="{charset}">')
    if base_path:
        head.append(f'<base href="http://{host.name}{base_path}">')
    if draw.chance(profile.odd_pages):
        anchors.extend(NOT_THE_WEB)
    heading = title(draw, language)
    links = "</li>\n<li>".join(anchors)
    length = draw.between(profile.page_bytes) - len(links)
    prose = "</p>\n<p>".join([escape(host.name + spot.path), *paragraphs(draw, language, length)])
    html = (
        f'<!DOCTYPE html>\n<html lang="{language}">\n<head>\n'
        + "\n".join([*head, f"<title>{heading} - {spot.entry.word}</title>"])
        + f"\n</head>\n<body>\n<h1>{heading}</h1>\n<p>{prose}</p>\n<ul>\n<li>{links}</li>\n</ul>\n"
        + "</body>\n</html>\n"
    )
    suffix = f"; charset={charset}" if declared is Declared.HEADER else ""
    return PageContent(f"text/html{suffix}", html.encode(charset))


def error_page(status: int) -> PageContent:
    """Make an error page."""
    html = f'<!DOCTYPE html><title>{status}</title><h1>{status}</h1><p><a href="/">Home</a></p>\n'
    return PageContent("text/html; charset=utf-8", html.encode())


def text_page(plan: SitePlan, host: Host, spot: Spot, draw: Draw) -> PageContent:
    """Make a plain text page. The URL in it is not a link."""
    language = _language(plan, host)
    lines = [title(draw, language), f"http://{host.name}{spot.path}", *paragraphs(draw, language, 500)]
    return PageContent("text/plain; charset=utf-8", "\n\n".join(lines).encode())


def pdf(spot: Spot) -> PageContent:
    """Make enough of a PDF file to be recognized as one."""
    body = f"%PDF-1.4\n% {spot.path}\n1 0 obj\n<< /Type /Catalog >>\nendobj\n%%EOF\n"
    return PageContent("application/pdf", body.encode())


def image(spot: Spot) -> PageContent:
    """Make a PNG image of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixel = zlib.compress(bytes([0, spot.entry.number % 256]))
    body = chunk(b"IHDR", header) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")
    return PageContent("image/png", b"\x89PNG\r\n\x1a\n" + body)


def json_document(host: Host, spot: Spot) -> PageContent:
    """Make a small JSON document."""
    return PageContent("application/json", f'{{"host": "{host.name}", "at": "{spot.path}"}}\n'.encode())


def _head_lines(profile: Profile, host: Host, spot: Spot, draw: Draw) -> list[str]:
    lines = []
    directive = _META_ROBOTS.get(spot.entry.kind) if spot.step == 0 else None
    if directive:
        lines.append(f'<meta name="robots" content="{directive}">')
    if draw.chance(profile.odd_pages):
        lines.append(f'<link rel="canonical" href="{escape(f"http://{host.name}{spot.path}")}">')
    if draw.chance(profile.odd_pages):
        # To the home page, so that it makes no difference whether a crawler follows it.
        lines.append('<meta http-equiv="refresh" content="300; url=/">')
    return lines


def _language(plan: SitePlan, host: Host) -> Language:
    return LANGUAGES[number(plan.seed, f"language of {host.name}") % len(LANGUAGES)]


def _charset(profile: Profile, language: Language, draw: Draw) -> tuple[str, Declared]:
    legacy = LEGACY_CHARSETS.get(language) if draw.chance(profile.foreign_charsets) else None
    unusual = legacy is not None or draw.chance(profile.odd_pages)
    return legacy or "utf-8", draw.pick(_DECLARED) if unusual else Declared.HEADER
