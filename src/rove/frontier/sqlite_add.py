"""URLs that are offered to the embedded frontier, and those that have to make room for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

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
            raised = self._database.batch(
                "raise_pending",
                [[domain, names[domain], count] for domain, count in unseen.items()],
                now=now,
                number=number,
                leaving=FAILURES_BEFORE_LEAVING,
                alone=ALONE_MS,
            )
            changes["urls.pending"] += unseen.total()
            changes["domains.total"] += sum(row[1] for row in raised)
            changes["domains.active"] += sum(
                pending == unseen[id] and not excluded for pending, _, id, excluded, _, _ in raised
            )
            excess = self._full.excess(
                Raised(id, pending, crawl_delay, repeats)
                for pending, _, id, _, crawl_delay, repeats in raised
                if pending > self._full.least_room
            )
            trimmed = self._trim(excess, kept, first, changes)
            self._count(changes)
        self._full.note(trimmed)
        return added(unseen.total(), dropped, trimmed)

    def _insert_urls(self, urls: Sequence[NewUrl], first: int) -> Counter[int]:
        """Insert those that are not known; return how many were not, by domain."""
        rows = [
            [
                url.domain,
                url.fingerprint,
                url.url,
                priority_of(url),
                first + i,
                url.depth,
                url.hops,
                int(url.bare),
                url.sitemap_of,
            ]
            for i, url in enumerate(urls)
        ]
        rows.sort()  # neighbours in the table are neighbours in the batch: a page is visited once
        return Counter(row[0] for row in self._database.insert("insert_urls", rows))

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
