"""Turns a function that reads or changes a crawl into an endpoint: with a time limit, and with errors as sentences."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rove.errors import FrontierError, RoveError, Unreachable, UsageError
from rove.observe.dashboard.json_response import Json, refused

READ_SECONDS = 20.0
_CLOSED_REQUEST = 499

log = logging.getLogger(__name__)

Answer = Callable[[Request], Awaitable[Any]]
"""Returns a response, or what is sent as JSON."""


def reading(answer: Answer, *, seconds: float = READ_SECONDS) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that reads. It gives up after a time, and when nobody waits for the answer any more."""

    async def respond(request: Request) -> Response:
        async def in_time() -> Any:
            async with asyncio.timeout(seconds):
                return await answer(request)

        return await _answered(request, _while_connected(request, in_time()), seconds)

    return respond


def changing(answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that changes the crawl. It goes on even if nobody waits for the answer."""

    async def respond(request: Request) -> Response:
        return await _answered(request, answer(request), 0.0)

    return respond


async def _answered(request: Request, work: Awaitable[Any], seconds: float) -> Response:
    try:
        result = await work
    except HTTPException as error:
        return refused(error.status_code, error.detail)
    except TimeoutError:
        return refused(503, f"there was no answer within {seconds:g} s; the database may be away or busy")
    except (Unreachable, FrontierError) as error:
        return refused(503, str(error))
    except UsageError as error:
        return refused(400, str(error))
    except RoveError as error:
        log.error("%s", error, exc_info=error)
        return refused(500, str(error))
    except Exception as error:
        log.exception("unexpected error at %s; this is a bug", request.url.path)
        return refused(500, f"unexpected {type(error).__name__}: {error}")
    return result if isinstance(result, Response) else Json(result)


async def _while_connected(request: Request, work: Awaitable[Any]) -> Any:
    """Return the result of work, or cancel it when the client disconnects."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise HTTPException(_CLOSED_REQUEST, "nobody waits for the answer")
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
