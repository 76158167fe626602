"""The rows of robots.txt records and of their texts.

A record names its text. Texts are stored apart, compressed and each once, because the ledger names them too.
"""

from __future__ import annotations

import logging
import math
import zlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from rove.frontier.records import LostVisit
from rove.frontier.sanitize import storable
from rove.model.text_hash import robots_name
from rove.model.visits import OriginRecord, RobotsStatus

log = logging.getLogger(__name__)

ORIGIN_PARAMETERS = (
    *("domain", "origin", "status", "robots", "crawl_delay", "failures", "valid_for"),
    *("source", "etag", "last_modified", "hops", "waits_for"),
)


ROBOTS_TEXT_PARAMETERS = ("names", "domains", "bodies")


class RobotsText(NamedTuple):
    """The row of a robots.txt's text."""

    name: str
    domain: int
    """The first domain that had it."""
    body: bytes
    """Compressed."""


def origin_values(record: OriginRecord) -> list[Any]:
    """Return the values of ORIGIN_PARAMETERS."""
    return [
        record.domain,
        record.origin,
        record.status.value,
        robots_name(record.body) if _has_text(record) else "",
        math.ceil(record.crawl_delay * 1000),
        record.failures,
        round(record.valid_for * 1000),
        record.source,
        storable(record.etag),
        storable(record.last_modified),
        record.hops,
        record.waits_for,
    ]


def origin_records(rows: Iterable[Sequence[Any]]) -> list[OriginRecord]:
    """Build robots.txt records from rows of origins. A damaged one is left out, so that it is fetched again."""
    records = []
    for row in rows:
        try:
            records.append(_origin_record(row))
        except (zlib.error, ValueError) as error:
            log.warning("a robots.txt record of domain %d is damaged: %s", row[0], error)
    return records


def _origin_record(row: Sequence[Any]) -> OriginRecord:
    domain, origin, status, body, crawl_delay, failures, valid_for, age, *rest = row
    source, etag, last_modified, hops, waits_for = rest
    if body is None:
        # Without its text, a record must not be revalidated; rules whose text is lost must be read again.
        source = etag = last_modified = ""
        if status == RobotsStatus.RULES:
            status, valid_for = RobotsStatus.NOT_KEPT, 0
    return OriginRecord(
        domain=domain,
        origin=origin,
        status=RobotsStatus(status),
        body=b"" if body is None else decompressed(body),
        crawl_delay=crawl_delay / 1000,
        failures=failures,
        valid_for=valid_for / 1000,
        age=age / 1000,
        source=source,
        etag=etag,
        last_modified=last_modified,
        hops=hops,
        waits_for=waits_for,
    )


def robots_texts(records: Iterable[OriginRecord]) -> list[RobotsText]:
    """Return the texts of robots.txt records, each once, sorted by name."""
    return _texts((record.domain, record.body) for record in records if _has_text(record))


def lost_robots_texts(visits: Iterable[LostVisit]) -> list[RobotsText]:
    """Return the texts of robots.txt files that lost visits had read, each once, sorted by name."""
    return _texts((visit.domain, body) for visit in visits for body in visit.robots)


def without_text(record: OriginRecord, not_kept: Collection[str]) -> OriginRecord:
    """Return a record as it is saved. If its text is not kept, the record has none, and robots.txt is read again."""
    if not not_kept or not _has_text(record) or robots_name(record.body) not in not_kept:
        return record
    record = record.replace(body=b"", source="", etag="", last_modified="")
    if record.status is not RobotsStatus.RULES:
        return record
    return record.replace(status=RobotsStatus.NOT_KEPT, valid_for=0.0)


def decompressed(body: bytes) -> bytes:
    """Return a stored robots.txt body."""
    return zlib.decompress(body)


def _has_text(record: OriginRecord) -> bool:
    """Whether a record has a text. That of rules may be empty; an unreachable one keeps the text that it had."""
    return record.status is RobotsStatus.RULES or bool(record.body)


def _texts(bodies: Iterable[tuple[int, bytes]]) -> list[RobotsText]:
    by_body = {body: domain for domain, body in bodies}
    texts = [RobotsText(robots_name(body), domain, zlib.compress(body, 6)) for body, domain in by_body.items()]
    return sorted(texts)
