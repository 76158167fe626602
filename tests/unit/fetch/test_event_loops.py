"""The fetcher on uvloop and on the standard event loop: it fetches, times out, cancels and closes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from rove.fetch.limits import FetchLimits
from rove.model.outcomes import FailureKind, Fetched
from tests.unit.fetch.server import Act, Script, failure, fetching, page, request_to, serve

pytestmark = pytest.mark.system

AT_ONCE = 50
Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.mark.parametrize("run", [uvloop.run, asyncio.run])
def test_the_fetcher_works_on_both_event_loops(run: Run) -> None:
    run(_fetch_all_kinds())


async def _fetch_all_kinds() -> None:
    body = b"x" * 100_000

    def script(request: bytes) -> Script:
        return [Act.HOLD] if b"GET /held " in request else [page(body)]

    limits = FetchLimits(first_byte=1.0)
    async with serve(script) as server, fetching(limits=limits) as fetcher:
        held = asyncio.create_task(fetcher.fetch(request_to(server, "/held")))
        cancelled = asyncio.create_task(fetcher.fetch(request_to(server, "/held")))
        for _ in range(2):
            await server.wait_for_request()
        cancelled.cancel()
        outcomes = await asyncio.gather(*(fetcher.fetch(request_to(server)) for _ in range(AT_ONCE)))
        assert all(isinstance(one, Fetched) and one.body == body for one in outcomes)
        await server.wait_for_disconnect()
        assert cancelled.cancelled()
        assert failure(await held) is FailureKind.TIMEOUT_FIRST_BYTE
        aborted = asyncio.create_task(fetcher.fetch(request_to(server, "/held")))
        for _ in range(AT_ONCE + 1):
            await server.wait_for_request()
        await fetcher.close()
        assert failure(await aborted) is FailureKind.ABORTED
        assert failure(await fetcher.fetch(request_to(server))) is FailureKind.ABORTED
