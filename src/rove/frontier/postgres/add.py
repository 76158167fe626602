"""Adds URLs to the frontier on PostgreSQL, and deletes the worst URLs of domains that are over their budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import asyncpg

from rove.frontier.capacity import FullDomains, Raised, Trimmed, added
from rove.frontier.contract import Added
from rove.frontier.postgres.arrays import columns_of
from rove.frontier.postgres.clock import ClockGuard
from rove.frontier.postgres.counters import add_counters
from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.schedule import reschedule
from rove.frontier.postgres.session import Session
from rove.frontier.priority import ALONE, RETRIED, URLS_PER_ADD
from rove.model.urls import NewUrl, NotAccepted

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
            trimmed = await _trim(session, excess, exempt, changes) if excess else []
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
            Raised(id, pending, crawl_delay, repeats)
            for id, pending, _, _, crawl_delay, repeats in rows
            if pending > self._full.least_room
        ]


async def _trim(
    session: Session, excess: Mapping[int, int], exempt: Collection[int], changes: Counter[str]
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
    changes["urls.pending"] -= len(rows)
    changes[f"not_accepted.{NotAccepted.BUDGET}"] += len(rows)
    return [Trimmed(*row) for row in rows]


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
