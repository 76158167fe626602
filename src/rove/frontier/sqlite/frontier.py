"""The embedded frontier: claim, settle and add on one SQLite file.

The queries are in sqlite.sql, with their reasons. Here they are put together into transactions; docs/states.md
draws the states that they move domains and URLs between.
"""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rove.frontier.contract import MAX_UNSETTLED, LostVisit, Policy, Vitals
from rove.frontier.counts import lease_counters
from rove.frontier.fresh_first import FreshFirst
from rove.frontier.priority import HELD, RETRIED, URLS_PER_LEASE
from rove.frontier.rows import (
    ledger_rows,
    origin_record,
    origin_values,
    pending_url,
    request_row_values,
    robots_texts,
)
from rove.frontier.sanitize import storable
from rove.frontier.sqlite.add import SqliteAdding
from rove.frontier.sqlite.contents import SqliteContents
from rove.frontier.sqlite.counts import read_counts
from rove.frontier.sqlite.database import Database, Row
from rove.model.ledger import Counts
from rove.model.reasons import lost_with_process
from rove.model.urls import PendingUrl, UrlState
from rove.model.visits import (
    Lease,
    OriginRecord,
    Pace,
    VisitResult,
)
from rove.urls.fingerprint import fingerprint_bytes

_ORIGIN_PARAMETERS = (
    *("domain", "origin", "status", "body", "crawl_delay", "failures", "valid_for"),
    *("source", "etag", "last_modified"),
)


