"""The robots.txt records of the embedded frontier. Everything here runs inside a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rove.frontier.rows.origins import ORIGIN_PARAMETERS, origin_values, robots_texts
from rove.frontier.sqlite.database import SqliteDatabase
from rove.model.visits import OriginRecord


def put_origins(database: SqliteDatabase, records: Sequence[OriginRecord], *, delay: int, now: int) -> None:
    """Save robots.txt records, and lengthen the delay of their leased domains if they ask for it."""
    for record in records:
        values = dict(zip(ORIGIN_PARAMETERS, origin_values(record), strict=True))
        database.execute("put_origin", **values, now=now)
    save_robots_texts(database, robots_texts(records))
    for domain in {record.domain for record in records}:
        longest = database.execute("longest_crawl_delay", domain=domain)[0][0]
        database.execute("set_crawl_delay", domain=domain, longest=longest, delay=delay)


def save_robots_texts(database: SqliteDatabase, texts: Iterable[tuple[int, bytes]]) -> None:
    """Save robots.txt bodies for the audit, each once."""
    for hash, body in texts:
        database.execute("save_robots_text", hash=hash, body=body)
