"""Responses of the small web, before they are framed as HTTP."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass

import brotli

from rove.demo.page import PageContent, error_page

CODINGS = ("gzip", "deflate", "br")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebResponse:
    """Status, headers and body of a response. The server adds the headers that frame the body."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""
    delay: float = 0.0
    """Seconds before the first byte."""
    chunked: bool = False
    cut_after: int | None = None
    """Close the connection after this many bytes of the body, although more were announced."""
    fails_first: bool = False
    """Only the first request gets this response. Later ones get the response with `again`."""

    @property
    def location(self) -> str:
        """The target of a redirect as sent, or ''."""
        return next((value for name, value in self.headers if name == "Location"), "")


def success(content: PageContent, *, coding: str = "", chunked: bool = False) -> WebResponse:
    """Make a 200 response, with a content coding if given."""
    type_header = ("Content-Type", content.content_type)
    if not coding:
        return WebResponse(status=200, headers=(type_header,), body=content.body, chunked=chunked)
    return WebResponse(
        status=200,
        headers=(type_header, ("Content-Encoding", coding), ("Vary", "Accept-Encoding")),
        body=_encode(content.body, coding),
        chunked=chunked,
    )


def refusal(status: int, *, retry_after: int | None = None) -> WebResponse:
    """Make a 4xx or 5xx response with an error page."""
    content = error_page(status)
    headers = [("Content-Type", content.content_type)]
    if retry_after is not None:
        headers.append(("Retry-After", str(retry_after)))
    return WebResponse(status=status, headers=tuple(headers), body=content.body)


def redirect(status: int, location: str) -> WebResponse:
    """Make a 3xx response."""
    return WebResponse(status=status, headers=(("Location", location), ("Content-Type", "text/plain")))


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
