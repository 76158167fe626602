"""Adds URLs to the frontier on PostgreSQL, and deletes the worst URLs of domains that are over their budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import asyncpg

from rove.frontier.capacity import (
    DOMAINS_PER_SLICE,
    FIRST_DOMAIN,
    FullDomains,
    Raised,
    Trimmed,
    added,
    count_trimmed,
)
from rove.frontier.counters import count_wanted_again
from rove.frontier.postgres.arrays import columns_of
from rove.frontier.postgres.clock import ClockGuard
from rove.frontier.postgres.counters import add_counters
from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.schedule import reschedule
from rove.frontier.postgres.session import Session
from rove.frontier.priority import ALONE, RETRIED, URLS_PER_ADD, WANTED_ROBOTS
from rove.frontier.records import MAX_WANTED_ROBOTS, Added
from rove.model.urls import NewUrl, NotAccepted, UrlState

WARY_ADDS = 50
"""After a conflict, this many adds expect another one, so that few adds have to be repeated."""


class Overtaken(Exception):
    """Another transaction has just inserted one of the same URLs, so nothing was added."""


class PostgresAdding:
    """Adds URLs for one process."""

    def __init__(self, database: PostgresDatabase, clock: ClockGuard, full: FullDomains) -> None:
        self._database = database
        self._clock = clock
        self._full = full
        self._wary = 0
        """The number of following adds that expect conflicts."""

    async def add(
        self, urls: Sequence[NewUrl], *, only_known_domains: bool, exempt: Collection[int], as_seeds: bool
    ) -> Added:
        """Insert the unseen URLs."""
        urls, dropped = self._full.sift(urls, exempt)
        work = partial(self._add, urls, len(dropped), only_known_domains, exempt, as_seeds)
        try:
            query = "insert_urls_beside" if self._wary else "insert_urls"
            self._wary = max(0, self._wary - 1)
            unseen, trimmed = await self._database.transaction("add", partial(work, query))
        except Overtaken:
            self._wary = WARY_ADDS
            unseen, trimmed = await self._database.transaction("add", partial(work, "insert_urls_beside"))
        self._full.note(trimmed)
        return added(unseen, dropped, trimmed)

    async def excess(self) -> int:
        """Count the URLs that exceed the budgets of their domains."""
        return await self._slice_by_slice(_count_worst)

    async def drop_excess(self) -> int:
        """Delete the URLs that exceed the budgets of their domains."""
        return await self._slice_by_slice(_drop_worst)

    async def _slice_by_slice(self, work: Callable[[Session, Mapping[int, int]], Awaitable[int]]) -> int:
        """Lock all domains that are over their budget, in slices; sum what `work` returns for each slice."""

        async def one_slice(after: int, session: Session) -> tuple[int | None, int]:
            rows = await session.fetch(
                "lock_crowded", after=after, least=self._full.least_room, limit=DOMAINS_PER_SLICE
            )
            excess = self._full.beyond(rows)
            return (rows[-1][0] if rows else None), await work(session, excess) if excess else 0

        total = 0
        last: int | None = FIRST_DOMAIN
        while last is not None:
            last, count = await self._database.transaction("trim", partial(one_slice, last))
            total += count
        return total

    async def want_robots(self, urls: Sequence[NewUrl]) -> None:
        """Make robots.txt files pending that other origins wait for."""
        await self._database.transaction("want robots.txt", partial(self._want_robots, urls))

    async def _want_robots(self, urls: Sequence[NewUrl], session: Session) -> None:
        changes: Counter[str] = Counter()
        wanted = await _not_pending(session, urls, changes)
        inserted = {(domain, fingerprint) for domain, fingerprint in await _insert_robots(session, wanted)}
        unseen = Counter(domain for domain, _ in inserted)
        settled = sorted(wanted.keys() - inserted)
        # Known URLs are changed only under the lock of their domain. An insert comes before all such locks.
        await session.fetch("lock_domains", domains=sorted({domain for domain, _ in settled}))
        for domain, state, reason in await _rewant_robots(session, settled):
            unseen[domain] += 1
            count_wanted_again(UrlState(state), reason, changes)
        if unseen:
            names = {url.domain: url.domain_name for url in urls}
            await self._raise_pending(session, unseen, names, changes)
        await add_counters(session, changes)

    async def _add(
        self,
        urls: Sequence[NewUrl],
        dropped: int,
        only_known_domains: bool,
        exempt: Collection[int],
        as_seeds: bool,
        query: str,
        session: Session,
    ) -> tuple[int, list[Trimmed]]:
        """Return the number of new URLs, and those that were deleted."""
        names = {url.domain: url.domain_name for url in urls}
        changes: Counter[str] = Counter({f"not_accepted.{NotAccepted.BUDGET}": dropped})
        trimmed: list[Trimmed] = []
        if only_known_domains:
            known = {row[0] for row in await session.fetch("known_domains", domains=list(names))}
            within = [url for url in urls if url.domain in known]
            changes[f"not_accepted.{NotAccepted.OUT_OF_SCOPE}"] += len(urls) - len(within)
            urls = within
        unseen = await _insert_urls(session, query, urls, as_seeds) if urls else {}
        if unseen:
            excess = self._full.excess(await self._raise_pending(session, unseen, names, changes))
            trimmed = await trim(session, excess, changes, exempt=exempt) if excess else []
        await add_counters(session, changes)
        return sum(unseen.values()), trimmed

    async def _raise_pending(
        self, session: Session, unseen: Mapping[int, int], names: Mapping[int, str], changes: Counter[str]
    ) -> list[Raised]:
        """Count inserted URLs as pending, and create or wake their domains; return those that may be full."""
        rows = await session.fetch(
            "raise_pending",
            domains=list(unseen),
            names=[names[domain] for domain in unseen],
            unseen=list(unseen.values()),
            ceiling=self._clock.ceiling(),
            **ALONE,
        )
        changes["urls.pending"] += sum(unseen.values())
        changes["domains.total"] += sum(is_new for _, _, is_new, *_ in rows)
        changes["domains.active"] += sum(
            pending == unseen[id] and not excluded for id, pending, _, excluded, _, _ in rows
        )
        return [
            Raised(id, pending, unseen[id], crawl_delay, repeats)
            for id, pending, _, _, crawl_delay, repeats in rows
            if pending > self._full.least_room
        ]


async def _not_pending(
    session: Session, urls: Sequence[NewUrl], changes: Counter[str]
) -> dict[tuple[int, int], NewUrl]:
    """Return the URLs by key that are not pending and for which their domains have room."""
    wanted = {(url.domain, url.fingerprint): url for url in urls}
    for domain, fingerprint, state in await session.batch("url_states", ("domains", "fingerprints"), list(wanted)):
        if state == UrlState.PENDING:
            del wanted[domain, fingerprint]
    if not wanted:
        return {}
    pending = dict(await session.fetch("count_wanted_robots", domains=list({domain for domain, _ in wanted})))
    for key in list(wanted):
        pending[key[0]] += 1
        if pending[key[0]] > MAX_WANTED_ROBOTS:
            del wanted[key]
            changes[f"not_accepted.{NotAccepted.BUDGET}"] += 1
    return wanted


async def _insert_robots(session: Session, wanted: Mapping[tuple[int, int], NewUrl]) -> list[Any]:
    rows = [(domain, fingerprint, url.url) for (domain, fingerprint), url in wanted.items()]
    columns = ("domains", "fingerprints", "urls")
    return await session.batch("insert_wanted_robots", columns, rows, priority=WANTED_ROBOTS, urls_per_add=URLS_PER_ADD)


async def _rewant_robots(session: Session, settled: Sequence[tuple[int, int]]) -> list[Any]:
    columns = ("domains", "fingerprints")
    return await session.batch("rewant_robots", columns, settled, priority=WANTED_ROBOTS, urls_per_add=URLS_PER_ADD)


async def _count_worst(session: Session, excess: Mapping[int, int]) -> int:
    count: int = await session.value(
        "count_worst", domains=list(excess), excess=list(excess.values()), exempt=[], retried=RETRIED
    )
    return count


async def _drop_worst(session: Session, excess: Mapping[int, int]) -> int:
    changes: Counter[str] = Counter()
    trimmed = await trim(session, excess, changes)
    await add_counters(session, changes)
    return len(trimmed)


async def trim(
    session: Session, excess: Mapping[int, int], changes: Counter[str], *, exempt: Collection[int] = ()
) -> list[Trimmed]:
    """Delete the worst URLs of domains that are over their budget and locked."""
    rows = await session.fetch(
        "trim", domains=list(excess), excess=list(excess.values()), exempt=list(exempt), retried=RETRIED
    )
    if not rows:
        return []
    fewer = Counter(row[0] for row in rows)
    lowered = await session.fetch("lower_pending", domains=list(fewer), fewer=list(fewer.values()), retried=RETRIED)
    woken_for_nothing = [domain for domain, only_retries in lowered if only_retries]
    if woken_for_nothing:
        await reschedule(session, woken_for_nothing)
    trimmed = [Trimmed(*row) for row in rows]
    count_trimmed(trimmed, changes)
    return trimmed


async def _insert_urls(session: Session, query: str, urls: Sequence[NewUrl], as_seeds: bool) -> dict[int, int]:
    """Insert the unknown URLs; return their number by domain."""
    domains, _, fingerprints, texts, depths, hops, assume_https, sitemaps_of, penalties = columns_of(urls)
    try:
        inserted = await session.fetch(
            query,
            domains=domains,
            fingerprints=fingerprints,
            urls=texts,
            depths=depths,
            hops=_unless_empty(hops),
            assume_https=_unless_empty(assume_https),
            sitemaps_of=_unless_empty(sitemaps_of),
            penalties=_unless_empty(penalties),
            retried=RETRIED,
            urls_per_add=URLS_PER_ADD,
            as_seeds=as_seeds,
        )
    except asyncpg.UniqueViolationError as error:
        raise Overtaken from error
    return dict(inserted)


def _unless_empty(column: list[Any]) -> list[Any]:
    """Return a column, or an empty one if all its values are empty."""
    return column if any(column) else []
