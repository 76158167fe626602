"""Examples of what a number on the page counts: some URLs that were lost for a reason, or requests with an error."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from rove.inspect.open_crawl import Archive
from rove.inspect.page_query import PageQuery
from rove.inspect.request_rows import request_json
from rove.model.ledger import RequestRow
from rove.model.reasons import error_behind
from rove.model.urls import UrlState

SHOWN = 50
SEARCHED = 100_000
"""Rows that are read at most in search of examples."""
SEARCH_SECONDS = 5.0


class _Search:
    """Ends a search that takes too long."""

    def __init__(self) -> None:
        self.read = 0
        self._until = time.monotonic() + SEARCH_SECONDS

    def goes_on(self, rows: int) -> bool:
        """Count rows that were read; return whether to read more."""
        self.read += rows
        return self.read < SEARCHED and time.monotonic() < self._until


async def skipped_links(archive: Archive, reason: str) -> dict[str, Any]:
    """Return the newest examples of links that were not taken for a reason."""
    links = await archive.reader.skipped()
    found = sorted((link for link in links if link.reason == reason), key=lambda link: -link.at)
    return {
        "searched": len(links),
        "urls": [{"url": link.url, "why": link.reason, "from": link.page or None} for link in found[:SHOWN]],
    }


async def failed_urls(archive: Archive, error: str) -> dict[str, Any]:
    """Return some URLs that failed with an error, or wait for a retry because of it."""
    search, found = _Search(), []
    async for urls in archive.reader.troubled():
        found += [url for url in urls if error in (url.reason, error_behind(url.reason))]
        if len(found) >= SHOWN or not search.goes_on(len(urls)):
            break
    return {
        "searched": search.read,
        "urls": [{"url": url.url, "why": url.reason, "waits_for_retry": url.is_waiting} for url in found[:SHOWN]],
    }


async def blocked_urls(archive: Archive, reason: str) -> dict[str, Any]:
    """Return some URLs that were blocked for a reason. The search begins anywhere, so each time others are found."""
    search, found = _Search(), []
    anywhere = secrets.randbits(64) - (1 << 63)
    for slices in (archive.reader.urls(after=anywhere), archive.reader.urls()):
        async for urls in slices:
            found += [url for url in urls if url.state is UrlState.BLOCKED and url.reason == reason]
            if len(found) >= SHOWN or not search.goes_on(len(urls)):
                break
    unique = list({url.key: url for url in found}.values())
    return {"searched": search.read, "urls": [{"url": url.url, "why": url.reason} for url in unique[:SHOWN]]}


async def requests_with(archive: Archive, *, error: str | None, status: int | None, mark: str | None) -> dict[str, Any]:
    """Return the newest requests for pages with an error, a status or a mark."""
    query = PageQuery(error=error, status=status, mark=mark)
    return await _requests(archive.reader.pages(), query.takes)


async def requests_with_type(archive: Archive, media_type: str) -> dict[str, Any]:
    """Return the newest requests for pages whose answer had a media type."""
    return await _requests(archive.reader.pages(), lambda row: row.media_type == media_type)


async def _requests(rows: AsyncIterator[RequestRow], takes: Callable[[RequestRow], bool]) -> dict[str, Any]:
    search, found = _Search(), []
    async for row in rows:
        if takes(row):
            found.append(request_json(row))
        if len(found) >= SHOWN or not search.goes_on(1):
            break
    return {"searched": search.read, "requests": found}
