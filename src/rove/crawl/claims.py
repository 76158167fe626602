"""What a process claims: domains that are due, or suspects that it tries alone."""

from __future__ import annotations

from typing import Protocol

from rove.crawl.backoff_wait import BackoffWait
from rove.frontier.contract import Frontier
from rove.model.visits import Lease

PATIENCE = 2.0
"""A process that tries suspects ends if none is due within this many seconds. Another is started when it is time."""


class Claims(Protocol):
    """Where the claimer gets its leases from."""

    is_alone: bool
    """Only one visit at a time, and only when nothing else is left to settle."""

    async def claim(self, limit: int) -> list[Lease]:
        """Lease up to this many domains."""

    async def next_due(self) -> float | None:
        """Return the seconds until there is something to claim; None if there is nothing to wait for."""


class DueDomains:
    """All domains that are due: what an ordinary process claims."""

    is_alone = False

    def __init__(self, frontier: Frontier, backoffs: BackoffWait) -> None:
        self.claim = frontier.claim
        self.next_due = backoffs.next_due


class DueSuspects:
    """Suspects, one at a time."""

    is_alone = True

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier

    async def claim(self, limit: int) -> list[Lease]:
        """Lease one domain with a suspect, however many are wanted."""
        return await self._frontier.claim_suspect()

    async def next_due(self) -> float | None:
        """Return the seconds until a suspect may be tried; None if that is not soon."""
        due = await self._frontier.reserve_suspects()
        return due if due is not None and due <= PATIENCE else None
