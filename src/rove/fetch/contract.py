"""The interface between the crawl and a fetcher."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import msgspec

from rove.fetch.visit_connection import VisitConnection
from rove.model.outcomes import Outcome
from rove.resources.memory import Share
from rove.urls.canonical import CrawlUrl

NOTHING: AbstractContextManager[None] = nullcontext()


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One GET request."""

    url: CrawlUrl
    max_bytes: int
    """Cap on the body, both as sent and as decoded. A longer body is cut."""
    accept_types: frozenset[str] | None = None
    """Media types whose body is read. None reads any type, for robots.txt."""
    timeout: float = 60.0
    """Seconds that the whole request may take."""
    headers: Sequence[tuple[str, str]] = ()
    """Sent in addition to the headers of every request."""
    share: Share | None = None
    """The visit's share of the process's memory, which the body counts against. None: no limit."""
    connection: VisitConnection | None = None
    """The visit's connection. The request uses it if it leads to the same origin."""
    is_brief: bool = False
    """Wait for the connection and for the first byte only briefly, because slots are short."""
    keep_open: bool = False
    """Leave the connection open, if the server does, because a request to the same origin follows at once."""
    decoding: AbstractContextManager[None] = NOTHING
    """Entered while the body is decoded."""


class Fetcher(Protocol):
    """Makes requests, hundreds at a time."""

    async def reserve(self, url: CrawlUrl, connection: VisitConnection, *, within: float) -> float:
        """Take room for a visit at the address of a URL; return 0, or the seconds until there may be room.

        Call it before each request of a visit. Only a name is looked up, which must end `within` these seconds.
        """

    async def fetch(self, request: Request) -> Outcome:
        """Make one request. Never raises for what the web does; cancelling it closes the connection."""

    def look_ahead(self, origin: str) -> None:
        """Begin to look up the name of an origin that a visit will need soon."""

    @property
    def names_answered_from(self) -> float:
        """The latest start of a lookup that a name server answered, by the steady clock."""

    def forget_failures(self) -> None:
        """Forget names that could not be found, because the name server may be back."""

    async def close(self) -> None:
        """Abort all requests and close everything that is open."""
