"""The robots.txt records of the frontier on PostgreSQL. Everything here runs inside a transaction."""

from __future__ import annotations

from collections.abc import Sequence

from rove.frontier.postgres.session import Session
from rove.frontier.records import MAX_ROBOTS_BYTES_A_DAY
from rove.frontier.rows.origins import (
    ORIGIN_PARAMETERS,
    ROBOTS_TEXT_PARAMETERS,
    RobotsText,
    origin_values,
    robots_texts,
    without_text,
)
from rove.model.visits import OriginRecord
from rove.policy.constants import DAY


async def put_origins(records: Sequence[OriginRecord], delay: int, session: Session) -> set[str]:
    """Save robots.txt records, and lengthen the delay of their leased domains; return the texts that are not kept."""
    not_kept = await save_robots_texts(session, robots_texts(records))
    rows = {(record.domain, record.origin): origin_values(without_text(record, not_kept)) for record in records}
    await session.batch("put_origins", ORIGIN_PARAMETERS, rows.values())
    domains = list({record.domain for record in records})
    locked = await session.fetch("lock_domains", domains=domains)
    await session.fetch("lengthen_delays", domains=[row[0] for row in locked], delay=delay)
    return not_kept


async def save_robots_texts(session: Session, texts: Sequence[RobotsText]) -> set[str]:
    """Save the texts of robots.txt files, each once; return the names of those that are not kept."""
    if not texts:
        return set()
    names = [text.name for text in texts]
    await session.batch(
        "save_robots_texts", ROBOTS_TEXT_PARAMETERS, texts, day_ms=round(DAY * 1000), most=MAX_ROBOTS_BYTES_A_DAY
    )
    kept = {row[0] for row in await session.fetch("kept_robots_texts", names=names)}
    return set(names) - kept
