"""Adds URLs to the embedded frontier, and deletes the worst URLs of domains that are over their budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

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
from rove.frontier.priority import ALONE, FOREIGN, RETRIED, URLS_PER_ADD, WANTED_ROBOTS, priority_of
from rove.frontier.records import MAX_WANTED_ROBOTS, Added
from rove.frontier.rows.records import url_record
from rove.frontier.sqlite.counters import add_counters
from rove.frontier.sqlite.database import SqliteDatabase
from rove.frontier.sqlite.schedule import reschedule
from rove.model.urls import NewUrl, NotAccepted, UrlState
from rove.policy.budget import DomainBudget
from rove.urls.address_group import address_group

T = TypeVar("T")

NO_ADD = 1 << 62
"""A position after that of every URL."""


class SqliteAdding:
    """Adds URLs for one process."""

    def __init__(self, database: SqliteDatabase, budget: DomainBudget, now: Callable[[], int]) -> None:
        self._database = database
        self._now = now
        self._full = FullDomains(budget, lambda: now() / 1000)

    def add(
        self,
        urls: Sequence[NewUrl],
        *,
        refuse_new_domains: NotAccepted | None,
        exempt: Collection[tuple[int, int]],
        as_seeds: bool,
    ) -> Added:
        """Insert the unseen URLs. In the database's thread only."""
        urls, dropped = self._full.sift(urls, exempt)
        counted = Counter({f"not_accepted.{NotAccepted.BUDGET}": len(dropped)})

        def work(urls: Sequence[NewUrl], changes: Counter[str]) -> Inserted:
            strangers: list[NewUrl] = []
            outside: list[NewUrl] = []
            groups = groups_in(urls)
            now = self._now()
            number = self._database.execute("next_number", name="adds", count=1)[0][0]
            first = number * URLS_PER_ADD
            if refuse_new_domains is not None:
                urls, outside = _of_known_domains(self._database, urls, refuse_new_domains, changes)
            if groups:
                urls, strangers = _within_groups(self._database, urls, groups, changes)
            if not as_seeds:
                _adopt(self._database, urls)
            unseen = _insert_urls(self._database, urls, first, as_seeds=as_seeds)
            made, raised = self._raise_pending(unseen, urls, now, changes)
            trimmed = trim(self._database, self._full.excess(raised), changes, exempt=exempt, first=first)
            return Inserted(unseen.total(), strangers, trimmed, made, outside)

        inserted, collided = self._keeping_apart(urls, counted, work)
        self._full.note(inserted.trimmed)
        return added(inserted, urls, dropped=dropped, collided=collided, refuse_new_domains=refuse_new_domains)

    def _keeping_apart(
        self, urls: Sequence[NewUrl], counted: Counter[str], work: Callable[[Sequence[NewUrl], Counter[str]], T]
    ) -> tuple[T, list[NewUrl]]:
        """Do some work in a transaction, without the URLs whose domain has the id of another; return those too.

        `counted` are the changes of counters so far; `work` adds its own.
        """
        collided: list[NewUrl] = []
        while True:
            changes = Counter(counted)
            try:
                with self._database.transaction():
                    result = work(urls, changes)
                    add_counters(self._database, changes)
                return result, collided
            except DomainCollision:
                ids = list({url.domain for url in urls})
                urls, more = without_collisions(urls, dict(self._database.batch("domain_names", ids)))
                collided += more
                counted[f"not_accepted.{NotAccepted.COLLISION}"] += len(more)

    def excess(self) -> int:
        """Count the URLs that exceed the budgets of their domains. In the database's thread only."""
        return sum(
            self._database.execute(
                "count_worst", domain=domain, excess=count, exempt="[]", foreign=FOREIGN, retried=RETRIED
            )[0][0]
            for slice in self._crowded()
            for domain, count in slice.items()
        )

    def drop_excess(self) -> int:
        """Delete the URLs that exceed the budgets of their domains. In the database's thread only."""
        dropped = 0
        for slice in self._crowded():
            changes: Counter[str] = Counter()
            with self._database.transaction():
                dropped += len(trim(self._database, slice, changes))
                add_counters(self._database, changes)
        return dropped

    def _crowded(self) -> Iterator[dict[int, int]]:
        """Iterate over slices of the domains that are over their budget, each with the number of URLs to delete."""
        after, least = FIRST_DOMAIN, self._full.least_room
        while rows := self._database.execute("crowded_domains", after=after, least=least, limit=DOMAINS_PER_SLICE):
            after = rows[-1][0]
            yield self._full.beyond(rows)

    def want_robots(self, urls: Sequence[NewUrl]) -> None:
        """Make robots.txt files pending that other origins wait for. In the database's thread only."""

        def work(urls: Sequence[NewUrl], changes: Counter[str]) -> None:
            unseen: Counter[int] = Counter()
            now = self._now()
            number = self._database.execute("next_number", name="adds", count=1)[0][0]
            for position, url in enumerate(urls, number * URLS_PER_ADD):
                unseen[url.domain] += _want_robots(self._database, url, position, changes)
            self._raise_pending(+unseen, urls, now, changes)

        self._keeping_apart(urls, Counter(), work)

    def _raise_pending(
        self, unseen: Counter[int], urls: Sequence[NewUrl], now: int, changes: Counter[str]
    ) -> tuple[list[int], list[Raised]]:
        """Count inserted URLs as pending, and create or wake their domains; return the new ones, and the full ones.

        Raise DomainCollision if a domain has the id of another.
        """
        if not unseen:
            return [], []
        names = names_by_id(urls)
        by_count: dict[int, list[int]] = {}
        for id, count in unseen.items():
            by_count.setdefault(count, []).append(id)
        known = [
            row
            for count, ids in by_count.items()
            for row in self._database.batch("raise_pending", ids, unseen=count, now=now, **ALONE)
        ]
        check_names(names, ((row[0], row[6]) for row in known))
        asleep = [row[0] for row in known if not row[5]]
        self._database.batch("wake_domains", asleep, now=now, **ALONE)
        made = _make_domains(self._database, unseen, {row[0] for row in known}, names, now)
        changes["urls.pending"] += unseen.total()
        changes["domains.total"] += len(made)
        changes["domains.active"] += len(made)
        changes["domains.active"] += sum(pending == unseen[id] and not excluded for id, pending, excluded, *_ in known)
        least = self._full.least_room
        return made, [
            *(Raised(id, unseen[id], unseen[id], 0, 0) for id in made if unseen[id] > least),
            *(
                Raised(id, pending, unseen[id], crawl_delay, repeats)
                for id, pending, _, crawl_delay, repeats, *_ in known
                if pending > least
            ),
        ]


