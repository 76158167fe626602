"""The robots.txt records of the embedded frontier. Everything here runs inside a transaction."""

from __future__ import annotations

from collections.abc import Sequence

from rove.frontier.records import MAX_ROBOTS_BYTES_A_DAY
from rove.frontier.rows.origins import ORIGIN_PARAMETERS, RobotsText, origin_values, robots_texts, without_text
from rove.frontier.sqlite.database import SqliteDatabase
from rove.model.visits import OriginRecord
from rove.policy.constants import DAY


def put_origins(database: SqliteDatabase, records: Sequence[OriginRecord], *, delay: int, now: int) -> set[str]:
    """Save robots.txt records, and lengthen the delay of their leased domains; return the texts that are not kept."""
    not_kept = save_robots_texts(database, robots_texts(records), now=now)
    for record in records:
        values = dict(zip(ORIGIN_PARAMETERS, origin_values(without_text(record, not_kept)), strict=True))
        database.execute("put_origin", **values, now=now)
    for domain in {record.domain for record in records}:
        longest = database.execute("longest_crawl_delay", domain=domain)[0][0]
        database.execute("set_crawl_delay", domain=domain, longest=longest, delay=delay)
    return not_kept


def save_robots_texts(database: SqliteDatabase, texts: Sequence[RobotsText], *, now: int) -> set[str]:
    """Save the texts of robots.txt files, each once; return the names of those that are not kept."""
    since = now - round(DAY * 1000)
    for name, domain, body in texts:
        database.execute(
            "save_robots_text", name=name, domain=domain, body=body, now=now, since=since, most=MAX_ROBOTS_BYTES_A_DAY
        )
    kept = {row[0] for row in database.batch("kept_robots_texts", [text.name for text in texts])}
    return {text.name for text in texts} - kept
