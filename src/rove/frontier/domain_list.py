"""Lists the domains of a crawl, sorted and searched, for people who look at it.

A million domains have no index for most of the columns that people sort by, and an index that every claim and settle
must maintain would slow the crawl. So a page of the list is found by reading all domains once, in slices of a few
milliseconds, while only the best rows are kept. The order of the next visits has an index, which is read instead.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from rove.frontier.rows.visits import pace_from
from rove.model.ledger import DelaySource
from rove.model.visits import Pace

SLICE_OF_DOMAINS = 5_000
"""Domains that one statement reads."""
MOST_LISTED = 10_000
"""Domains on one page, so that memory is bounded."""
_FIRST = -(1 << 63)
_LAST = (1 << 63) - 1


class DomainOrder(enum.StrEnum):
    """What domains are sorted by. The first of the list is the one that people look for."""

    PENDING = "pending"
    OVERDUE = "overdue"
    """Only domains that are due; those that have waited longest come first."""
    FAILURES = "failures"
    """Visits in a row without a response."""
    PAGES = "pages"
    DELAY = "delay"
    """The pause between visits, without a Retry-After or a slow answer, which concern one visit."""
    NEXT = "next"
    """Only domains that wait for a visit; those that are due first come first."""


class DomainState(enum.StrEnum):
    """The state of a domain, as `rove status` counts them (docs/states.md)."""

    IDLE = "idle"
    WAITING = "waiting"
    READY = "ready"
    LEASED = "leased"
    EXCLUDED = "excluded"


class DomainTrait(enum.StrEnum):
    """What may be true of a domain besides its state."""

    FAILING = "failing"
    """A crawl does not stay up for it, because it keeps failing or asks for a very long delay."""
    CAPPED = "capped"
    """It has reached --max-pages-per-domain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainQuery:
    """Which domains to list, in which order."""

    delay: float
    """The operator's delay in seconds."""
    by: DomainOrder = DomainOrder.PENDING
    reverse: bool = False
    """List the last of this order first."""
    only: DomainState | DomainTrait | None = None
    search: str = ""
    """Only domains whose names contain this text."""

    @property
    def has_index(self) -> bool:
        """Whether an index has the domains in this order."""
        by_time = self.by in (DomainOrder.NEXT, DomainOrder.OVERDUE)
        return by_time and not self.reverse and self.only is None and not self.search


class DomainCursor(NamedTuple):
    """Where a page of the list ends. It belongs to one query."""

    key: int
    """The value that the last domain was sorted by."""
    tie: int
    """Tells domains with the same value apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedDomain:
    """One row of the list."""

    id: int
    name: str
    state: DomainState
    pending: int
    pages: int
    """Pages stored so far."""
    ready_in: float | None
    """Seconds until it is due, negative if it is overdue; None: nothing to claim."""
    free_in: float
    """Seconds until its delay has passed, negative if it has."""
    crawl_delay: float
    pace: Pace
    is_failing: bool
    is_capped: bool
    error: str
    """The error of its last request; '' if that succeeded, or if there was none."""
    last_delay: float
    """Seconds without a visit after its last request."""
    last_delay_from: DelaySource


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainPage:
    """Some rows of the list."""

    domains: Sequence[ListedDomain]
    next: DomainCursor | None
    """Where the next page begins; None if this is the last one."""
    matching: int | None
    """How many domains the whole list has; None if they were not counted, because an index gave the page."""


class DomainTables(Protocol):
    """The queries that the list needs."""

    async def fetch(self, query: str, /, **parameters: Any) -> list[Any]:
        """Return the rows of a named query that both databases have."""

    async def now(self) -> int:
        """Return the time in milliseconds of the crawl's clock."""

    async def listed_domains(self, ids: list[int], now: int) -> list[Any]:
        """Return the rows of these domains."""