def _insert_urls(database: SqliteDatabase, urls: Sequence[NewUrl], first: int, *, as_seeds: bool) -> Counter[int]:
    """Insert the unknown URLs; return their number by domain.

    The batch is sorted like the indexes, so that each index page is visited once. Of a URL that occurs twice, the
    better one comes first and stays: one that is not foreign, then the shallower one, then the earlier one.
    """
    last = database.execute("last_url")[0][0]
    database.insert("insert_urls", sorted(_url_rows(urls, first, as_seeds=as_seeds)))
    inserted = database.execute("domains_inserted", last=last)[0][0]
    return Counter(msgspec.json.decode(inserted, type=list[int]))


def _url_rows(urls: Sequence[NewUrl], first: int, *, as_seeds: bool) -> Iterator[tuple[int | str | None, ...]]:
    """Return the values of insert_urls; sorted rows are in the order of key, priority, depth and position."""
    for position, url in enumerate(urls, first):
        domain, _, fingerprint, text, depth, hops, assume_https, sitemap_of, _, _ = url
        priority = priority_of(url)
        # sqlite3 binds an int faster than a bool.
        https = int(assume_https)
        seed = position if as_seeds else None
        yield domain, fingerprint, priority, depth, position, text, hops, https, sitemap_of, seed


def _adopt(database: SqliteDatabase, urls: Sequence[NewUrl]) -> None:
    """Make pending foreign URLs their domains' own that the domains name now."""
    order = {"foreign": FOREIGN, "retried": RETRIED}
    pending = database.batch("foreign_urls", naming_domains(urls), limit=FOREIGN_URLS_READ, **order)
    database.batch("adopt_urls", adopted_rows(urls, pending), **order)


