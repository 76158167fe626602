"""URLs that are offered to the frontier on PostgreSQL, and those that have to make room for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import asyncpg

from rove.frontier.bulk_settle import ALONE_MS
from rove.frontier.capacity import FullDomains, Raised, Trimmed, added
from rove.frontier.contract import Added
from rove.frontier.postgres.bulk_settle import PostgresWithdrawing
from rove.frontier.postgres.clock import ClockGuard
from rove.frontier.postgres.database import Database, Session
from rove.frontier.postgres.steps import add_counters, columns_of
from rove.frontier.priority import RETRIED, URLS_PER_ADD
from rove.model.urls import NewUrl, NotAccepted
from rove.policy.pacing import FAILURES_BEFORE_LEAVING

WARY_ADDS = 50
"""After one that was overtaken: where many processes find the same links, few adds are done twice."""


class Overtaken(Exception):
    """Somebody else has just inserted one of the same URLs, and nothing was added; the server logs a duplicate key."""


class PostgresAdding(PostgresWithdrawing):
    """The part of the frontier that takes URLs in."""

    def __init__(self, database: Database, clock: ClockGuard, full: FullDomains) -> None:
        super().__init__(database)
        self._clock = clock
        self._full = full
        self._wary = 0
        """How many adds are to reckon with others that insert the same."""

    async def add(
        self,
        urls: Sequence[NewUrl],
        *,
        only_known_domains: bool = False,
        kept: Collection[int] = (),
    ) -> Added:
        assert len(urls) <= URLS_PER_ADD, "a batch, not a file"
        if not urls:
            return Added()
        offered, dropped = self._full.sift(urls, kept)
        work = partial(self._add, offered, len(dropped), only_known_domains, kept)
        try:
            query = "insert_urls_beside" if self._wary else "insert_urls"
            self._wary = max(0, self._wary - 1)
            unseen, trimmed = await self._database.transaction("add", partial(work, query))
        except Overtaken:
            self._wary = WARY_ADDS
            unseen, trimmed = await self._database.transaction(
                "add", partial(work, "insert_urls_beside")
            )
        self._full.note(trimmed)
        return added(unseen, dropped, trimmed)

    async def _add(
        self,
        urls: Sequence[NewUrl],
        dropped: int,
        only_known_domains: bool,
        kept: Collection[int],
        query: str,
        session: Session,
    ) -> tuple[int, list[Trimmed]]:
        names = {url.domain: url.domain_name for url in urls}
        changes: Counter[str] = Counter({f"not_accepted.{NotAccepted.BUDGET}": dropped})
        trimmed: list[Trimmed] = []
        if only_known_domains:
            known = {row[0] for row in await session.fetch("known_domains", domains=list(names))}
            within = [url for url in urls if url.domain in known]
            changes[f"not_accepted.{NotAccepted.OUT_OF_SCOPE}"] += len(urls) - len(within)
            urls = within
        unseen = await _insert_urls(session, query, urls) if urls else {}
        if unseen:
            raised = await session.fetch(
                "raise_pending",
                domains=list(unseen),
                names=[names[domain] for domain in unseen],
                unseen=list(unseen.values()),
                ceiling=self._clock.ceiling(),
                leaving=FAILURES_BEFORE_LEAVING,
                alone=ALONE_MS,
            )
            changes["urls.pending"] += sum(unseen.values())
            changes["domains.total"] += sum(row[2] for row in raised)
            changes["domains.active"] += sum(
                pending == unseen[id] and not excluded for id, pending, _, excluded, _, _ in raised
            )
            excess = self._full.excess(
                Raised(id, pending, crawl_delay, repeats)
                for id, pending, _, _, crawl_delay, repeats in raised
                if pending > self._full.least_room
            )
            trimmed = await self._trim(session, excess, kept, changes) if excess else []
        await add_counters(session, changes)
        return sum(unseen.values()), trimmed

    async def _trim(
        self,
        session: Session,
        excess: Mapping[int, int],
        kept: Collection[int],
        changes: Counter[str],
    ) -> list[Trimmed]:
        """Take the worst URLs out of domains that have too many, and are locked."""
        rows = await session.fetch(
            "trim",
            domains=list(excess),
            excess=list(excess.values()),
            kept=list(kept),
            retried=RETRIED,
        )
        if not rows:
            return []
        fewer = Counter(row[0] for row in rows)
        lowered = await session.fetch(
            "lower_pending", domains=list(fewer), fewer=list(fewer.values()), retried=RETRIED
        )
        woken = [domain for domain, only_retries in lowered if only_retries]
        if woken:
            await self._reschedule(session, woken)
        changes["urls.pending"] -= len(rows)
        changes[f"not_accepted.{NotAccepted.BUDGET}"] += len(rows)
        return [Trimmed(*row) for row in rows]


async def _insert_urls(session: Session, query: str, urls: Sequence[NewUrl]) -> dict[int, int]:
    """Insert those that are not known; return how many were not, by domain."""
    columns = columns_of(urls, 9)
    domains, _, fingerprints, texts, depths, hops, bares, sitemaps_of, penalties = columns
    try:
        inserted = await session.fetch(
            query,
            domains=domains,
            fingerprints=fingerprints,
            urls=texts,
            depths=depths,
            hops=_unless_empty(hops),
            bares=_unless_empty(bares),
            sitemaps_of=_unless_empty(sitemaps_of),
            penalties=_unless_empty(penalties),
            retried=RETRIED,
            urls_per_add=URLS_PER_ADD,
        )
    except asyncpg.UniqueViolationError as error:
        raise Overtaken from error
    return dict(inserted)


def _unless_empty(column: list[Any]) -> list[Any]:
    """A column; no element at all where there is nothing in any of them."""
    return column if any(column) else []
