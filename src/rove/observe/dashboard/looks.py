"""Single looks at a crawl: one URL, one domain, some examples. Each reads the parameters of a request."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from rove.inspect import explain_text, report_parts
from rove.inspect.explain_text import exclusion_json
from rove.inspect.explaining import explained
from rove.inspect.lookup import Site, domain_given, site_named
from rove.inspect.open_crawl import Archive
from rove.inspect.page_query import did_you_mean
from rove.inspect.report import SiteReport, read_report
from rove.inspect.report_html import html_parts
from rove.observe.dashboard import examples as finding
from rove.observe.dashboard.domain_page import read_domain

EXCLUSIONS_SHOWN = 500
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""The report is the file that `rove report --html` writes, with its style inside and without any script."""


async def explain(archive: Archive, request: Request) -> dict[str, Any]:
    """Tell whether a URL would be fetched, and why."""
    answer = await explained(archive, _parameter(request, "url"), now=time.time())
    return {
        "sentence": f"{answer.url.text} {answer.sentence}.",
        "parts": [{"name": name, "lines": lines} for name, lines in explain_text.parts(answer)],
        "answer": explain_text.as_json(answer),
    }


async def examples(archive: Archive, request: Request) -> dict[str, Any]:
    """Return examples of what a number counts."""
    value = _parameter(request, "value")
    match _parameter(request, "of"):
        case "failed":
            return await finding.failed_urls(archive, value)
        case "skipped":
            return await finding.skipped_links(archive, value)
        case "blocked":
            return await finding.blocked_urls(archive, value)
        case "error":
            return await finding.requests_with(archive, error=value, status=None, mark=None)
        case "status":
            status = int(value) if value.isdigit() else 0
            return await finding.requests_with(archive, error=None, status=status, mark=None)
        case "mark":
            return await finding.requests_with(archive, error=None, status=None, mark=value)
        case "type":
            return await finding.requests_with_type(archive, value)
    raise HTTPException(400, "examples are of: skipped, blocked, failed, error, status, mark or type")


async def exclusions(archive: Archive, _: Request) -> dict[str, Any]:
    """Return the newest exclusions, and how many there are."""
    history = await archive.catalog.exclusion_history()
    newest = history[: -EXCLUSIONS_SHOWN - 1 : -1]
    return {"total": len(history), "exclusions": [exclusion_json(exclusion) for exclusion in newest]}


async def domain(archive: Archive, request: Request) -> dict[str, Any]:
    """Return what is known about one domain."""
    return await read_domain(archive, await _site(archive, request))


async def report(archive: Archive, request: Request) -> dict[str, Any]:
    """Return the report of one domain, as `rove report` prints it, without the single requests."""
    found = await _report(archive, request)
    copies = [copy async for copy in report_parts.shown_copies(found, archive.reader)]
    return {
        "title": report_parts.title(found),
        "sections": [
            {"title": title, "facts": [{"name": name, "value": value} for name, value in facts]}
            for title, facts in report_parts.sections(found)
        ],
        "robots": [{"title": copy.title, "text": copy.text, "note": copy.note} for copy in copies],
    }


async def report_file(archive: Archive, request: Request) -> Response:
    """Return the report of one domain as the file that `rove report --html` writes."""
    found = await _report(archive, request)
    parts = [part async for part in html_parts(found, archive.reader)]

    async def encoded() -> AsyncIterator[bytes]:
        for part in parts:
            yield part.encode("utf-8", "backslashreplace")

    return StreamingResponse(
        encoded(),
        media_type="text/html",
        headers={
            "content-security-policy": REPORT_POLICY,
            "content-disposition": f'attachment; filename="report-{found.site.name}.html"',
        },
    )


async def _report(archive: Archive, request: Request) -> SiteReport:
    return await read_report(
        archive.reader,
        await _site(archive, request),
        settings=await archive.settings(),
        exclusions=await archive.catalog.exclusion_history(),
        now=time.time(),
    )


async def _site(archive: Archive, request: Request) -> Site:
    """Return the site that the path names; a 404 if the crawl does not know it."""
    form = await archive.form()
    site = site_named(domain_given(request.path_params["name"]), form)
    if unknown := await did_you_mean(archive.reader, site, form):
        raise HTTPException(404, f"{site.name}{unknown}")
    return site


def _parameter(request: Request, name: str) -> str:
    value = request.query_params.get(name, "")
    if not value:
        raise HTTPException(400, f"the parameter {name!r} is missing")
    return value
