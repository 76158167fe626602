"""Serves metrics while a command crawls, if the user has asked for them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from rove.app.control import beside
from rove.observe.listening import ListenAddress
from rove.observe.metrics.accumulator import Accumulator
from rove.observe.metrics.endpoint import PATH, MetricsEndpoint


@asynccontextmanager
async def metrics_served(address: ListenAddress | None, say: Callable[[str], None]) -> AsyncIterator[Accumulator]:
    """Serve what the samples that the accumulator takes add up to, during the block.

    Raise a UsageError if the address cannot be listened on. `say` shows a sentence to the user.
    """
    accumulator = Accumulator()
    if address is None:
        yield accumulator
        return
    listener = address.listening()
    chosen = replace(address, port=listener.getsockname()[1])
    say(f"metrics: http://{chosen.host_and_port}{PATH}")
    async with beside(MetricsEndpoint(accumulator.reading).serve(listener)):
        yield accumulator
