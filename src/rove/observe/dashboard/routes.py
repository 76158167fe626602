"""The routes of a dashboard: the page, its files, and the JSON API."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rove.admin.maintenance import CrawlNamed
from rove.inspect.open_crawl import Archive
from rove.observe.dashboard import looks
from rove.observe.dashboard.access import ACTIONS, API, Access
from rove.observe.dashboard.actions import Actions, Control, Patterns, Retry
from rove.observe.dashboard.cached import Cached
from rove.observe.dashboard.domains import read_domains
from rove.observe.dashboard.endpoint import Answer, changing, reading
from rove.observe.dashboard.guard import Guard
from rove.observe.dashboard.json_response import read_body, refused
from rove.observe.dashboard.link_totals import LinkTotals
from rove.observe.dashboard.overview import read_overview, read_requests
from rove.observe.dashboard.page import html_page, static_file
from rove.observe.dashboard.plots import read_plots
from rove.observe.dashboard.recent import RecentRequests
from rove.observe.dashboard.watched import WatchedCrawl

REFRESH_SECONDS = 1.0
"""How often the front page is read at most, however many pages are open."""

T = TypeVar("T")


def application(crawl: CrawlNamed, watched: WatchedCrawl, access: Access, *, name: str, ending: asyncio.Event) -> Guard:
    """Return the dashboard of a crawl as an ASGI application; `ending` is set when it ends."""
    actions, recent, links = Actions(crawl, watched, ending=ending), RecentRequests(), LinkTotals()

    async def overview() -> dict[str, Any]:
        async with watched.reading() as archive:
            return await read_overview(archive, links)

    async def requests() -> dict[str, Any]:
        async with watched.reading() as archive:
            return await read_requests(archive, recent)

    def shared(read: Callable[[], Awaitable[T]]) -> Answer:
        cached = Cached(read, seconds=REFRESH_SECONDS)
        return lambda _: cached.get()

    def look(read: Callable[[Archive, Request], Awaitable[Any]]) -> Answer:
        async def answer(request: Request) -> Any:
            async with watched.reading() as archive:
                return await read(archive, request)

        return answer

    def action(work: Callable[[T], Awaitable[dict[str, Any]]], type: type[T]) -> Answer:
        async def answer(request: Request) -> dict[str, Any]:
            return await work(await read_body(request, type))

        return answer

    async def page(_: Request) -> Response:
        return html_page(name, reading_needs_token=access.reading_needs_token)

    reads: dict[str, Answer] = {
        "overview": shared(overview),
        "requests": shared(requests),
        "plots": look(read_plots),
        "explain": look(looks.explain),
        "examples": look(looks.examples),
        "exclusions": look(looks.exclusions),
        "domains": look(read_domains),
        "domains/{name}": look(looks.domain),
        "domains/{name}/report": look(looks.report),
        "domains/{name}/report.html": look(looks.report_file),
    }
    changes: dict[str, Answer] = {
        "preview": action(actions.preview, Patterns),
        "exclude": action(actions.exclude, Patterns),
        "include": action(actions.include, Patterns),
        "retry": action(actions.retry, Retry),
        "pause": action(actions.pause, Control),
        "unpause": action(actions.unpause, Control),
        "stop": action(actions.stop, Control),
    }
    routes = [
        Route("/", page),
        Route("/static/{name}", static_file),
        *(Route(API + path, reading(answer), methods=["GET"]) for path, answer in reads.items()),
        *(Route(ACTIONS + path, changing(answer), methods=["POST"]) for path, answer in changes.items()),
    ]
    return Guard(Starlette(routes=routes, exception_handlers={404: _no_such_page, 405: _no_such_method}), access)


async def _no_such_page(request: Request, _: Exception) -> Response:
    return refused(404, "there is no such page")


async def _no_such_method(request: Request, _: Exception) -> Response:
    return refused(405, f"{request.method} is not possible here")
