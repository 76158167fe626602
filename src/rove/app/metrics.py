"""Serves metrics while a command crawls, if the user has asked for them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from rove.app.control import beside
from rove.observe.listening import ListenAddress
from rove.observe.metrics.endpoint import PATH, MetricsEndpoint
from rove.observe.metrics.reading import Reading


@asynccontextmanager
async def metrics_served(
    address: ListenAddress | None, read: Callable[[], Reading], say: Callable[[str], None]
) -> AsyncIterator[None]:
    """Serve metrics at an address during the block; None: serve none.

    Raise a UsageError if that is impossible. `read` returns the figures; `say` shows a sentence to the user.
    """
    if address is None:
        yield
        return
    listener = address.listening()
    chosen = replace(address, port=listener.getsockname()[1])
    say(f"metrics: http://{chosen.host_and_port}{PATH}")
    async with beside(MetricsEndpoint(read).serve(listener)):
        yield
