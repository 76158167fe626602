"""URLs that are offered to the embedded frontier, and those that have to make room for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

import msgspec

from rove.frontier.bulk_settle import ALONE_MS
from rove.frontier.capacity import FullDomains, Raised, Trimmed, added
from rove.frontier.contract import Added
from rove.frontier.priority import RETRIED, URLS_PER_ADD, priority_of
from rove.frontier.sqlite.bulk_settle import SqliteWithdrawing
from rove.frontier.sqlite.database import Database
from rove.model.urls import NewUrl, NotAccepted
from rove.policy.budget import DomainBudget
from rove.policy.pacing import FAILURES_BEFORE_LEAVING


class SqliteAdding(SqliteWithdrawing):
    """The part of the frontier that takes URLs in."""

    _now: Callable[[], int]
    """The crawl's clock, once the frontier has begun."""

    def __init__(self, database: Database, budget: DomainBudget) -> None:
        super().__init__(database)
        self._full = FullDomains(budget, lambda: self._now() / 1000)

    async def add(
        self,
        urls: Sequence[NewUrl],
        *,
        only_known_domains: bool = False,
        kept: Collection[int] = (),
    ) -> Added:
        assert len(urls) <= URLS_PER_ADD, "a batch, not a file"
        work = partial(self._add, urls, only_known_domains=only_known_domains, kept=kept)
        return await self._database.run(work) if urls else Added()

    # What follows runs in the database's thread.

    def _add(
        self, urls: Sequence[NewUrl], *, only_known_domains: bool, kept: Collection[int]
    ) -> Added:
        urls, dropped = self._full.sift(urls, kept)
        changes: Counter[str] = Counter({f"not_accepted.{NotAccepted.BUDGET}": len(dropped)})
        with self._database.transaction():
            now = self._now()
            number = self._database.execute("next_number", name="adds", count=1)[0][0]
            first = number * URLS_PER_ADD
            if only_known_domains:
                urls = self._of_known_domains(urls)
            unseen = self._insert_urls(urls, first)
            excess = self._full.excess(self._raise_pending(unseen, urls, now, changes))
            trimmed = self._trim(excess, kept, first, changes)
            self._count(changes)
        self._full.note(trimmed)
        return added(unseen.total(), dropped, trimmed)

    def _insert_urls(self, urls: Sequence[NewUrl], first: int) -> Counter[int]:
        """Insert those that are not known; return how many were not, by domain.

        Neighbours in the indexes are neighbours in the batch, so that a page is visited once; of the same URL twice the
        shallower, and of those the first, comes before the other and stays.
        """
        last = self._database.execute("last_url")[0][0]
        self._database.insert("insert_urls", sorted(_url_rows(urls, first)))
        inserted = self._database.execute("domains_inserted", last=last)[0][0]
        return Counter(msgspec.json.decode(inserted, type=list[int]))

    def _raise_pending(
        self, unseen: Counter[int], urls: Sequence[NewUrl], now: int, changes: Counter[str]
    ) -> list[Raised]:
        """Count URLs that were inserted as pending, and make or wake their domains; those that may have too many."""
        rules = {"now": now, "leaving": FAILURES_BEFORE_LEAVING, "alone": ALONE_MS}
        equally: dict[int, list[int]] = {}
        for id, count in unseen.items():
            equally.setdefault(count, []).append(id)
        known = [
            row
            for count, ids in equally.items()
            for row in self._database.batch("raise_pending", ids, unseen=count, **rules)
        ]
        self._database.batch("wake_domains", [row[0] for row in known if not row[5]], **rules)
        made = self._make_domains(unseen, {row[0] for row in known}, urls, now)
        changes["urls.pending"] += unseen.total()
        changes["domains.total"] += len(made)
        changes["domains.active"] += len(made)
        changes["domains.active"] += sum(
            pending == unseen[id] and not excluded for id, pending, excluded, *_ in known
        )
        least = self._full.least_room
        return [
            *(Raised(id, unseen[id], 0, 0) for id in made if unseen[id] > least),
            *(
                Raised(id, pending, crawl_delay, repeats)
                for id, pending, _, crawl_delay, repeats, _ in known
                if pending > least
            ),
        ]

    def _make_domains(
        self, unseen: Counter[int], known: Collection[int], urls: Sequence[NewUrl], now: int
    ) -> list[int]:
        """Make the domains that have no row yet."""
        if len(known) == len(unseen):
            return []
        made = [id for id in unseen if id not in known]
        names = {url.domain: url.domain_name for url in urls}
        self._database.insert(
            "insert_domains", ((id, names[id], unseen[id], now, 0) for id in made)
        )
        return made

    def _trim(
        self, excess: Mapping[int, int], kept: Collection[int], first: int, changes: Counter[str]
    ) -> list[Trimmed]:
        """Take the worst URLs out of domains that have too many."""
        if not excess:
            return []
        exempt = msgspec.json.encode(list(kept)).decode()
        rows = [
            row
            for domain, count in excess.items()
            for row in self._database.execute(
                "trim", domain=domain, excess=count, kept=exempt, first=first, retried=RETRIED
            )
        ]
        fewer = Counter(row[0] for row in rows)
        lowered = self._database.batch("lower_pending", list(fewer.items()), retried=RETRIED)
        self._reschedule([domain for domain, only_retries in lowered if only_retries])
        changes["urls.pending"] -= len(rows)
        changes[f"not_accepted.{NotAccepted.BUDGET}"] += len(rows)
        return [Trimmed(*row) for row in rows]

    def _of_known_domains(self, urls: Sequence[NewUrl]) -> list[NewUrl]:
        domains = list({url.domain: None for url in urls})
        known = {row[0] for row in self._database.batch("known_domains", domains)}
        kept = [url for url in urls if url.domain in known]
        self._count({f"not_accepted.{NotAccepted.OUT_OF_SCOPE}": len(urls) - len(kept)})
        return kept


def _url_rows(urls: Sequence[NewUrl], first: int) -> Iterator[tuple[int | str, ...]]:
    """The values of insert_urls, so that sorted rows are in the order of the key, the depth and the position."""
    for position, url in enumerate(urls, first):
        domain, _, fingerprint, text, depth, hops, assume_https, sitemap_of, _ = url
        priority = priority_of(url)
        # An int, as sqlite3 looks long for a way to bind a bool.
        is_bare = int(assume_https)
        yield domain, fingerprint, depth, position, text, priority, hops, is_bare, sitemap_of
