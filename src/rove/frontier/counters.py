"""The counters of a frontier: how a settle changes them, and how status shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rove.frontier.records import Reach
from rove.frontier.rows.visits import Closing
from rove.model.counts import Counts
from rove.model.ledger import RequestKind, Settlement
from rove.model.request_counts import counter_names, request_counts
from rove.model.urls import UrlState
from rove.model.visits import VisitResult


def counts_from(counters: Mapping[str, int], *, ready: int, leased: int, capped: int) -> Counts:
    """Build the counts from the counters, and from the domains that are ready, leased or capped now."""
    total, active = counters.get("domains.total", 0), counters.get("domains.active", 0)
    excluded = counters.get("domains.excluded", 0)
    return Counts(
        urls={state: counters.get(f"urls.{state.name.lower()}", 0) for state in UrlState},
        domains={
            "idle": total - active - excluded + capped,
            "waiting": max(0, active - ready - leased - capped),
            "ready": ready,
            "leased": leased,
            "excluded": excluded,
        },
        pages=counters.get("urls.done", 0),
        bytes=counters.get("bytes", 0),
        request_counts=request_counts(counters),
        not_accepted=_family(counters, "not_accepted."),
        blocked=_family(counters, "blocked."),
        leases=counters.get("leases", 0),
        without_request=_family(counters, "no_request."),
        marks=_family(counters, "marks."),
        copies=counters.get("copies", 0),
        evicted=counters.get("evicted", 0),
        domains_answered=counters.get("domains.answered", 0),
    )


def reach_from(counters: Mapping[str, int], *, responding: Sequence[int]) -> Reach:
    """Build the reach of a crawl from the counters, and from the domains that respond."""
    return Reach(
        domains=counters.get("domains.total", 0),
        answered=counters.get("domains.answered", 0),
        responding=responding,
    )


def count_leases(visits: Iterable[VisitResult], changes: Counter[str]) -> None:
    """Count leases that end with a visit."""
    for visit in visits:
        changes["leases"] += 1
        if visit.pace.answered and not visit.lease.pace.answered:
            changes["domains.answered"] += 1
        if not visit.requested:
            changes[f"no_request.{visit.no_request_reason}"] += 1
        for reason, count in visit.not_accepted.items():
            changes[f"not_accepted.{reason}"] += count
        for row in visit.requests:
            if row.is_copy and row.settlement is Settlement.SETTLED:
                changes["copies"] += 1
            for mark in row.marks:
                changes[f"marks.{mark}"] += 1
        for settled in visit.settled:
            if settled.state is UrlState.BLOCKED:
                changes[f"blocked.{settled.reason}"] += 1


def count_empty_leases(leases: int, changes: Counter[str]) -> None:
    """Count leases that are given back because their domain had no URL."""
    changes["leases"] += leases
    changes["no_request.empty"] += leases


def count_settled(rows: Sequence[Sequence[int]], changes: Counter[str]) -> Counter[int]:
    """Count URLs that left pending, given as (domain, state); return their number by domain."""
    for state, count in Counter(state for _, state in rows).items():
        changes[f"urls.{UrlState(state).name.lower()}"] += count
    changes["urls.pending"] -= len(rows)
    return Counter(domain for domain, _ in rows)


def count_closed(
    rows: Iterable[tuple[int, int, int]], closing: Iterable[Closing], changes: Counter[str]
) -> dict[int, int]:
    """Count domains that became idle, from the rows of close_leases; return the Crawl-delay of each domain."""
    settled = {lease.domain: lease.settled for lease in closing}
    crawl_delays = {}
    for domain, pending, crawl_delay in rows:
        crawl_delays[domain] = crawl_delay
        if not pending and settled[domain]:
            changes["domains.active"] -= 1
    return crawl_delays


def count_requests(rows: Iterable[tuple[str, int, str]], changes: Counter[str]) -> None:
    """Count new rows of the ledger, given as (kind, size, error)."""
    for kind, size, error in rows:
        changes["bytes"] += size
        for name in counter_names(RequestKind(kind), error):
            changes[name] += 1


def count_withdrawn(settled: int, state: UrlState, reason: str, changes: Counter[str]) -> None:
    """Count pending URLs that were settled without a visit; count_settled has counted their state."""
    if state is UrlState.BLOCKED:
        changes[f"blocked.{reason}"] += settled


def count_reopened(urls: int, reason: str, changes: Counter[str]) -> None:
    """Count URLs that were blocked for this reason and are pending again."""
    changes["urls.pending"] += urls
    changes["urls.blocked"] -= urls
    changes[f"blocked.{reason}"] -= urls


def count_wanted_again(state: UrlState, reason: str, changes: Counter[str]) -> None:
    """Count a robots.txt that was settled and is pending again; it was in this state for this reason."""
    changes[f"urls.{state.name.lower()}"] -= 1
    if state is UrlState.BLOCKED:
        changes[f"blocked.{reason}"] -= 1


def count_retried(retried: Mapping[UrlState, Counter[int]], changes: Counter[str]) -> Counter[int]:
    """Count URLs that are tried again, given by their old state and domain; return how many more each has pending."""
    more: Counter[int] = Counter()
    for state, domains in retried.items():
        more.update(dict.fromkeys(domains, 0))
        if state is not UrlState.PENDING:
            changes[f"urls.{state.name.lower()}"] -= domains.total()
            changes["urls.pending"] += domains.total()
            more += domains
    return more


def count_active(pending: int, change: int, is_excluded: bool, changes: Counter[str]) -> None:
    """Count a domain that became active or idle, because its number of pending URLs changed."""
    if change and not is_excluded:
        changes["domains.active"] += int(pending == change) - int(pending == 0)


def _family(counters: Mapping[str, int], prefix: str) -> dict[str, int]:
    """Return the counters with a prefix that are not 0, without it."""
    return {
        name.removeprefix(prefix): number for name, number in counters.items() if number and name.startswith(prefix)
    }
