"""Reads whole sitemaps for tests, which do not care for the slices."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import NamedTuple
from xml.sax.saxutils import escape

from rove.parse.sitemap import IsIndex, _decompressed, entries, read_sitemap
from rove.urls.canonical import CrawlUrl, UrlForm


class Sitemap(NamedTuple):
    """The distinct URLs that a sitemap lists, as written and in its order."""

    urls: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()


def as_written(body: bytes, *, url: str) -> Sitemap:
    found = list(entries(body, url=url))
    texts = tuple(entry for entry in found if isinstance(entry, str))
    is_index = any(isinstance(entry, IsIndex) for entry in found)
    return Sitemap(sitemaps=texts) if is_index else Sitemap(urls=texts)


def permitted(texts: Iterable[str], *, url: str, host: str, form: UrlForm) -> list[CrawlUrl]:
    """Return the URLs that a sitemap at `url` may list, out of these."""
    body = f"<urlset>{''.join(f'<loc>{escape(text)}</loc>' for text in texts)}</urlset>".encode("utf-8", "replace")
    slices = read_sitemap(body, url=url, host=host, form=form)
    return [listed for piece in slices for listed in piece.urls]


def decompressed(body: bytes) -> bytes:
    return drained(_decompressed(body))


def drained(work: Generator[None, None, bytes]) -> bytes:
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: bytes = end.value
            return result
