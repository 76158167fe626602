"""Exclusions and what is given up, on the embedded frontier."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rove.frontier.bulk_settle import ALONE_MS, BulkSettling
from rove.frontier.priority import HELD, RETRIED
from rove.frontier.sqlite.database import Database, Row
from rove.model.reasons import BlockReason
from rove.model.urls import UrlState
from rove.policy.pacing import FAILURES_BEFORE_LEAVING


class SqliteWithdrawing(BulkSettling):
    """The part of the frontier that takes URLs out of the queue, or puts them back, without a visit."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def exclude(self, domains: Mapping[int, str]) -> int:
        with_pending = await self._database.run(lambda: self._exclude(domains))
        return await self.withdraw_all(with_pending, UrlState.BLOCKED, BlockReason.EXCLUDED)

    async def include(self, domains: Sequence[int]) -> None:
        await self._database.run(lambda: self._include(domains))

    async def domain_names(self, after: int, limit: int) -> list[tuple[int, str]]:
        rows = await self._database.run(
            lambda: self._database.execute("domain_names_after", after=after, limit=limit)
        )
        return [(id, name) for id, name in rows]

    def _exclude(self, domains: Mapping[int, str]) -> list[int]:
        """Mark domains; those that have something pending."""
        with self._database.transaction():
            changes: Counter[str] = Counter()
            with_pending = []
            for domain, name in domains.items():
                before = self._database.execute("domain_before", id=domain)
                pending, excluded, *_ = before[0] if before else (0, 0)
                if pending:
                    with_pending.append(domain)
                if excluded:
                    continue
                self._database.execute("exclude_domain", id=domain, name=name)
                changes["domains.excluded"] += 1
                changes["domains.total"] += not before
                changes["domains.active"] -= pending > 0
            self._count(changes)
        return with_pending

    def _include(self, domains: Sequence[int]) -> None:
        with self._database.transaction():
            changes: Counter[str] = Counter()
            for domain in domains:
                before = self._database.execute("domain_before", id=domain)
                if before and before[0][1]:
                    self._database.execute("include_domain", id=domain)
                    changes["domains.excluded"] -= 1
                    changes["domains.active"] += before[0][0] > 0
                    self._reschedule([domain])
            self._count(changes)

    async def _pending_after(
        self, domain: int, priority: int, position: int, limit: int
    ) -> list[Row]:
        return await self._database.run(
            lambda: self._database.execute(
                "pending_after", domain=domain, priority=priority, position=position, limit=limit
            )
        )

    async def _excluded_after(self, domain: int, fingerprint: int, limit: int) -> list[Row]:
        return await self._database.run(
            lambda: self._database.execute(
                "excluded_after", domain=domain, fingerprint=fingerprint, limit=limit
            )
        )

    async def _close_urls(
        self,
        domain: int,
        fingerprints: list[int],
        state: UrlState,
        reason: str,
        after: int | None,
    ) -> int:
        def work() -> int:
            with self._database.transaction():
                if after is not None:
                    before = self._database.execute("domain_before", id=domain)
                    if [row[3] for row in before] != [after]:
                        return 0
                rows = [[domain, fingerprint, state, reason, None] for fingerprint in fingerprints]
                left = len(self._database.batch("settle_urls", rows))
                changes = {"urls.pending": -left, f"urls.{state.name.lower()}": left}
                if state is UrlState.BLOCKED:
                    changes[f"blocked.{reason}"] = left
                self._change_pending(domain, -left, changes)
            return left

        return await self._database.run(work)

    async def _reopen_urls(self, domain: int, fingerprints: list[int]) -> int:
        def work() -> int:
            with self._database.transaction():
                rows = [[domain, fingerprint] for fingerprint in fingerprints]
                opened = len(self._database.batch("reopen_urls", rows))
                changes = {
                    "urls.pending": opened,
                    "urls.blocked": -opened,
                    f"blocked.{BlockReason.EXCLUDED}": -opened,
                }
                self._change_pending(domain, opened, changes)
            return opened

        return await self._database.run(work)

    def _change_pending(self, domain: int, change: int, changes: dict[str, int]) -> None:
        """So many more or fewer URLs of a domain are pending; whether it is due has to be seen anew."""
        rows = self._database.execute("add_to_pending", domain=domain, change=change)
        for pending, excluded in rows:
            if change and not excluded:
                changes["domains.active"] = int(pending == change) - int(pending == 0)
            if not self._database.execute("domain_before", id=domain)[0][2]:
                self._reschedule([domain])
        self._count(changes)

    def _reschedule(self, domains: list[int]) -> None:
        self._database.batch(
            "reschedule",
            domains,
            retried=RETRIED,
            held=HELD,
            leaving=FAILURES_BEFORE_LEAVING,
            alone=ALONE_MS,
        )

    def _count(self, deltas: Mapping[str, int]) -> None:
        self._database.batch("add_counters", [item for item in deltas.items() if item[1]])
