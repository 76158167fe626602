"""The rows of a claim and of a settle."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rove.frontier.priority import DEATHS_TO_CONVICT, HELD, RETRIED, is_foreign_turn, order_in_lease, suspect_deaths
from rove.frontier.records import LostVisit, Suspicion
from rove.frontier.sanitize import storable
from rove.model.reasons import FailReason
from rove.model.urls import PendingUrl, UrlState
from rove.model.visits import Lease, Pace, VisitResult
from rove.urls.origin import is_plausible


class LeasedDomain(NamedTuple):
    """A domain that a claim leases. Durations are in milliseconds."""

    id: int
    name: str
    crawl_delay: int
    backoff: int
    failures: int
    repeats: int
    """Per mille."""
    answered: int
    leases: int
    """How often it was leased, with this time."""
    was_due: int
    not_before: int
    """When the delay after the last visit ended; 0 before the first one."""
    token: int
    now: int

    @property
    def foreign_first(self) -> bool:
        """Whether this lease takes the URLs first that only other domains name."""
        return is_foreign_turn(self.leases)

    def lease(self, urls: Sequence[PendingUrl]) -> Lease:
        """Build the lease for these URLs."""
        return Lease(
            domain=self.id,
            name=self.name,
            token=self.token,
            crawl_delay=self.crawl_delay / 1000,
            urls=tuple(urls),
            pace=pace_from(self.backoff, self.failures, self.repeats, self.answered),
            claimed_ms=self.now,
            rested=(self.now - self.not_before) / 1000 if self.not_before else math.inf,
        )

    def closing(self, settled: int = 0) -> Closing:
        """End the lease without a request; the domain's pace stays as it was."""
        return Closing(self.id, settled, False, 0, 0, 0, self.backoff, self.failures, self.repeats, bool(self.answered))


class Closing(NamedTuple):
    """A lease that ends, in the order of the parameters of close_leases. Durations are in milliseconds."""

    domain: int
    settled: int
    """URLs that left pending."""
    requested: bool
    since_finish: int
    """At most the true time, so that the delay never ends early."""
    pages: int
    pause: int
    backoff: int
    failures: int
    repeats: int
    answered: bool


def pace_from(backoff: int, failures: int, repeats: int, answered: int) -> Pace:
    """Build the pace of a domain from its columns."""
    return Pace(backoff=backoff / 1000, failures=failures, repeats=repeats / 1000, answered=bool(answered))


def pending_url(row: Sequence[Any]) -> PendingUrl:
    """Build a pending URL from a row of head_urls or more_urls."""
    _, fingerprint, url, depth, hops, attempts, assume_https, priority, position, sitemap_of, is_robots = row
    return PendingUrl(
        fingerprint, url, depth, hops, attempts, bool(assume_https), priority, position, sitemap_of, bool(is_robots)
    )


def urls_by_domain(rows: Iterable[Sequence[Any]], domains: Iterable[LeasedDomain]) -> dict[int, list[PendingUrl]]:
    """Group the rows of head_urls by domain, in the order in which the lease takes them."""
    urls: dict[int, list[PendingUrl]] = {}
    for row in rows:
        urls.setdefault(row[0], []).append(pending_url(row))
    for domain in domains:
        heads = urls.get(domain.id, ())
        if len(heads) > 1:
            foreign_first = domain.foreign_first
            heads.sort(key=lambda url: order_in_lease(url.priority, url.position, foreign_first=foreign_first))
    return urls


def without_damaged(urls: dict[int, list[PendingUrl]]) -> list[tuple[Any, ...]]:
    """Remove URLs whose rows are damaged; return the rows of settle_urls that fail them."""
    rows = []
    for domain, heads in list(urls.items()):
        damaged = [url for url in heads if not is_plausible(url.url)]
        if damaged:
            urls[domain] = [url for url in heads if url not in damaged]
            if not urls[domain]:
                del urls[domain]
            rows += [(domain, url.fingerprint, UrlState.FAILED, FailReason.DAMAGED, None) for url in damaged]
    return rows


