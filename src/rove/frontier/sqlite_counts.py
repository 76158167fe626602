"""The kept counters of the embedded frontier, as status shows them."""

from __future__ import annotations

from rove.frontier.sqlite_database import Database
from rove.model import Counts, UrlState


def read_counts(database: Database, now: int) -> Counts:
    """Counters, and what depends on the time: ready and leased domains, from their own small indexes."""
    with database.snapshot():
        kept: dict[str, int] = dict(database.execute("counters"))
        ready = database.execute("count_ready", now=now)[0][0]
        leased = database.execute("count_leased", now=now)[0][0]
        capped = database.execute("count_capped")[0][0]
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
    )


def _family(kept: dict[str, int], prefix: str) -> dict[str, int]:
    return {name.removeprefix(prefix): n for name, n in kept.items() if name.startswith(prefix)}