def _make_domains(
    database: SqliteDatabase, unseen: Counter[int], known: Collection[int], names: Mapping[int, str], now: int
) -> list[int]:
    """Insert the domains that have no row yet; return their ids."""
    if len(known) == len(unseen):
        return []
    made = [id for id in unseen if id not in known]
    database.insert("insert_domains", ((id, names[id], unseen[id], now, 0, address_group(names[id])) for id in made))
    return made


def _want_robots(database: SqliteDatabase, url: NewUrl, position: int, changes: Counter[str]) -> int:
    """Make a robots.txt pending if it is not; return the number of URLs that became pending."""
    key = {"domain": url.domain, "fingerprint": url.fingerprint}
    known = [url_record(row) for row in database.execute("url_record", **key)]
    if known and known[0].state is UrlState.PENDING:
        return 0
    if database.execute("count_wanted_robots", domain=url.domain)[0][0] >= MAX_WANTED_ROBOTS:
        changes[f"not_accepted.{NotAccepted.BUDGET}"] += 1
        return 0
    if known:
        database.execute("rewant_robots", **key, priority=WANTED_ROBOTS, position=position)
        count_wanted_again(known[0].state, known[0].reason, changes)
    else:
        database.execute("insert_wanted_robots", **key, url=url.url, priority=WANTED_ROBOTS, position=position)
    return 1


def trim(
    database: SqliteDatabase,
    excess: Mapping[int, int],
    changes: Counter[str],
    *,
    exempt: Collection[tuple[int, int]] = (),
    first: int = NO_ADD,
) -> list[Trimmed]:
    """Delete the worst URLs of domains that are over their budget. URLs from position `first` on are new."""
    if not excess:
        return []
    exempt_of: dict[int, list[int]] = {}
    for domain, fingerprint in exempt:
        exempt_of.setdefault(domain, []).append(fingerprint)
    rows = [
        row
        for domain, count in excess.items()
        for row in database.execute(
            "trim",
            domain=domain,
            excess=count,
            exempt=msgspec.json.encode(exempt_of.get(domain, [])).decode(),
            first=first,
            foreign=FOREIGN,
            retried=RETRIED,
        )
    ]
    fewer = Counter(row[0] for row in rows)
    lowered = database.batch("lower_pending", list(fewer.items()), retried=RETRIED)
    reschedule(database, [domain for domain, only_retries in lowered if only_retries])
    trimmed = [Trimmed(*row) for row in rows]
    count_trimmed(trimmed, changes)
    return trimmed


def _within_groups(
    database: SqliteDatabase, urls: Sequence[NewUrl], groups: Mapping[int, str], changes: Counter[str]
) -> tuple[list[NewUrl], list[NewUrl]]:
    """Split URLs into those to insert and those of new addresses for which their network has no room."""
    known = {row[0] for row in database.batch("known_domains", list(groups))}
    addresses = {
        group: database.execute("count_addresses", address_group=group, limit=MAX_ADDRESSES)[0][0]
        for group in set(groups.values())
    }
    return within_groups(urls, groups, known=known, addresses=addresses, changes=changes)


def _of_known_domains(
    database: SqliteDatabase, urls: Sequence[NewUrl], reason: NotAccepted, changes: Counter[str]
) -> tuple[list[NewUrl], list[NewUrl]]:
    """Split URLs into those of domains that are known and the others."""
    domains = list({url.domain: None for url in urls})
    known = {row[0] for row in database.batch("known_domains", domains)}
    outside = [url for url in urls if url.domain not in known]
    changes[f"not_accepted.{reason}"] += len(outside)
    return [url for url in urls if url.domain in known] if outside else list(urls), outside