def intact_urls(rows: Iterable[Sequence[Any]]) -> list[PendingUrl]:
    """Return the pending URLs of rows that are not damaged."""
    return [url for row in rows if is_plausible((url := pending_url(row)).url)]


def postponed_rows(visits: Iterable[LostVisit]) -> list[tuple[int, int, int]]:
    """Return the rows of postpone: the domains of lost visits whose responses asked for a delay."""
    return [(visit.domain, visit.visit, visit.earliest) for visit in visits if visit.earliest]


def settled_rows(visits: Iterable[VisitResult]) -> list[tuple[Any, ...]]:
    """Return the rows of settle_urls: domain, fingerprint, state, reason, visit."""
    return [
        (visit.lease.domain, s.fingerprint, s.state, storable(s.reason), visit.lease.token)
        for visit in visits
        for s in visit.settled
    ]


def suspect_rows(visits: Iterable[LostVisit]) -> list[tuple[int, int, int]]:
    """Return the rows of suspect_urls: domain, fingerprint, and the deaths before this one; -1: no evidence."""
    return [
        (visit.domain, visit.suspect.fingerprint, -1 if visit.suspect.deaths is None else visit.suspect.deaths)
        for visit in visits
        if visit.suspect is not None
    ]


class SuspectedUrl(NamedTuple):
    """A row that suspect_urls returns."""

    domain: int
    fingerprint: int
    url: str
    priority: int

    @property
    def suspicion(self) -> Suspicion:
        """What becomes of the URL."""
        deaths = suspect_deaths(self.priority)
        assert deaths is not None, "the query has made it a suspect"
        return Suspicion(url=self.url, deaths=deaths, has_failed=deaths >= DEATHS_TO_CONVICT)


def convicted_rows(suspects: Iterable[SuspectedUrl]) -> list[tuple[Any, ...]]:
    """Return the rows of settle_urls for the suspects that fail."""
    return [
        (suspect.domain, suspect.fingerprint, UrlState.FAILED, FailReason.KILLS_PROCESS, None)
        for suspect in suspects
        if suspect.suspicion.has_failed
    ]


def deferred_rows(visits: Iterable[VisitResult]) -> list[tuple[Any, ...]]:
    """Return the rows of defer_urls: domain, fingerprint, priority, milliseconds, attempts, reason."""
    return [
        (
            *(visit.lease.domain, d.fingerprint, HELD if d.failing else RETRIED),
            *(round(d.seconds * 1000), d.attempts, storable(d.reason)),
        )
        for visit in visits
        for d in visit.deferred
    ]


def closing_rows(visits: Iterable[VisitResult], settled: Counter[int]) -> list[Closing]:
    """Return the leases that visits end; `settled` counts the URLs that left pending, by domain."""
    return [
        Closing(
            visit.lease.domain,
            settled[visit.lease.domain],
            visit.requested,
            _since_finish(visit),
            [s.state for s in visit.settled].count(UrlState.DONE),
            math.ceil(visit.pause * 1000),
            round(visit.pace.backoff * 1000),
            visit.pace.failures,
            round(visit.pace.repeats * 1000),
            visit.pace.answered,
        )
        for visit in visits
    ]


def late_rows(visits: Iterable[VisitResult]) -> list[tuple[int, int, bool, int, int]]:
    """Return the rows of end_late: domain, token, requested, milliseconds since the finish, pause."""
    return [
        (visit.lease.domain, visit.lease.token, visit.requested, _since_finish(visit), math.ceil(visit.pause * 1000))
        for visit in visits
    ]


def _since_finish(visit: VisitResult) -> int:
    # The crawl's clock is truncated to milliseconds and may lag by almost one. A delay must not end early for that.
    return math.floor(max(0.0, visit.since_finish) * 1000) - 1
