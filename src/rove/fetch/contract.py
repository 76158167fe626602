"""What the crawl asks of a fetcher."""

from __future__ import annotations

from typing import Protocol

from rove.model import Outcome, Request


class Fetcher(Protocol):
    """Makes requests; hundreds may be under way at once."""

    async def fetch(self, request: Request) -> Outcome:
        """Make one request. Never raises for what the web does; cancelling it closes the connection."""

    async def close(self) -> None:
        """Close everything that is open."""
