"""The frontier on PostgreSQL: claim, settle and add for many processes on many machines.

The queries are in postgres.sql, with their reasons and the order of their locks. Here they are put together into
transactions; each may be repeated, as it is when the server was lost and nobody knows whether it had committed.
"""

from __future__ import annotations

import logging
import os
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from rove.frontier.clock import steady_seconds
from rove.frontier.contract import MAX_UNSETTLED, LostVisit, Policy, Vitals
from rove.frontier.counts import lease_counters
from rove.frontier.order import HELD, RETRIED, URLS_PER_ADD, URLS_PER_LEASE
from rove.frontier.postgres_bound import LOWEST, LowerBound
from rove.frontier.postgres_clock import Reading, ServerClock
from rove.frontier.postgres_counts import read_counts
from rove.frontier.postgres_database import Database, Session, WasLost
from rove.frontier.rows import (
    REQUEST_COLUMNS,
    ledger_rows,
    origin_record,
    origin_values,
    pending_url,
    request_row_values,
    robots_texts,
)
from rove.frontier.storable import storable
from rove.frontier.withdrawal import Withdrawing
from rove.model import (
    Counts,
    Lease,
    NewUrl,
    NotAccepted,
    OriginRecord,
    Pace,
    PendingUrl,
    UrlState,
    VisitResult,
)
from rove.pacing import FAILURES_BEFORE_LEAVING
from rove.url import fingerprint_bytes

EXCLUSIONS_PER_STATEMENT = 1_000

log = logging.getLogger(__name__)


