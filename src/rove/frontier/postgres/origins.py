"""The robots.txt records of the frontier on PostgreSQL. Everything here runs inside a transaction."""

from __future__ import annotations

from collections.abc import Sequence

from rove.frontier.postgres.session import Session
from rove.frontier.rows.origins import ORIGIN_PARAMETERS, origin_values, robots_texts
from rove.model.visits import OriginRecord


async def put_origins(records: Sequence[OriginRecord], delay: int, session: Session) -> None:
    """Save robots.txt records, and lengthen the delay of their leased domains if they ask for it."""
    rows = {(record.domain, record.origin): origin_values(record) for record in records}
    await session.batch("put_origins", ORIGIN_PARAMETERS, rows.values())
    await save_robots_texts(session, robots_texts(records))
    domains = list({record.domain for record in records})
    locked = await session.fetch("lock_domains", domains=domains)
    await session.fetch("lengthen_delays", domains=[row[0] for row in locked], delay=delay)


async def save_robots_texts(session: Session, texts: Sequence[tuple[int, bytes]]) -> None:
    """Save robots.txt bodies for the audit, each once."""
    await session.batch("save_robots_texts", ("hashes", "bodies"), texts)
