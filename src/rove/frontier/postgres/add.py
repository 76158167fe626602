"""Adds URLs to the frontier on PostgreSQL, and deletes the worst URLs of domains that are over their budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import asyncpg

from rove.frontier.address_groups import MAX_ADDRESSES, groups_in, within_groups
from rove.frontier.capacity import (
    DOMAINS_PER_SLICE,
    FIRST_DOMAIN,
    FOREIGN_URLS_READ,
    FullDomains,
    Inserted,
    Raised,
    Trimmed,
    added,
    adopted_rows,
    count_trimmed,
    naming_domains,
)
from rove.frontier.collisions import DomainCollision, check_names, names_by_id, without_collisions
from rove.frontier.counters import count_wanted_again
from rove.frontier.postgres.arrays import columns_of
from rove.frontier.postgres.clock import ClockGuard
from rove.frontier.postgres.counters import add_counters
from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.schedule import reschedule
from rove.frontier.postgres.session import Session
from rove.frontier.priority import ALONE, FOREIGN, RETRIED, URLS_PER_ADD, WANTED_ROBOTS
from rove.frontier.records import MAX_WANTED_ROBOTS, Added
from rove.model.urls import NewUrl, NotAccepted, UrlState
from rove.urls.address_group import address_group

T = TypeVar("T")

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
        self,
        urls: Sequence[NewUrl],
        *,
        refuse_new_domains: NotAccepted | None,
        exempt: Collection[tuple[int, int]],
        as_seeds: bool,
    ) -> Added:
        """Insert the unseen URLs."""
        urls, dropped = self._full.sift(urls, exempt)
        if not as_seeds:
            await self._adopt(urls)
        counted = Counter({f"not_accepted.{NotAccepted.BUDGET}": len(dropped)})

        async def work(urls: Sequence[NewUrl], counted: Counter[str]) -> Inserted:
            return await self._add_at_once(partial(self._add, urls, counted, refuse_new_domains, exempt, as_seeds))

        inserted, collided = await self._keeping_apart(urls, counted, work)
        self._full.note(inserted.trimmed)
        return added(inserted, urls, dropped=dropped, collided=collided, refuse_new_domains=refuse_new_domains)

    async def _keeping_apart(
        self,
        urls: Sequence[NewUrl],
        counted: Counter[str],
        work: Callable[[Sequence[NewUrl], Counter[str]], Awaitable[T]],
    ) -> tuple[T, list[NewUrl]]:
        """Do some work without the URLs whose domain has the id of another; return those too.

        `work` is given the URLs and the counters to change, and does all in one transaction.
        """
        collided: list[NewUrl] = []
        while True:
            try:
                return await work(urls, counted), collided
            except DomainCollision:
                ids = list({url.domain for url in urls})
                owners = dict(await self._database.fetch("domain_names", domains=ids))
                urls, more = without_collisions(urls, owners)
                collided += more
                counted[f"not_accepted.{NotAccepted.COLLISION}"] += len(more)

    async def _add_at_once(self, work: Callable[[str, Session], Awaitable[Inserted]]) -> Inserted:
        """Insert URLs with the query that expects no conflict; if there is one, again with the other query."""
        try:
            query = "insert_urls_beside" if self._wary else "insert_urls"
            self._wary = max(0, self._wary - 1)
            return await self._database.transaction("add", partial(work, query))
        except Overtaken:
            self._wary = WARY_ADDS
            return await self._database.transaction("add", partial(work, "insert_urls_beside"))

    async def _adopt(self, urls: Sequence[NewUrl]) -> None:
        """Make pending foreign URLs their domains' own that the domains name now.

        This is a transaction of its own, because an add must not lock domains before it has inserted its URLs.
        """
        domains = naming_domains(urls)
        if not domains:
            return
        pending = await self._database.fetch(
            "foreign_urls", domains=domains, limit=FOREIGN_URLS_READ, foreign=FOREIGN, retried=RETRIED
        )
        rows = adopted_rows(urls, pending)
        if rows:
            await self._database.transaction("adopt", partial(_adopt_urls, rows))

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

        async def work(urls: Sequence[NewUrl], counted: Counter[str]) -> None:
            await self._database.transaction("want robots.txt", partial(self._want_robots, urls, counted))

        await self._keeping_apart(urls, Counter(), work)

    async def _want_robots(self, urls: Sequence[NewUrl], counted: Counter[str], session: Session) -> None:
        changes = Counter(counted)
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
            await self._raise_pending(session, unseen, names_by_id(urls), changes)
        await add_counters(session, changes)

    async def _add(
        self,
        urls: Sequence[NewUrl],
        counted: Counter[str],
        refuse_new_domains: NotAccepted | None,
        exempt: Collection[tuple[int, int]],
        as_seeds: bool,
        query: str,
        session: Session,
    ) -> Inserted:
        names = names_by_id(urls)
        changes = Counter(counted)
        trimmed: list[Trimmed] = []
        made: list[int] = []
        strangers: list[NewUrl] = []
        outside: list[NewUrl] = []
        if refuse_new_domains is not None:
            known = {row[0] for row in await session.fetch("known_domains", domains=list(names))}
            outside = [url for url in urls if url.domain not in known]
            changes[f"not_accepted.{refuse_new_domains}"] += len(outside)
            urls = [url for url in urls if url.domain in known]
        groups = groups_in(urls)
        if groups:
            urls, strangers = await _within_groups(session, urls, groups, changes)
        unseen = await _insert_urls(session, query, urls, as_seeds) if urls else {}
        if unseen:
            made, raised = await self._raise_pending(session, unseen, names, changes)
            excess = self._full.excess(raised)
            trimmed = await trim(session, excess, changes, exempt=exempt) if excess else []
        await add_counters(session, changes)
        return Inserted(sum(unseen.values()), strangers, trimmed, made, outside)

    async def _raise_pending(
        self, session: Session, unseen: Mapping[int, int], names: Mapping[int, str], changes: Counter[str]
    ) -> tuple[list[int], list[Raised]]:
        """Count inserted URLs as pending, and create or wake their domains; return the new ones, and the full ones.

        Raise DomainCollision if a domain has the id of another.
        """
        rows = await session.fetch(
            "raise_pending",
            domains=list(unseen),
            names=[names[domain] for domain in unseen],
            unseen=list(unseen.values()),
            address_groups=_unless_empty([address_group(names[domain]) for domain in unseen]),
            ceiling=self._clock.ceiling(),
            **ALONE,
        )
        check_names(names, ((row[0], row[6]) for row in rows))
        changes["urls.pending"] += sum(unseen.values())
        made = [id for id, _, is_new, *_ in rows if is_new]
        changes["domains.total"] += len(made)
        changes["domains.active"] += sum(
            pending == unseen[id] and not excluded for id, pending, _, excluded, *_ in rows
        )
        return made, [
            Raised(id, pending, unseen[id], crawl_delay, repeats)
            for id, pending, _, _, crawl_delay, repeats, _ in rows
            if pending > self._full.least_room
        ]


async def _within_groups(
    session: Session, urls: Sequence[NewUrl], groups: Mapping[int, str], changes: Counter[str]
) -> tuple[list[NewUrl], list[NewUrl]]:
    """Split URLs into those to insert and those of new addresses for which their network has no room."""
    known = {row[0] for row in await session.fetch("known_domains", domains=list(groups))}
    names = list(set(groups.values()))
    addresses = dict(await session.fetch("count_addresses", address_groups=names, limit=MAX_ADDRESSES))
    return within_groups(urls, groups, known=known, addresses=addresses, changes=changes)


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


async def _adopt_urls(rows: list[tuple[int, int, int, int, int, str]], session: Session) -> None:
    await session.fetch("lock_domains", domains=sorted({domain for domain, *_ in rows}))
    columns = ("domains", "fingerprints", "priorities", "depths", "hops", "sitemaps_of")
    await session.batch("adopt_urls", columns, rows, foreign=FOREIGN, retried=RETRIED)


async def _count_worst(session: Session, excess: Mapping[int, int]) -> int:
    count: int = await session.value(
        "count_worst", domains=list(excess), excess=list(excess.values()), exempt=[], foreign=FOREIGN, retried=RETRIED
    )
    return count


async def _drop_worst(session: Session, excess: Mapping[int, int]) -> int:
    changes: Counter[str] = Counter()
    trimmed = await trim(session, excess, changes)
    await add_counters(session, changes)
    return len(trimmed)


async def trim(
    session: Session, excess: Mapping[int, int], changes: Counter[str], *, exempt: Collection[tuple[int, int]] = ()
) -> list[Trimmed]:
    """Delete the worst URLs of domains that are over their budget and locked."""
    exempt_here = [fingerprint for domain, fingerprint in exempt if domain in excess]
    rows = await session.fetch(
        "trim",
        domains=list(excess),
        excess=list(excess.values()),
        exempt=exempt_here,
        foreign=FOREIGN,
        retried=RETRIED,
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
    domains, _, fingerprints, texts, depths, hops, assume_https, sitemaps_of, penalties, are_foreign = columns_of(urls)
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
            are_foreign=_unless_empty(are_foreign),
            foreign=FOREIGN,
            urls_per_add=URLS_PER_ADD,
            as_seeds=as_seeds,
        )
    except asyncpg.UniqueViolationError as error:
        raise Overtaken from error
    return dict(inserted)


def _unless_empty(column: list[Any]) -> list[Any]:
    """Return a column, or an empty one if all its values are empty."""
    return column if any(column) else []
