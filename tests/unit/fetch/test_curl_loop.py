"""libcurl on the event loop: whatever watches its sockets, and whichever loop it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

import rove.fetch.curl_loop
from rove.fetch.limits import FetchLimits
from rove.fetch.poller import ReadySockets, SelectorSockets, ready_sockets
from rove.model.outcomes import FailureKind, Fetched
from tests.unit.fetch.server import Act, Script, ask, failure, fetching, page, serve

pytestmark = pytest.mark.system

AT_ONCE = 50
Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.mark.parametrize("run", [uvloop.run, asyncio.run])
@pytest.mark.parametrize("sockets", [ready_sockets, SelectorSockets])
def test_pages_come_and_limits_hold(
    run: Run, sockets: Callable[[], ReadySockets], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rove.fetch.curl_loop, "ready_sockets", sockets)
    run(_fetch_all_kinds())


async def _fetch_all_kinds() -> None:
    body = b"x" * 100_000

    def script(request: bytes) -> Script:
        return [Act.HOLD] if b"GET /held " in request else [page(body)]

    limits = FetchLimits(first_byte=1.0)
    async with serve(script) as server, fetching(limits=limits) as fetcher:
        held = asyncio.create_task(fetcher.fetch(ask(server, "/held")))
        cancelled = asyncio.create_task(fetcher.fetch(ask(server, "/held")))
        for _ in range(2):
            await server.is_asked()
        cancelled.cancel()
        found = await asyncio.gather(*(fetcher.fetch(ask(server)) for _ in range(AT_ONCE)))
        assert all(isinstance(one, Fetched) and one.body == body for one in found)
        await server.is_left()
        assert cancelled.cancelled()
        assert failure(await held) is FailureKind.TIMEOUT_FIRST_BYTE
        aborted = asyncio.create_task(fetcher.fetch(ask(server, "/held")))
        for _ in range(AT_ONCE + 1):
            await server.is_asked()
        await fetcher.close()
        assert failure(await aborted) is FailureKind.ABORTED
        assert failure(await fetcher.fetch(ask(server))) is FailureKind.ABORTED
