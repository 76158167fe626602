"""What a host of the small web says to a request, before it is put on the wire."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass

import brotli

from rove.demo.page import PageContent, error_page

CODINGS = ("gzip", "deflate", "br")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteAnswer:
    """Status, headers and body; how the body is framed is for the server to add."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""
    delay: float = 0.0
    """Seconds before the first byte."""
    chunked: bool = False
    cut_after: int | None = None
    """Bytes of the body after which the connection is closed, short of what was announced."""
    fails_first: bool = False
    """This is for the first request only; later ones are to be answered with `again`."""

    @property
    def location(self) -> str:
        """The target of a redirect as sent, or nothing."""
        return next((value for name, value in self.headers if name == "Location"), "")


def success(content: PageContent, *, coding: str = "", chunked: bool = False) -> SiteAnswer:
    """200, in a content coding if one is named."""
    type_header = ("Content-Type", content.content_type)
    if not coding:
        return SiteAnswer(status=200, headers=(type_header,), body=content.body, chunked=chunked)
    return SiteAnswer(
        status=200,
        headers=(type_header, ("Content-Encoding", coding), ("Vary", "Accept-Encoding")),
        body=_encode(content.body, coding),
        chunked=chunked,
    )


def refusal(status: int, *, retry_after: int | None = None) -> SiteAnswer:
    """A 4xx or 5xx with a page for people."""
    content = error_page(status)
    headers = [("Content-Type", content.content_type)]
    if retry_after is not None:
        headers.append(("Retry-After", str(retry_after)))
    return SiteAnswer(status=status, headers=tuple(headers), body=content.body)


def redirect(status: int, location: str) -> SiteAnswer:
    """A 3xx to somewhere else."""
    return SiteAnswer(
        status=status, headers=(("Location", location), ("Content-Type", "text/plain"))
    )


def _encode(body: bytes, coding: str) -> bytes:
    match coding:
        case "gzip":
            return gzip.compress(body, compresslevel=4, mtime=0)
        case "deflate":
            return zlib.compress(body, 4)
        case "br":
            compressed: bytes = brotli.compress(body, quality=4)
            return compressed
        case _:
            raise ValueError(f"the small web has no content coding {coding!r}")
