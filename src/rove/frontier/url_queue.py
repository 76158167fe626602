"""Lists pending URLs in the order in which they will be requested.

Within a domain the list follows the claims exactly (priority.py), as if every visit requested one page and no new URL
were found. Across domains it follows the times at which they are due.
"""

from __future__ import annotations

import enum
import heapq
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Protocol

from rove.frontier.priority import FOREIGN, HELD, RETRIED, SUSPECT, is_foreign_turn

MOST_QUEUED = 10_000
"""URLs in one list, so that memory is bounded."""
DOMAINS_AT_ONCE = 100
HEADS = 2
"""URLs of each class that are read with a domain."""
MORE_URLS = 500
_FIRST = -(1 << 63)
_LAST = (1 << 63) - 1


class QueueClass(enum.StrEnum):
    """Why a URL has its place in the order of its domain."""

    OWN = "own"
    """The domain itself or a seed names it."""
    RETRIED = "retry"
    """It failed for a while and is tried again."""
    HELD = "held"
    """Its origin keeps failing."""
    FOREIGN = "foreign"
    """Only other domains name it."""
    SUSPECT = "suspect"
    """A process died while it read this URL, so it is tried alone."""


PRIORITIES = {
    QueueClass.OWN: (-(1 << 31), FOREIGN),
    QueueClass.FOREIGN: (FOREIGN, RETRIED),
    QueueClass.RETRIED: (RETRIED, HELD),
    QueueClass.HELD: (HELD, SUSPECT),
    QueueClass.SUSPECT: (SUSPECT, (1 << 31) - 1),
}
"""The lowest priority of each class, and the end of its range."""
_TIMED = (QueueClass.RETRIED, QueueClass.HELD, QueueClass.SUSPECT)
"""The classes whose positions are the times at which their URLs are due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedUrl:
    """A pending URL at its place in the queue."""

    domain: str
    url: str
    kind: QueueClass
    depth: int
    attempts: int
    is_robots: bool
    """A robots.txt that other origins wait for."""
    is_seed: bool
    reason: str
    """Why the last attempt failed; '' if there was none."""
    is_leased: bool = False
    """The visit that is probably for this URL is under way."""
    due_in: float | None = None
    """Seconds until it is probably requested, at least 0; None: nobody may request it now (see its domain's state)."""


class QueueTables(Protocol):
    """The queries that the queue needs."""

    async def fetch(self, query: str, /, **parameters: Any) -> list[Any]:
        """Return the rows of a named query that both databases have."""

    async def now(self) -> int:
        """Return the time in milliseconds of the crawl's clock."""

    async def queued_domains(self, ids: list[int], now: int, delay: int) -> list[Any]:
        """Return the rows of these domains."""

    async def queue_heads(self, ids: list[int], *, low: int, below: int, limit: int) -> list[Any]:
        """Return the rows of the first pending URLs of each of these domains in a range of priorities."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """A row of queue_heads or queue_more."""

    priority: int
    position: int
    url: str
    depth: int
    attempts: int
    is_robots: int
    is_seed: int
    reason: str


@dataclass(slots=True)
class _Class:
    """The URLs of one class of a domain that were read and not listed yet."""

    urls: deque[_Pending] = field(default_factory=deque)
    read: int = 0
    is_whole: bool = True
    """Nothing is left to read."""

    def take(self, rows: Sequence[_Pending], limit: int) -> None:
        """Append rows that follow those before; fewer than the limit are the last ones."""
        self.urls += sorted(rows, key=lambda row: (row.priority, row.position))
        self.read += len(rows)
        self.is_whole = len(rows) < limit


@dataclass(slots=True)
class _Domain:
    """The visits of one domain that are still to come."""

    id: int
    name: str
    due: int | None
    """When an ordinary claim may take it; None if none may."""
    free: int
    is_barred: bool
    """It is excluded, or has reached --max-pages-per-domain."""
    is_leased: bool
    lease: int
    """The number of the next lease, or of the present one."""
    delay: int
    classes: dict[QueueClass, _Class] = field(default_factory=lambda: defaultdict(_Class))

    @property
    def begins(self) -> int | None:
        """When its first listed visit begins: long ago if it is under way; None if it may not be visited."""
        suspects = self.classes[QueueClass.SUSPECT].urls
        if self.is_leased:
            return _FIRST
        if self.is_barred or not suspects:
            return self.due
        alone = max(self.free, suspects[0].position)
        return alone if self.due is None else min(alone, self.due)

    def heads(self) -> dict[QueueClass, int]:
        """Return the position of the first URL of each class that has any."""
        return {kind: known.urls[0].position for kind, known in self.classes.items() if known.urls}


def next_turn(heads: Mapping[QueueClass, int], *, at: int, lease: int) -> tuple[QueueClass, int] | None:
    """Return the class whose first URL a visit requests, and when it does; None if nothing is pending.

    `heads` has the position of the first URL of each class. The domain is free at `at`, for the lease with this number.
    """
    own = [QueueClass.OWN, QueueClass.RETRIED, QueueClass.HELD]
    order = [QueueClass.FOREIGN, *own] if is_foreign_turn(lease) else [*own, QueueClass.FOREIGN]
    for known in [QueueClass.SUSPECT, *order]:
        if known in heads and (known not in _TIMED or heads[known] <= at):
            return known, at
    # The domain becomes due with the first URL in the order of the index, though a held one may be due earlier.
    first = next((kind for kind in (QueueClass.RETRIED, QueueClass.HELD) if kind in heads), None)
    waiting = [kind for kind in (QueueClass.SUSPECT, first) if kind is not None and kind in heads]
    kind = min(waiting, key=lambda kind: heads[kind], default=None)
    return None if kind is None else (kind, heads[kind])


class UrlQueue:
    """Reads the queue."""

    def __init__(
        self, tables: QueueTables, *, domains_at_once: int = DOMAINS_AT_ONCE, heads: int = HEADS, more: int = MORE_URLS
    ) -> None:
        self._tables = tables
        self._domains_at_once = domains_at_once
        self._heads = heads
        self._more = more

    async def read(self, *, delay: float, limit: int, domain: int | None = None) -> list[QueuedUrl]:
        """Return the next pending URLs of a domain or of all, up to `limit`, at most MOST_QUEUED.

        `delay` is the operator's delay.
        """
        limit = min(limit, MOST_QUEUED)
        now = await self._tables.now()
        if domain is not None:
            return await self._of_domain(domain, now, round(delay * 1000), limit)
        reading = _Reading(self, now, round(delay * 1000), limit)
        return await reading.run()

    async def _of_domain(self, domain: int, now: int, delay: int, limit: int) -> list[QueuedUrl]:
        queued: list[QueuedUrl] = []
        for known in await self.domains([domain], now, delay):
            begins = known.begins
            at = 0 if begins is None else begins
            while len(queued) < limit:
                visit = await self.visit(known, at, now)
                if visit is None:
                    break
                url, at = visit
                queued.append(url if begins is not None else replace(url, due_in=None))
        return queued

    async def domains(self, ids: list[int], now: int, delay: int) -> list[_Domain]:
        """Return those domains that exist, with their first URLs, in the given order."""
        rows = await self._tables.queued_domains(ids, now, delay)
        found = {
            id: _Domain(id, name, due, free, bool(is_barred), bool(is_leased), leases + (not is_leased), lasting)
            for id, name, due, free, is_barred, is_leased, leases, lasting in rows
        }
        for kind, (low, below) in PRIORITIES.items():
            urls: dict[int, list[_Pending]] = defaultdict(list)
            for id, *columns in await self._tables.queue_heads(list(found), low=low, below=below, limit=self._heads):
                urls[id].append(_Pending(*columns))
            for id, pending in urls.items():
                found[id].classes[kind].take(pending, self._heads)
        return [found[id] for id in ids if id in found]

    async def visit(self, domain: _Domain, at: int, now: int) -> tuple[QueuedUrl, int] | None:
        """Take the URL of the next visit to a domain; return it, and when the visit after it may begin."""
        turn = next_turn(domain.heads(), at=max(at, now), lease=domain.lease)
        if turn is None:
            return None
        kind, begins = turn
        known = domain.classes[kind]
        url = known.urls.popleft()
        if not known.urls and not known.is_whole:
            await self._read_more(domain.id, kind, known)
        queued = QueuedUrl(
            domain=domain.name,
            url=url.url,
            kind=kind,
            depth=url.depth,
            attempts=url.attempts,
            is_robots=bool(url.is_robots),
            is_seed=bool(url.is_seed),
            reason=url.reason,
            is_leased=domain.is_leased,
            due_in=(begins - now) / 1000,
        )
        following = begins + domain.delay
        if domain.is_leased and domain.due is not None:
            following = domain.due
        domain.is_leased = False
        domain.lease += 1
        return queued, following

    async def _read_more(self, domain: int, kind: QueueClass, known: _Class) -> None:
        low, below = PRIORITIES[kind]
        rows = await self._tables.fetch(
            "queue_more", domain=domain, low=low, below=below, skip=known.read, limit=self._more
        )
        known.take([_Pending(*columns) for _, *columns in rows], self._more)

    async def leased(self, now: int, limit: int) -> list[int]:
        """Return domains that are being visited."""
        return [id for (id,) in await self._tables.fetch("leased_domains", now=now, limit=limit)]

    async def suspected(self, limit: int) -> list[int]:
        """Return domains with suspects."""
        return list(dict.fromkeys([id for (id,) in await self._tables.fetch("suspected_domains", limit=limit)]))

    async def due(self, ready_at: int, skip: int) -> list[tuple[int, int]]:
        """Return due time and id of the next domains in the order in which they are due."""
        rows = await self._tables.fetch(
            "domains_by_due", ready_at=ready_at, until=_LAST, skip=skip, limit=self._domains_at_once
        )
        return [(ready_at, id) for ready_at, id in rows]


class _Reading:
    """One reading of the queue of all domains."""

    def __init__(self, queue: UrlQueue, now: int, delay: int, limit: int) -> None:
        self._queue = queue
        self._now = now
        self._delay = delay
        self._limit = limit
        self._next: list[tuple[int, int, _Domain]] = []
        """The domains that were read, by when they are visited next, and then in the order of reading."""
        self._numbers = count()
        self._seen: set[int] = set()
        self._read_until = _FIRST
        """All domains that are due before this time were read."""
        self._skip = 0
        """How many of those that are due at this very time were read."""

    async def run(self) -> list[QueuedUrl]:
        """Return the first URLs."""
        await self._add(await self._queue.leased(self._now, self._limit))
        await self._add(await self._queue.suspected(self._limit))
        queued: list[QueuedUrl] = []
        is_end = False
        while len(queued) < self._limit:
            while not is_end and (not self._next or self._next[0][0] > self._read_until):
                is_end = not await self._read_due()
            if not self._next:
                break
            at, order, domain = heapq.heappop(self._next)
            visit = await self._queue.visit(domain, at, self._now)
            if visit is not None:
                url, following = visit
                queued.append(url)
                heapq.heappush(self._next, (following, order, domain))
        return queued

    async def _read_due(self) -> bool:
        """Read more domains that are due; return whether there were any."""
        rows = await self._queue.due(self._read_until, self._skip)
        if not rows:
            self._read_until = _LAST
            return False
        last = rows[-1][0]
        ties = sum(1 for ready_at, _ in rows if ready_at == last)
        self._skip = ties + (self._skip if last == self._read_until else 0)
        self._read_until = last
        await self._add([id for _, id in rows])
        return True

    async def _add(self, ids: Sequence[int]) -> None:
        unseen = [id for id in ids if id not in self._seen]
        self._seen.update(unseen)
        for start in range(0, len(unseen), DOMAINS_AT_ONCE):
            for domain in await self._queue.domains(unseen[start : start + DOMAINS_AT_ONCE], self._now, self._delay):
                begins = domain.begins
                if begins is not None:
                    heapq.heappush(self._next, (begins, next(self._numbers), domain))
