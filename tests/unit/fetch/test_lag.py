"""The lag of the event loop does not count as response time of the server."""

from __future__ import annotations

import asyncio
import time

import pytest

from rove.model.outcomes import Fetched
from tests.unit.fetch.server import fetching, on_loop, page, request_to, serve


@pytest.mark.system
@on_loop
async def test_lag_is_subtracted_from_the_response_time() -> None:
    async with serve([page(b"at once")]) as server, fetching() as fetcher:
        fetch = asyncio.create_task(fetcher.fetch(request_to(server)))
        await server.requested.acquire()
        time.sleep(0.3)  # noqa: ASYNC251 - blocks the loop on purpose
        outcome = await fetch
    assert isinstance(outcome, Fetched)
    assert outcome.response.waited > 0.2
