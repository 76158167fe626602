"""URLs that are offered to the embedded frontier, and those that have to make room for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from operator import attrgetter

import msgspec

from rove.budget import DomainBudget
from rove.frontier.contract import Added
from rove.frontier.full import FullDomains, Raised, Trimmed, added
from rove.frontier.order import RETRIED, URLS_PER_ADD, priority_of
from rove.frontier.sqlite_database import Database
from rove.frontier.sqlite_withdrawal import SqliteWithdrawing
from rove.frontier.withdrawal import ALONE_MS
from rove.model import NewUrl, NotAccepted
from rove.pacing import FAILURES_BEFORE_LEAVING

_KEY_AND_DEPTH = attrgetter("domain", "fingerprint", "depth")


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
            names = {url.domain: url.domain_name for url in urls}
            if only_known_domains:
                urls = self._of_known_domains(urls, list(names))
            unseen = self._insert_urls(urls, first)
            excess = self._full.excess(self._raise_pending(unseen, names, now, changes))
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
        keys = list(map(_KEY_AND_DEPTH, urls))
        order = sorted(range(len(urls)), key=keys.__getitem__)
        rows = (_url_row(urls[i], first + i) for i in order)
        self._database.insert("insert_urls", rows)
        inserted = self._database.execute("domains_inserted", last=last)[0][0]
        return Counter(msgspec.json.decode(inserted, type=list[int]))

    def _raise_pending(
        self, unseen: Counter[int], names: Mapping[int, str], now: int, changes: Counter[str]
    ) -> list[Raised]:
        """Count URLs that were inserted as pending, and make or wake their domains; those that may have too many."""
        rules = {"now": now, "leaving": FAILURES_BEFORE_LEAVING, "alone": ALONE_MS}
        known = self._database.batch("domains_to_raise", list(unseen), **rules)
        ids = {row[0] for row in known}
        made = [id for id in unseen if id not in ids] if len(ids) < len(unseen) else []
        self._database.insert(
            "insert_domains", ((id, names[id], unseen[id], now, 0) for id in made)
        )
        self._database.batch("raise_pending", [[row[0], unseen[row[0]]] for row in known])
        self._database.batch("wake_domains", [row[0] for row in known if not row[5]], **rules)
        changes["urls.pending"] += unseen.total()
        changes["domains.total"] += len(made)
        changes["domains.active"] += len(made)
        changes["domains.active"] += sum(not row[1] and not row[2] for row in known)
        least = self._full.least_room
        return [
            *(Raised(id, unseen[id], 0, 0) for id in made if unseen[id] > least),
            *(
                Raised(id, before + unseen[id], crawl_delay, repeats)
                for id, before, _, crawl_delay, repeats, _ in known
                if before + unseen[id] > least
            ),
        ]

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

    def _of_known_domains(self, urls: Sequence[NewUrl], domains: list[int]) -> list[NewUrl]:
        known = {row[0] for row in self._database.batch("known_domains", domains)}
        kept = [url for url in urls if url.domain in known]
        self._count({f"not_accepted.{NotAccepted.OUT_OF_SCOPE}": len(urls) - len(kept)})
        return kept


def _url_row(url: NewUrl, position: int) -> tuple[int | str, ...]:
    """The values of insert_urls."""
    domain, _, fingerprint, text, depth, hops, bare, sitemap_of, _ = url
    priority = priority_of(url)
    return domain, fingerprint, text, priority, position, depth, hops, bare, sitemap_of
