"""What the crawl asks of a fetcher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from rove.fetch.visit_connection import VisitConnection
from rove.model.outcomes import Outcome
from rove.resources.memory import Share
from rove.urls.canonical import CrawlUrl


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One GET to be made."""

    url: CrawlUrl
    max_bytes: int
    """Cap on the body, both as sent and as decoded; what is over it is cut off."""
    accept_types: frozenset[str] | None = None
    """Media types whose body is read; None reads any (robots.txt)."""
    timeout: float = 60.0
    """Seconds that the whole request may take."""
    headers: Sequence[tuple[str, str]] = ()
    """Sent besides those that every request has."""
    share: Share | None = None
    """Of the process's memory, which the body is held in; None: nobody keeps an account."""
    line: VisitConnection | None = None
    """What the visit's last request left open, for this one to use; None: it has a connection of its own."""
    more_follows: bool = False
    """Its connection is left open on that line, if the server does: the same origin is asked for more at once."""


class Fetcher(Protocol):
    """Makes requests; hundreds may be under way at once."""

    async def fetch(self, request: Request) -> Outcome:
        """Make one request. Never raises for what the web does; cancelling it closes the connection."""

    async def close(self) -> None:
        """Close everything that is open."""
