"""Time in which the event loop was busy elsewhere is ours, not the server's."""

from __future__ import annotations

import asyncio
import time

import pytest

from rove.fetch.loop_lag import LoopLag
from rove.model.outcomes import Fetched
from tests.unit.fetch.server import ask, fetching, on_loop, page, serve


@on_loop
async def test_a_loop_that_is_held_up_is_late_by_that_much() -> None:
    lag = LoopLag()
    await asyncio.sleep(0.05)
    before = lag.seconds
    time.sleep(0.3)  # noqa: ASYNC251 - this is what is told of
    await asyncio.sleep(0.05)
    lag.close()
    assert lag.seconds - before > 0.2


@pytest.mark.system
@on_loop
async def test_an_answer_is_not_slow_for_what_held_us_up() -> None:
    async with serve([page(b"at once")]) as server, fetching() as fetcher:
        fetch = asyncio.create_task(fetcher.fetch(ask(server)))
        await server.asked.acquire()
        time.sleep(0.3)  # noqa: ASYNC251 - other pages are read
        outcome = await fetch
    assert isinstance(outcome, Fetched)
    assert outcome.response.waited > 0.2
