"""The kept counters of a frontier, as status shows them."""

from __future__ import annotations

from collections.abc import Mapping

from rove.model import Counts, UrlState


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
    )


def _family(kept: Mapping[str, int], prefix: str) -> dict[str, int]:
    return {name.removeprefix(prefix): n for name, n in kept.items() if name.startswith(prefix)}
