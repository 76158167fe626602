"""The rows that the inspecting commands and the catalog read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rove.frontier.contract import DomainRecord, Exclusion, SeedSource, UrlRecord
from rove.model.urls import UrlState
from rove.model.visits import Pace


def url_record(row: Sequence[Any]) -> UrlRecord:
    """Build a URL from a row of url_record."""
    domain, fingerprint, url, state, depth, attempts, reason, visit = row
    return UrlRecord(
        domain=domain,
        fingerprint=fingerprint,
        url=url,
        state=UrlState(state),
        depth=depth,
        attempts=attempts,
        reason=reason,
        visit=visit,
    )


def domain_record(row: Sequence[Any]) -> DomainRecord:
    """Build a domain from a row of domain_record."""
    id, name, ready_in, free_in, crawl_delay, backoff, failures, repeats, pending, *flags = row
    is_leased, is_excluded, is_capped = map(bool, flags)
    return DomainRecord(
        id=id,
        name=name,
        ready_in=None if ready_in is None else ready_in / 1000,
        free_in=free_in / 1000,
        crawl_delay=crawl_delay / 1000,
        pace=Pace(backoff=backoff / 1000, failures=failures, repeats=repeats / 1000),
        pending=pending,
        is_leased=is_leased,
        is_excluded=is_excluded,
        is_capped=is_capped,
    )


def exclusion(row: Sequence[Any]) -> Exclusion:
    """Build an exclusion from a row of exclusion_history."""
    pattern, at, wall, who, reason, lifted_at, lifted_wall, lifted_by = row
    return Exclusion(
        pattern=pattern,
        at=at,
        wall=wall,
        who=who,
        reason=reason,
        lifted_at=lifted_at,
        lifted_wall=lifted_wall or 0.0,
        lifted_by=lifted_by or "",
    )


def seed_source(row: Sequence[Any], *, is_here: bool = True, is_abandoned: bool = False) -> SeedSource:
    """Build a seed file from the first columns of a row of seed_sources."""
    id, path, name, offset, lines, good, bad, finished = row
    return SeedSource(
        id=id,
        path=path,
        name=name,
        offset=offset,
        lines=lines,
        good=good,
        bad=bad,
        finished=bool(finished),
        is_here=is_here,
        is_abandoned=is_abandoned,
    )


def seed_progress(source: SeedSource) -> dict[str, Any]:
    """Return the parameters of update_seed_source."""
    return {
        "id": source.id,
        "offset": source.offset,
        "lines": source.lines,
        "good": source.good,
        "bad": source.bad,
        "finished": source.finished,
    }
