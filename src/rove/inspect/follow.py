"""Reads the pages that a running crawl adds, as they come."""

from __future__ import annotations

from collections.abc import Iterable

from rove.frontier.contract import FrontierReader
from rove.model.ledger import RequestRow
from rove.model.request_counts import is_listed_with_pages

SLACK = 1_000
"""Visits before the oldest lease that are read again: another machine may have just numbered them."""
FURTHEST = 100_000
"""Visits that are read again at most. The results of a visit that is that far behind were lost long ago."""


class Follower:
    """Finds the pages that were added to the ledger since the last look.

    Visits are numbered when they begin and enter the ledger when they end, so they arrive out of order. Each look reads
    all visits from the oldest one that was still under way at the last look, and drops the requests it knows.
    """

    def __init__(self, reader: FrontierReader, *, domain: int | None = None) -> None:
        self._reader = reader
        self._domain = domain
        self._after = 0
        self._known: set[tuple[int, int]] = set()

    async def begin(self) -> list[RequestRow]:
        """Take everything that is in the ledger now as known. Return the latest requests of all kinds, oldest first."""
        oldest = await self._reader.oldest_lease()
        async for newest in self._reader.pages():
            self._after = _read_from(oldest, newest.visit)
            break
        return await self.new_requests()

    def note(self, rows: Iterable[RequestRow]) -> None:
        """Take these requests as known."""
        self._known.update((row.visit, row.seq) for row in rows)

    async def new_pages(self) -> list[RequestRow]:
        """Return the requests for pages that have come since the last look, oldest first."""
        return [row for row in await self.new_requests() if is_listed_with_pages(row)]

    async def new_requests(self) -> list[RequestRow]:
        """Return the requests of all kinds that have come since the last look, oldest first."""
        oldest = await self._reader.oldest_lease()
        found, newest = [], self._after
        async for row in self._reader.visits_after(self._after, domain=self._domain):
            newest = row.visit
            if (row.visit, row.seq) not in self._known:
                found.append(row)
        self.note(found)
        self._after = max(self._after, _read_from(oldest, newest))
        self._known = {place for place in self._known if place[0] > self._after}
        return sorted(found, key=lambda row: row.started)


def _read_from(oldest: int | None, newest: int) -> int:
    """Return the visit after which requests may still come."""
    under_way = newest if oldest is None else min(oldest, newest)
    return max(0, under_way - SLACK, newest - FURTHEST)
