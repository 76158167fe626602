"""The kept counters of a frontier, as status shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from rove.model.ledger import Counts, Settlement
from rove.model.urls import UrlState
from rove.model.visits import VisitResult


def counts_from(kept: Mapping[str, int], *, ready: int, leased: int, capped: int) -> Counts:
    """From the counters, and from what depends on the time: domains that are ready, leased or capped."""
    total, active = kept.get("domains.total", 0), kept.get("domains.active", 0)
    excluded = kept.get("domains.excluded", 0)
    return Counts(
        urls={state: kept.get(f"urls.{state.name.lower()}", 0) for state in UrlState},
        domains={
            "idle": total - active - excluded + capped,
            "waiting": max(0, active - ready - leased - capped),
            "ready": ready,
            "leased": leased,
            "excluded": excluded,
        },
        pages=kept.get("urls.done", 0),
        bytes=kept.get("bytes", 0),
        requests=kept.get("requests", 0),
        not_accepted=_family(kept, "not_accepted."),
        failures=_family(kept, "errors."),
        blocked=_family(kept, "blocked."),
        leases=kept.get("leases", 0),
        unasked=_family(kept, "unasked."),
        marks=_family(kept, "marks."),
        copies=kept.get("copies", 0),
    )


def lease_counters(visits: Iterable[VisitResult]) -> Counter[str]:
    """What is counted of leases that end."""
    changes: Counter[str] = Counter()
    for visit in visits:
        changes["leases"] += 1
        if not visit.asked:
            changes[f"unasked.{visit.unasked_because}"] += 1
        for reason, count in visit.not_accepted.items():
            changes[f"not_accepted.{reason}"] += count
        for row in visit.requests:
            if row.is_copy and row.fate is Settlement.SETTLED:
                changes["copies"] += 1
            for mark in row.marks:
                changes[f"marks.{mark}"] += 1
        for settled in visit.settled:
            if settled.state is UrlState.BLOCKED:
                changes[f"blocked.{settled.reason}"] += 1
    return changes


def _family(kept: Mapping[str, int], prefix: str) -> dict[str, int]:
    found = ((name.removeprefix(prefix), n) for name, n in kept.items() if name.startswith(prefix))
    return {name: n for name, n in found if n}
