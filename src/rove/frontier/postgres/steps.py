"""Steps of the frontier's transactions on PostgreSQL that several of them take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rove.frontier.postgres.database import Session
from rove.model.urls import UrlState


async def settle_urls(
    session: Session, rows: list[tuple[Any, ...]], changes: Counter[str]
) -> Counter[int]:
    """Move URLs out of pending; return how many left it, by domain."""
    if not rows:
        return Counter()
    domains, fingerprints, states, reasons, visits = columns_of(rows, 5)
    moved = await session.fetch(
        "settle_urls",
        domains=domains,
        fingerprints=fingerprints,
        states=states,
        reasons=reasons,
        visits=visits,
    )
    for state, count in Counter(state for _, state in moved).items():
        changes[f"urls.{UrlState(state).name.lower()}"] += count
    changes["urls.pending"] -= len(moved)
    return Counter(domain for domain, _ in moved)


async def add_counters(session: Session, deltas: Mapping[str, int]) -> None:
    """Add to kept counters; the last thing that a transaction does."""
    changed = [(name, amount) for name, amount in deltas.items() if amount]
    if changed:
        names, amounts = columns_of(changed, 2)
        await session.fetch("add_counters", names=names, amounts=amounts)


def columns_of(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    """Rows as columns, one list each."""
    return (
        [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]
    )