class SqliteFrontier(SqliteAdding, SqliteContents):
    """The frontier of a crawl that runs on one machine."""

    def __init__(
        self, database: Database, policy: Policy, clock: Callable[[], int] | None = None
    ) -> None:
        super().__init__(database, policy.domain_budget)
        self._policy = policy
        self._given_clock = clock
        self._head_start = FreshFirst()
        self.process = 0
        self.outages = 0

    async def begin(self, run: int | None) -> None:
        """Take part in a run, or only look after the frontier."""
        await self._database.run(lambda: self._begin(run))

    async def claim(self, limit: int) -> list[Lease]:
        return await self._database.run(lambda: self._claim(limit))

    async def more(self, lease: Lease, after: PendingUrl, limit: int) -> list[PendingUrl]:
        rows = await self._database.run(
            lambda: self._database.execute(
                "more_urls",
                domain=lease.domain,
                priority=after.priority,
                position=after.position,
                now=self._now(),
                limit=limit,
                retried=RETRIED,
            )
        )
        return [pending_url(row) for row in rows]

    async def settle(self, visits: Sequence[VisitResult]) -> int:
        return await self._database.run(lambda: self._settle(visits)) if visits else 0

    async def states(self, keys: Sequence[tuple[int, int]]) -> dict[tuple[int, int], UrlState]:
        rows = await self._database.run(lambda: self._database.batch("url_states", list(keys)))
        return {(domain, fingerprint): UrlState(state) for domain, fingerprint, state in rows}

    async def origins(self, keys: Iterable[tuple[int, str]]) -> list[OriginRecord]:
        wanted = list(keys)
        rows = await self._database.run(
            lambda: self._database.batch("origins", wanted, now=self._now())
        )
        return [origin_record(row) for row in rows]

    async def put_origins(self, records: Sequence[OriginRecord]) -> None:
        await self._database.run(lambda: self._put_origins(records))

    async def record_lost(self, visits: Sequence[LostVisit]) -> None:
        await self._database.run(lambda: self._record_lost(visits))

    async def count(self, deltas: Mapping[str, int]) -> None:
        def work() -> None:
            with self._database.transaction():
                self._count(deltas)

        await self._database.run(work)

    async def next_due(self) -> float | None:
        def work() -> float | None:
            rows = self._database.execute("next_due")
            return max(0, rows[0][0] - self._now()) / 1000 if rows else None

        return await self._database.run(work)

    async def pages(self) -> int:
        rows = await self._database.run(lambda: self._database.execute("pages"))
        return int(rows[0][0]) if rows else 0

    async def recover(self, processes: Sequence[int] | None = None) -> int:
        def work() -> int:
            with self._database.transaction():
                owners = processes
                if owners is None:
                    rows = self._database.execute("other_processes", process=self.process)
                    owners = [row[0] for row in rows]
                self._database.batch("mark_gone", list(owners))
                cut = self._database.batch(
                    "cut_leases", list(owners), now=self._now(), delay=self._delay()
                )
            return len(cut)

        return await self._database.run(work)

    async def note_alive(self, vitals: Vitals) -> None:
        def work() -> None:
            with self._database.transaction():
                self._database.execute(
                    "note_alive",
                    now=self._now(),
                    process=self.process,
                    pages=vitals.pages,
                    pages_per_s=vitals.pages_per_second,
                    in_flight=vitals.in_flight,
                    has_left=vitals.is_leaving,
                )

        await self._database.run(work)

    def stop_waiting(self, seconds: float) -> None:
        """A file does not go away."""

    async def counts(self) -> Counts:
        return await self._database.run(lambda: read_counts(self._database, self._now()))

    # What follows runs in the database's thread.

    def _begin(self, run: int | None) -> None:
        self._now = self._given_clock or self._database.clock()
        with self._database.transaction():
            self._lift_old_caps()
            if run is not None:
                rows = self._database.execute(
                    "begin_process", run=run, pid=os.getpid(), now=self._now()
                )
                self.process = rows[0][0]

    def _lift_old_caps(self) -> None:
        """Let domains go on that had reached the limit of an earlier epoch."""
        epoch = self._policy.limits_epoch
        capped = [row[0] for row in self._database.execute("capped_domains", epoch=epoch)]
        self._database.execute("uncap", epoch=epoch)
        self._reschedule(capped)

    def _claim(self, limit: int) -> list[Lease]:
        with self._database.transaction():
            now = self._now()
            due = self._due(limit, now)
            if not due:
                return []
            suspects = [row for row in due if row[6] >= MAX_UNSETTLED]
            self._give_up_heads(suspects, now)
            last = self._database.execute("next_number", name="visits", count=len(due))[0][0]
            tokens = {row[0]: last - i for i, row in enumerate(due)}
            self._database.batch(
                "lease",
                list(tokens.items()),
                now=now,
                budget=round(self._policy.budget * 1000),
                delay=self._delay(),
                process=self.process,
            )
            urls = self._head_urls(list(tokens), now, URLS_PER_LEASE)
            empty = {domain for domain in tokens if domain not in urls}
            self._release([row for row in due if row[0] in empty], now)
        return [
            Lease(
                domain=domain,
                name=name,
                token=tokens[domain],
                crawl_delay=crawl_delay / 1000,
                urls=tuple(urls[domain]),
                pace=Pace(backoff=backoff / 1000, failures=failures, repeats=repeats / 1000),
                claimed_ms=now,
            )
            for domain, name, crawl_delay, backoff, failures, repeats, _ in due
            if domain in urls
        ]

    def _due(self, limit: int, now: int) -> list[Row]:
        """The domains to lease, those that were never leased first where it is their turn."""
        fresh: list[Row] = []
        if self._head_start.takes_turn():
            fresh = self._database.execute("due_fresh", now=now, limit=limit)
            self._head_start.found(len(fresh))
            if len(fresh) == limit:
                return fresh
        taken = {row[0] for row in fresh}
        due = self._database.execute("due", now=now, limit=limit)
        return [*fresh, *(row for row in due if row[0] not in taken)][:limit]

    def _head_urls(self, domains: list[int], now: int, limit: int) -> dict[int, list[PendingUrl]]:
        rows = self._database.batch(
            "head_urls", domains, now=now, limit=limit, retried=RETRIED, held=HELD
        )
        found: dict[int, list[PendingUrl]] = {}
        for row in rows:
            found.setdefault(row[0], []).append(pending_url(row))
        for urls in found.values():
            urls.sort(key=lambda url: (url.priority, url.position))
        return found

    def _give_up_heads(self, due: list[Row], now: int) -> None:
        """Settle the head URL of domains that were leased again and again and never came back."""
        if not due:
            return
        domains = [row[0] for row in due]
        heads = self._head_urls(domains, now, 1)
        reason = lost_with_process(MAX_UNSETTLED)
        rows = [
            [domain, urls[0].fingerprint, UrlState.FAILED, reason, None]
            for domain, urls in heads.items()
        ]
        left = Counter(row[0] for row in self._database.batch("settle_urls", rows))
        self._close_leases([_unasked(row, left[row[0]]) for row in due], now)
        self._count(
            {"urls.pending": -left.total(), "urls.failed": left.total(), "lost": left.total()}
        )

    def _release(self, due: list[Row], now: int) -> None:
        """Take back leases for which there was nothing to do."""
        if due:
            self._close_leases([_unasked(row, 0) for row in due], now)
            self._count({"leases": len(due), "unasked.empty": len(due)})

    def _close_leases(self, rows: list[list[int]], now: int) -> dict[int, int]:
        """End leases; the Crawl-delay of each domain."""
        closed = self._database.batch(
            "settle_domains",
            rows,
            now=now,
            delay=self._delay(),
            epoch=self._policy.limits_epoch,
            cap=self._policy.max_pages_per_domain,
        )
        left = {row[0]: row[1] for row in rows}
        idle = sum(1 for domain, pending, _ in closed if pending == 0 and left[domain])
        self._count({"domains.active": -idle})
        self._reschedule([row[0] for row in rows])
        return {domain: crawl_delay for domain, _, crawl_delay in closed}

    def _settle(self, visits: Sequence[VisitResult]) -> int:
        with self._database.transaction():
            now = self._now()
            tokens = [[visit.lease.domain, visit.lease.token] for visit in visits]
            current = {row[0] for row in self._database.batch("current_tokens", tokens)}
            valid = [visit for visit in visits if visit.lease.token in current]
            changes: Counter[str] = Counter()
            left = self._settle_urls(valid, changes)
            self._defer_urls(valid, now)
            crawl_delays = self._close_leases(
                [
                    [
                        visit.lease.domain,
                        left[visit.lease.domain],
                        int(visit.asked),
                        round(max(0.0, visit.since_finish) * 1000),
                        [s.state for s in visit.settled].count(UrlState.DONE),
                        round(visit.pause * 1000),
                        round(visit.pace.backoff * 1000),
                        visit.pace.failures,
                        round(visit.pace.repeats * 1000),
                    ]
                    for visit in valid
                ],
                now,
            )
            self._end_late([visit for visit in visits if visit.lease.token not in current], now)
            counted = {visit.lease.token: crawl_delays[visit.lease.domain] for visit in valid}
            rows = ledger_rows(visits, counted, policy=self._policy, process=self.process)
            self._insert_requests(rows, changes)
            self._keep_contents(valid)
            changes.update(lease_counters(valid))
            self._count(changes)
            self._database.execute("seen_now", now=now, process=self.process)
        return len(valid)

    def _end_late(self, visits: list[VisitResult], now: int) -> None:
        rows = [
            [
                visit.lease.domain,
                visit.lease.token,
                int(visit.asked),
                round(max(0.0, visit.since_finish) * 1000),
                round(visit.pause * 1000),
            ]
            for visit in visits
        ]
        ended = self._database.batch("end_late", rows, now=now, delay=self._delay())
        self._reschedule([row[0] for row in ended])

    def _settle_urls(self, visits: list[VisitResult], changes: Counter[str]) -> Counter[int]:
        """Move URLs out of pending; return how many left it, by domain."""
        rows = [
            [visit.lease.domain, s.fingerprint, s.state, storable(s.reason), visit.lease.token]
            for visit in visits
            for s in visit.settled
        ]
        settled = self._database.batch("settle_urls", rows)
        for state, count in Counter(state for _, state in settled).items():
            changes[f"urls.{UrlState(state).name.lower()}"] += count
        changes["urls.pending"] -= len(settled)
        return Counter(domain for domain, _ in settled)

    def _defer_urls(self, visits: list[VisitResult], now: int) -> None:
        self._database.batch(
            "defer_urls",
            [
                [
                    visit.lease.domain,
                    d.fingerprint,
                    HELD if d.failing else RETRIED,
                    round(d.seconds * 1000),
                    d.attempts,
                ]
                for visit in visits
                for d in visit.deferred
            ],
            now=now,
        )

    def _insert_requests(self, rows: list[list[Any]], changes: Counter[str]) -> None:
        inserted = self._database.insert("insert_requests", rows)
        changes["requests"] += len(inserted)
        changes["bytes"] += sum(size for size, _ in inserted)
        for error, count in Counter(error for _, error in inserted if error).items():
            changes[f"errors.{error}"] += count

    def _put_origins(self, records: Sequence[OriginRecord]) -> None:
        with self._database.transaction():
            now = self._now()
            for record in records:
                values = dict(zip(_ORIGIN_PARAMETERS, origin_values(record), strict=True))
                self._database.execute("put_origin", **values, now=now)
            self._keep_robots_texts(robots_texts(records))
            for domain in {record.domain for record in records}:
                longest = self._database.execute("longest_crawl_delay", domain=domain)[0][0]
                self._database.execute(
                    "set_crawl_delay", domain=domain, longest=longest, delay=self._delay()
                )

    def _keep_robots_texts(self, texts: Mapping[int, bytes]) -> None:
        for hash, body in texts.items():
            self._database.execute("keep_robots_text", hash=hash, body=body)

    def _record_lost(self, visits: Sequence[LostVisit]) -> None:
        with self._database.transaction():
            changes: Counter[str] = Counter()
            rows = [request_row_values(row) for visit in visits for row in visit.rows]
            self._insert_requests(rows, changes)
            texts = [text for visit in visits for text in visit.robots]
            self._keep_robots_texts({fingerprint_bytes(t): zlib.compress(t, 6) for t in texts})
            self._database.batch(
                "postpone", [[v.domain, v.visit, v.earliest] for v in visits if v.earliest]
            )
            self._count(changes)

    def _delay(self) -> int:
        return round(self._policy.delay * 1000)


def _unasked(due: Row, settled: int) -> list[int]:
    """A lease that ends without a request, as settle_domains takes it: how the domain answers stays as it was."""
    domain, _, _, backoff, failures, repeats, _ = due
    return [domain, settled, 0, 0, 0, 0, backoff, failures, repeats]