class PostgresFrontier(Withdrawing):
    """The frontier of one process of a crawl."""

    def __init__(
        self,
        database: Database,
        policy: Policy,
        machine: int,
        steady: Callable[[], float] = steady_seconds,
    ) -> None:
        self._database = database
        self._policy = policy
        self._machine = machine
        self._steady = steady
        self._bound = LowerBound()
        self._clock = ServerClock(steady)
        self.process = 0

    async def begin(self, run: int | None) -> None:
        """Take part in a run, or only look after the frontier."""

        async def work(session: Session) -> int:
            epoch = self._policy.limits_epoch
            capped = [row[0] for row in await session.fetch("lock_capped", epoch=epoch)]
            await session.fetch("lift_caps", domains=capped, retried=RETRIED, held=HELD)
            if run is None:
                return 0
            process: int = await session.value(
                "begin_process", run=run, machine=self._machine, pid=os.getpid()
            )
            return process

        await self._watch_clock()
        self.process = await self._database.transaction("begin", work)

    async def claim(self, limit: int) -> list[Lease]:
        bound = self._bound.for_claim()
        started = time.perf_counter()
        try:
            rows, urls = await self._database.transaction(
                "claim", partial(self._claim, limit, bound), again=False
            )
        except WasLost:
            return []  # whoever claims may have something to settle first
        seconds = time.perf_counter() - started
        now = rows[0]["now"] if rows else None
        self._bound.claimed(bound, seconds, [row["was_due"] for row in rows], now, limit)
        return [
            Lease(
                domain=row["id"],
                name=row["name"],
                token=row["token"],
                crawl_delay=row["crawl_delay"] / 1000,
                urls=tuple(urls[row["id"]]),
                pace=Pace(backoff=row["backoff"] / 1000, failures=row["failures"]),
                claimed_ms=row["now"],
            )
            for row in sorted(rows, key=lambda row: row["was_due"])
            if row["id"] in urls
        ]

    async def more(self, lease: Lease, after: PendingUrl, limit: int) -> list[PendingUrl]:
        rows = await self._database.run(
            "read more URLs",
            lambda session: session.fetch(
                "more_urls",
                domain=lease.domain,
                priority=after.priority,
                position=after.position,
                limit=limit,
                retried=RETRIED,
            ),
        )
        return [pending_url(row) for row in rows]

    async def settle(self, visits: Sequence[VisitResult]) -> int:
        if not visits:
            return 0
        return await self._database.transaction("settle", partial(self._settle, visits))

    async def add(self, urls: Sequence[NewUrl], *, only_known_domains: bool = False) -> int:
        assert len(urls) <= URLS_PER_ADD, "a batch, not a file"
        if not urls:
            return 0
        work = partial(self._add, urls, only_known_domains)
        return await self._database.transaction("add", work)

    async def states(self, keys: Sequence[tuple[int, int]]) -> dict[tuple[int, int], UrlState]:
        domains, fingerprints = _columns(keys, 2)
        rows = await self._database.run(
            "read states",
            lambda session: session.fetch("url_states", domains=domains, fingerprints=fingerprints),
        )
        return {(domain, fingerprint): UrlState(state) for domain, fingerprint, state in rows}

    async def origins(self, keys: Iterable[tuple[int, str]]) -> list[OriginRecord]:
        domains, origins = _columns(list(keys), 2)
        rows = await self._database.run(
            "read origins",
            lambda session: session.fetch("origins", domains=domains, origins=origins),
        )
        return [origin_record(row) for row in rows]

    async def put_origins(self, records: Sequence[OriginRecord]) -> None:
        if records:
            await self._database.transaction("keep origins", partial(self._put_origins, records))

    async def exclude(self, domains: Mapping[int, str]) -> int:
        items, left = sorted(domains.items()), 0
        for start in range(0, len(items), EXCLUSIONS_PER_STATEMENT):
            part = items[start : start + EXCLUSIONS_PER_STATEMENT]
            pending = await self._database.transaction("exclude", partial(self._exclude, part))
            left += await self.withdraw_all(pending, UrlState.BLOCKED, "excluded")
        return left

    async def include(self, domains: Sequence[int]) -> None:
        await self._database.transaction("include", partial(self._include, sorted(domains)))

    async def domain_names(self, after: int, limit: int) -> list[tuple[int, str]]:
        rows = await self._database.run(
            "read domains",
            lambda session: session.fetch("domain_names_after", after=after, limit=limit),
        )
        return [(id, name) for id, name in rows]

    async def record_lost(self, visits: Sequence[LostVisit]) -> None:
        if visits:
            await self._database.transaction("record what was lost", partial(self._lost, visits))

    async def count(self, deltas: Mapping[str, int]) -> None:
        await self._database.run("count", lambda session: _count(session, deltas))

    async def next_due(self) -> float | None:
        async def work(session: Session) -> int | None:
            for bound in (self._bound.value, LOWEST):
                milliseconds: int | None = await session.value("next_due", bound=bound)
                if milliseconds is not None:
                    return milliseconds
            return None

        due = await self._database.run("see what is due", work)
        return None if due is None else max(0, due) / 1000

    async def pages(self) -> int:
        pages: int = await self._database.run("count pages", lambda session: session.value("pages"))
        return pages

    async def recover(self, processes: Sequence[int] | None = None) -> int:
        async def work(session: Session) -> int:
            owners = processes
            if owners is None:
                rows = await session.fetch(
                    "own_processes", machine=self._machine, process=self.process
                )
                owners = [row[0] for row in rows]
            await session.fetch("mark_gone", processes=list(owners))
            cut = await session.fetch("cut_leases", processes=list(owners), delay=self._delay())
            return len(cut)

        return await self._database.transaction("cut leases", work)

    async def note_alive(self, vitals: Vitals) -> None:
        await self._database.run(
            "note that it is alive",
            lambda session: session.fetch(
                "note_alive",
                process=self.process,
                pages=vitals.pages,
                pages_per_s=vitals.pages_per_second,
                in_flight=vitals.in_flight,
                has_left=vitals.is_leaving,
            ),
        )
        await self._watch_clock()

    async def _watch_clock(self) -> None:
        """See whether the server's clock was set, and take that out of the crawl's."""
        reading = await self._database.run("read the clock", self._read_clock)
        step = self._clock.check(reading)
        if step:
            log.warning("the server's clock was set by %+.1f s; the crawl's is not", step / 1000)
            amend = partial(self._amend_clock, reading.amendment_ms, step)
            await self._database.transaction("amend the clock", amend)
            self._clock.check(await self._database.run("read the clock", self._read_clock))

    async def _read_clock(self, session: Session) -> Reading:
        asked_at = self._steady()
        row = (await session.fetch("server_clock"))[0]
        return Reading(row[0], row[1] or 0, asked_at, self._steady())

    async def _amend_clock(self, known: int, step: int, session: Session) -> None:
        """Unless somebody else has done so since."""
        connection = session.connection
        await connection.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
            f"rove clock {self._database.schema}",
        )
        kept = await session.value("get_meta", key="clock_amendment")
        if int(kept or 0) == known:
            amendment = known - step
            await connection.execute(
                "CREATE OR REPLACE FUNCTION clock_ms() RETURNS bigint LANGUAGE sql VOLATILE AS "
                f"$$ SELECT server_ms() + ({amendment:d}) $$"
            )
            await session.fetch("set_meta", key="clock_amendment", value=str(amendment))

    async def counts(self) -> Counts:
        return await read_counts(self._database)

    @property
    def outages(self) -> int:
        return self._database.outages

    def stop_waiting(self, seconds: float) -> None:
        self._database.stop_waiting(seconds)

    # What follows runs inside a transaction.

    async def _claim(
        self, limit: int, bound: int, session: Session
    ) -> tuple[list[Any], dict[int, list[PendingUrl]]]:
        rows = await session.fetch(
            "lease",
            bound=bound,
            latest=self._clock.latest(),
            limit=limit,
            budget=round(self._policy.budget * 1000),
            delay=self._delay(),
            process=self.process,
        )
        if not rows:
            return rows, {}
        now = rows[0]["now"]
        suspects = [row["id"] for row in rows if row["unsettled"] > MAX_UNSETTLED]
        if suspects:
            await self._give_up_heads(session, suspects, now)
        leased = [row["id"] for row in rows]
        urls = await self._head_urls(session, leased, now, URLS_PER_LEASE)
        empty = [domain for domain in leased if domain not in urls]
        if empty:
            changes = Counter({"leases": len(empty), "unasked.empty": len(empty)})
            kept = {row["id"]: (row["backoff"], row["failures"]) for row in rows}
            unasked = [(domain, 0, False, 0, 0, 0, *kept[domain]) for domain in empty]
            await self._close(session, unasked, changes)
            await _count(session, changes)
        return rows, urls

    async def _head_urls(
        self, session: Session, domains: list[int], now: int, limit: int
    ) -> dict[int, list[PendingUrl]]:
        rows = await session.fetch(
            "head_urls", domains=domains, now=now, limit=limit, retried=RETRIED, held=HELD
        )
        found: dict[int, list[PendingUrl]] = {}
        for row in rows:
            found.setdefault(row[0], []).append(pending_url(row))
        for urls in found.values():
            urls.sort(key=lambda url: (url.priority, url.position))
        return found

    async def _give_up_heads(self, session: Session, domains: list[int], now: int) -> None:
        """Settle the head URL of domains that were leased again and again and never came back."""
        heads = await self._head_urls(session, domains, now, 1)
        reason = f"lost {MAX_UNSETTLED} times with the process that fetched it"
        rows = [
            (domain, urls[0].fingerprint, UrlState.FAILED, reason, None)
            for domain, urls in heads.items()
        ]
        changes: Counter[str] = Counter()
        left = await self._settle_urls(session, rows, changes)
        changes["lost"] += left.total()
        settled = [left[domain] for domain in domains]
        given_up = await session.fetch("give_up", domains=domains, settled=settled)
        changes["domains.active"] -= sum(not pending and left[id] > 0 for id, pending in given_up)
        await _count(session, changes)

    async def _settle(self, visits: Sequence[VisitResult], session: Session) -> int:
        domains, tokens = _columns([(v.lease.domain, v.lease.token) for v in visits], 2)
        locked = await session.fetch("lock_leases", domains=domains, tokens=tokens)
        current = {row[0] for row in locked}
        valid = [visit for visit in visits if visit.lease.domain in current]
        changes: Counter[str] = Counter()
        rows = [
            (visit.lease.domain, s.fingerprint, s.state, storable(s.reason), visit.lease.token)
            for visit in valid
            for s in visit.settled
        ]
        left = await self._settle_urls(session, rows, changes)
        await self._defer_urls(session, valid)
        closing = [
            (
                visit.lease.domain,
                left[visit.lease.domain],
                visit.asked,
                round(max(0.0, visit.since_finish) * 1000),
                sum(s.state is UrlState.DONE for s in visit.settled),
                round(visit.pause * 1000),
                round(visit.pace.backoff * 1000),
                visit.pace.failures,
            )
            for visit in valid
        ]
        crawl_delays = await self._close(session, closing, changes)
        entries = ledger_rows(visits, crawl_delays, policy=self._policy, process=self.process)
        await self._insert_requests(session, entries, changes)
        changes.update(lease_counters(valid))
        await _count(session, changes)
        return len(valid)

    async def _settle_urls(
        self, session: Session, rows: list[tuple[Any, ...]], changes: Counter[str]
    ) -> Counter[int]:
        """Move URLs out of pending; return how many left it, by domain."""
        left: Counter[int] = Counter()
        if not rows:
            return left
        domains, fingerprints, states, reasons, visits = _columns(rows, 5)
        moved = await session.fetch(
            "settle_urls",
            domains=domains,
            fingerprints=fingerprints,
            states=states,
            reasons=reasons,
            visits=visits,
        )
        for domain, state in moved:
            left[domain] += 1
            changes[f"urls.{UrlState(state).name.lower()}"] += 1
        changes["urls.pending"] -= left.total()
        return left

    async def _defer_urls(self, session: Session, visits: list[VisitResult]) -> None:
        rows = [
            (
                visit.lease.domain,
                d.fingerprint,
                HELD if d.failing else RETRIED,
                round(d.seconds * 1000),
                d.attempts,
            )
            for visit in visits
            for d in visit.deferred
        ]
        if not rows:
            return
        domains, fingerprints, priorities, waits, attempts = _columns(rows, 5)
        await session.fetch(
            "defer_urls",
            domains=domains,
            fingerprints=fingerprints,
            priorities=priorities,
            waits=waits,
            attempts=attempts,
        )

    async def _close(
        self,
        session: Session,
        rows: list[tuple[int, int, bool, int, int, int, int, int]],
        changes: Counter[str],
    ) -> dict[int, int]:
        """End leases; the Crawl-delay of each domain."""
        if not rows:
            return {}
        columns = _columns(rows, 8)
        domains, settled, asked, since_finish, pages, pauses, backoffs, failures = columns
        closed = await session.fetch(
            "close_leases",
            domains=domains,
            settled=settled,
            asked=asked,
            since_finish=since_finish,
            pages=pages,
            pauses=pauses,
            backoffs=backoffs,
            failures=failures,
            leaving=FAILURES_BEFORE_LEAVING,
            delay=self._delay(),
            epoch=self._policy.limits_epoch,
            cap=self._policy.max_pages_per_domain,
            retried=RETRIED,
            held=HELD,
        )
        left = {row[0]: row[1] for row in rows}
        changes["domains.active"] -= sum(not pending and left[id] > 0 for id, pending, _ in closed)
        return {id: crawl_delay for id, _, crawl_delay in closed}

    async def _insert_requests(
        self, session: Session, rows: list[list[Any]], changes: Counter[str]
    ) -> None:
        if not rows:
            return
        columns = dict(zip(REQUEST_COLUMNS, _columns(rows, len(REQUEST_COLUMNS)), strict=True))
        inserted = await session.fetch("insert_requests", machine=self._machine, **columns)
        for size, error in inserted:
            changes["requests"] += 1
            changes["bytes"] += size
            if error:
                changes[f"errors.{error}"] += 1

    async def _add(self, urls: Sequence[NewUrl], only_known_domains: bool, session: Session) -> int:
        names = {url.domain: url.domain_name for url in urls}
        changes: Counter[str] = Counter()
        if only_known_domains:
            known = {row[0] for row in await session.fetch("known_domains", domains=list(names))}
            kept = [url for url in urls if url.domain in known]
            changes[f"not_accepted.{NotAccepted.OUT_OF_SCOPE}"] += len(urls) - len(kept)
            urls = kept
        unseen: dict[int, int] = {}
        if urls:
            domains, _, fingerprints, texts, depths, hops, bares, sitemaps_of = _columns(urls, 8)
            inserted = await session.fetch(
                "insert_urls",
                domains=domains,
                fingerprints=fingerprints,
                urls=texts,
                depths=depths,
                hops=hops,
                bares=bares,
                sitemaps_of=sitemaps_of,
                retried=RETRIED,
                urls_per_add=URLS_PER_ADD,
            )
            unseen = dict(inserted)
        if unseen:
            raised = await session.fetch(
                "raise_pending",
                domains=list(unseen),
                names=[names[domain] for domain in unseen],
                unseen=list(unseen.values()),
                leaving=FAILURES_BEFORE_LEAVING,
            )
            changes["urls.pending"] += sum(unseen.values())
            changes["domains.total"] += sum(is_new for _, _, is_new, _ in raised)
            changes["domains.active"] += sum(
                pending == unseen[id] and not excluded for id, pending, _, excluded in raised
            )
        await _count(session, changes)
        return sum(unseen.values())

    async def _put_origins(self, records: Sequence[OriginRecord], session: Session) -> None:
        rows = {(record.domain, record.origin): origin_values(record) for record in records}
        columns = _columns(list(rows.values()), 10)
        domains, origins, statuses, bodies, crawl_delays, failures, valid_for = columns[:7]
        sources, etags, last_modified = columns[7:]
        await session.fetch(
            "put_origins",
            domains=domains,
            origins=origins,
            statuses=statuses,
            bodies=bodies,
            crawl_delays=crawl_delays,
            failures=failures,
            valid_for=valid_for,
            sources=sources,
            etags=etags,
            last_modified=last_modified,
        )
        await _keep_robots_texts(session, robots_texts(records))
        locked = await session.fetch("lock_domains", domains=list(set(domains)))
        ids = [row[0] for row in locked]
        await session.fetch("lengthen_delays", domains=ids, delay=self._delay())

    async def _lost(self, visits: Sequence[LostVisit], session: Session) -> None:
        changes: Counter[str] = Counter()
        postponed = [(v.domain, v.visit, v.earliest) for v in visits if v.earliest]
        domains, numbers, earliest = _columns(postponed, 3)
        await session.fetch("lock_domains", domains=sorted(set(domains)))
        await session.fetch("postpone", domains=domains, visits=numbers, earliest=earliest)
        rows = [request_row_values(row) for visit in visits for row in visit.rows]
        await self._insert_requests(session, rows, changes)
        texts = [text for visit in visits for text in visit.robots]
        compressed = {fingerprint_bytes(text): zlib.compress(text, 6) for text in texts}
        await _keep_robots_texts(session, compressed)
        await _count(session, changes)

    async def _exclude(self, domains: list[tuple[int, str]], session: Session) -> list[int]:
        """Mark domains; those that have something pending."""
        ids, names = _columns(domains, 2)
        locked = await session.fetch("lock_to_exclude", domains=ids, names=names)
        pending = {id: count for id, count, is_new in locked if not is_new}
        await session.fetch("exclude_domains", domains=list(pending))
        changes = {
            "domains.total": len(locked) - len(pending),
            "domains.excluded": len(locked),
            "domains.active": -sum(count > 0 for count in pending.values()),
        }
        await _count(session, changes)
        return [row[0] for row in await session.fetch("excluded_with_pending", domains=ids)]

    async def _include(self, domains: list[int], session: Session) -> None:
        await session.fetch("lock_domains", domains=domains)
        included = await session.fetch("include_domains", domains=domains)
        await self._reschedule(session, [id for id, _ in included])
        changes = {
            "domains.excluded": -len(included),
            "domains.active": sum(pending > 0 for _, pending in included),
        }
        await _count(session, changes)

    async def _reschedule(self, session: Session, domains: list[int]) -> None:
        await session.fetch(
            "reschedule",
            domains=domains,
            retried=RETRIED,
            held=HELD,
            leaving=FAILURES_BEFORE_LEAVING,
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
        self, domain: int, fingerprints: list[int], state: UrlState, reason: str
    ) -> int:
        async def work(session: Session) -> int:
            await session.fetch("lock_domains", domains=[domain])
            rows = [(domain, fingerprint, state, reason, None) for fingerprint in fingerprints]
            changes: Counter[str] = Counter()
            left = (await self._settle_urls(session, rows, changes)).total()
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
                    "blocked.excluded": -opened,
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
        await _count(session, changes)

    def _delay(self) -> int:
        return round(self._policy.delay * 1000)


async def _keep_robots_texts(session: Session, texts: Mapping[int, bytes]) -> None:
    if texts:
        hashes, bodies = _columns(list(texts.items()), 2)
        await session.fetch("keep_robots_texts", hashes=hashes, bodies=bodies)


async def _count(session: Session, deltas: Mapping[str, int]) -> None:
    """Add to kept counters; the last thing that a transaction does."""
    changed = [(name, amount) for name, amount in deltas.items() if amount]
    if changed:
        names, amounts = _columns(changed, 2)
        await session.fetch("add_counters", names=names, amounts=amounts)


def _columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    """Rows as columns, one list each."""
    return (
        [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]
    )