class DomainList:
    """Reads pages of the list."""

    def __init__(self, tables: DomainTables, *, slice_size: int = SLICE_OF_DOMAINS) -> None:
        self._tables = tables
        self._slice_size = slice_size

    async def page(self, query: DomainQuery, *, limit: int, after: DomainCursor | None = None) -> DomainPage:
        """Return up to `limit` domains, at most MOST_LISTED, that follow the last one of the page before."""
        limit = min(limit, MOST_LISTED)
        now = await self._tables.now()
        if query.has_index:
            matching = None
            keys = await self._by_index(query, now, limit + 1, after or DomainCursor(_FIRST, 0))
        else:
            matching, keys = await self._by_scan(query, now, limit + 1, after or DomainCursor(_FIRST, _FIRST))
        domains = await self._domains([id for _, id in keys[:limit]], now)
        has_more = len(keys) > limit
        return DomainPage(
            domains=domains, next=_cursor(query, keys[:limit], after) if has_more else None, matching=matching
        )

    async def _by_index(self, query: DomainQuery, now: int, limit: int, after: DomainCursor) -> list[tuple[int, int]]:
        """Return due time and id of the next domains."""
        until = now if query.by is DomainOrder.OVERDUE else _LAST
        rows = await self._tables.fetch("domains_by_due", ready_at=after.key, until=until, skip=after.tie, limit=limit)
        return [(ready_at, id) for ready_at, id in rows]

    async def _by_scan(
        self, query: DomainQuery, now: int, limit: int, after: DomainCursor
    ) -> tuple[int, list[tuple[int, int]]]:
        """Read all domains; return how many match, and key and id of the first ones after the cursor."""
        matching = 0
        best: list[tuple[int, int]] = []
        position: int | None = _FIRST
        while position is not None:
            worst = best[-1] if len(best) == limit else (_LAST, _LAST)
            rows = await self._tables.fetch(
                "domains_in_slice",
                after=position,
                slice=self._slice_size,
                now=now,
                delay=round(query.delay * 1000),
                by=query.by.value,
                sign=-1 if query.reverse else 1,
                only="" if query.only is None else query.only.value,
                search=query.search.lower(),
                after_key=after.key,
                after_id=after.tie,
                worst_key=worst[0],
                worst_id=worst[1],
            )
            ((_, position, count),) = (row for row in rows if row[0] is None)
            matching += count
            best = sorted([*best, *((key, id) for key, id, _ in rows if key is not None)])[:limit]
        return matching, best

    async def _domains(self, ids: list[int], now: int) -> list[ListedDomain]:
        found: dict[int, ListedDomain] = {}
        for start in range(0, len(ids), self._slice_size // 10 or 1):
            rows = await self._tables.listed_domains(ids[start : start + (self._slice_size // 10 or 1)], now)
            found |= {domain.id: domain for domain in map(_listed, rows)}
        return [found[id] for id in ids if id in found]


def _cursor(query: DomainQuery, keys: list[tuple[int, int]], before: DomainCursor | None) -> DomainCursor:
    """Return where a page ends. In an index, domains with the same time have no order but that of the index."""
    key, id = keys[-1]
    if not query.has_index:
        return DomainCursor(key, id)
    skip = sum(1 for other, _ in keys if other == key)
    return DomainCursor(key, skip + before.tie if before is not None and before.key == key else skip)


def _listed(row: Sequence[Any]) -> ListedDomain:
    """Build a domain from a row of listed_domains."""
    id, name, state, pending, pages, ready_in, free_in, crawl_delay, *pace, failing, capped, error, delay, source = row
    return ListedDomain(
        id=id,
        name=name,
        state=DomainState(state),
        pending=pending,
        pages=pages,
        ready_in=None if ready_in is None else ready_in / 1000,
        free_in=free_in / 1000,
        crawl_delay=crawl_delay / 1000,
        pace=pace_from(*pace),
        is_failing=bool(failing),
        is_capped=bool(capped),
        error=error or "",
        last_delay=(delay or 0) / 1000,
        last_delay_from=DelaySource(source or DelaySource.DELAY),
    )
