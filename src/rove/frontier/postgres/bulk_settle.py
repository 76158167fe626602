"""Exclusions and what is given up, on PostgreSQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from rove.frontier.bulk_settle import ALONE_MS, BulkSettling
from rove.frontier.postgres.database import Database, Session
from rove.frontier.postgres.steps import add_counters, columns_of, settle_urls
from rove.frontier.priority import HELD, RETRIED
from rove.model.reasons import BlockReason
from rove.model.urls import UrlState
from rove.policy.pacing import FAILURES_BEFORE_LEAVING

EXCLUSIONS_PER_STATEMENT = 1_000


class PostgresWithdrawing(BulkSettling):
    """The part of the frontier that takes URLs out of the queue, or puts them back, without a visit."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def exclude(self, domains: Mapping[int, str]) -> int:
        items, left = sorted(domains.items()), 0
        for start in range(0, len(items), EXCLUSIONS_PER_STATEMENT):
            part = items[start : start + EXCLUSIONS_PER_STATEMENT]
            pending = await self._database.transaction("exclude", partial(self._exclude, part))
            left += await self.withdraw_all(pending, UrlState.BLOCKED, BlockReason.EXCLUDED)
        return left

    async def include(self, domains: Sequence[int]) -> None:
        await self._database.transaction("include", partial(self._include, sorted(domains)))

    async def domain_names(self, after: int, limit: int) -> list[tuple[int, str]]:
        rows = await self._database.run(
            "read domains",
            lambda session: session.fetch("domain_names_after", after=after, limit=limit),
        )
        return [(id, name) for id, name in rows]

    async def _exclude(self, domains: list[tuple[int, str]], session: Session) -> list[int]:
        """Mark domains; those that have something pending."""
        ids, names = columns_of(domains, 2)
        locked = await session.fetch("lock_to_exclude", domains=ids, names=names)
        pending = {id: count for id, count, is_new in locked if not is_new}
        await session.fetch("exclude_domains", domains=list(pending))
        changes = {
            "domains.total": len(locked) - len(pending),
            "domains.excluded": len(locked),
            "domains.active": -sum(count > 0 for count in pending.values()),
        }
        await add_counters(session, changes)
        return [row[0] for row in await session.fetch("excluded_with_pending", domains=ids)]

    async def _include(self, domains: list[int], session: Session) -> None:
        await session.fetch("lock_domains", domains=domains)
        included = await session.fetch("include_domains", domains=domains)
        await self._reschedule(session, [id for id, _ in included])
        changes = {
            "domains.excluded": -len(included),
            "domains.active": sum(pending > 0 for _, pending in included),
        }
        await add_counters(session, changes)

    async def _reschedule(self, session: Session, domains: list[int]) -> None:
        await session.fetch(
            "reschedule",
            domains=domains,
            retried=RETRIED,
            held=HELD,
            leaving=FAILURES_BEFORE_LEAVING,
            alone=ALONE_MS,
        )

    async def _pending_after(
        self, domain: int, priority: int, position: int, limit: int
    ) -> list[Any]:
        return await self._database.run(
            "read what is pending",
            lambda session: session.fetch(
                "pending_after", domain=domain, priority=priority, position=position, limit=limit
            ),
        )

    async def _excluded_after(self, domain: int, fingerprint: int, limit: int) -> list[Any]:
        return await self._database.run(
            "read what is excluded",
            lambda session: session.fetch(
                "excluded_after", domain=domain, fingerprint=fingerprint, limit=limit
            ),
        )

    async def _close_urls(
        self,
        domain: int,
        fingerprints: list[int],
        state: UrlState,
        reason: str,
        after: int | None,
    ) -> int:
        async def work(session: Session) -> int:
            locked = await session.fetch("lock_domains", domains=[domain])
            if after is not None and [row[1] for row in locked] != [after]:
                return 0
            rows = [(domain, fingerprint, state, reason, None) for fingerprint in fingerprints]
            changes: Counter[str] = Counter()
            left = (await settle_urls(session, rows, changes)).total()
            if state is UrlState.BLOCKED:
                changes[f"blocked.{reason}"] += left
            await self._change_pending(session, domain, -left, changes)
            return left

        return await self._database.transaction("withdraw", work)

    async def _reopen_urls(self, domain: int, fingerprints: list[int]) -> int:
        async def work(session: Session) -> int:
            await session.fetch("lock_domains", domains=[domain])
            domains = [domain] * len(fingerprints)
            rows = await session.fetch("reopen_urls", domains=domains, fingerprints=fingerprints)
            opened = len(rows)
            changes = Counter(
                {
                    "urls.pending": opened,
                    "urls.blocked": -opened,
                    f"blocked.{BlockReason.EXCLUDED}": -opened,
                }
            )
            await self._change_pending(session, domain, opened, changes)
            return opened

        return await self._database.transaction("reopen", work)

    async def _change_pending(
        self, session: Session, domain: int, change: int, changes: Counter[str]
    ) -> None:
        """So many more or fewer URLs of a domain are pending; whether it is due has to be seen anew."""
        for pending, excluded in await session.fetch(
            "add_to_pending", domain=domain, change=change
        ):
            if change and not excluded:
                changes["domains.active"] += int(pending == change) - int(pending == 0)
        await self._reschedule(session, [domain])
        await add_counters(session, changes)
