"""The rows of robots.txt records and of the texts that the audit reads. All bodies are stored compressed."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from rove.frontier.records import LostVisit
from rove.frontier.sanitize import storable
from rove.model.visits import OriginRecord, RobotsStatus
from rove.urls.fingerprint import fingerprint_bytes

ORIGIN_PARAMETERS = (
    *("domain", "origin", "status", "body", "crawl_delay", "failures", "valid_for"),
    *("source", "etag", "last_modified", "hops", "waits_for"),
)


def origin_values(record: OriginRecord) -> list[Any]:
    """Return the values of ORIGIN_PARAMETERS."""
    return [
        record.domain,
        record.origin,
        record.status.value,
        _compressed(record.body),
        math.ceil(record.crawl_delay * 1000),
        record.failures,
        round(record.valid_for * 1000),
        record.source,
        storable(record.etag),
        storable(record.last_modified),
        record.hops,
        record.waits_for,
    ]


def origin_record(row: Sequence[Any]) -> OriginRecord:
    """Build a robots.txt record from a row of origins."""
    domain, origin, status, body, crawl_delay, failures, valid_for, age, *rest = row
    source, etag, last_modified, hops, waits_for = rest
    return OriginRecord(
        domain=domain,
        origin=origin,
        status=RobotsStatus(status),
        body=decompressed(body),
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


def robots_texts(records: Iterable[OriginRecord]) -> list[tuple[int, bytes]]:
    """Return the hash and the compressed body of each robots.txt that has rules, for the audit."""
    return _texts(record.body for record in records if record.status is RobotsStatus.RULES)


def lost_robots_texts(visits: Iterable[LostVisit]) -> list[tuple[int, bytes]]:
    """Return the hash and the compressed body of each robots.txt that lost visits had read."""
    return _texts(body for visit in visits for body in visit.robots)


def decompressed(body: bytes) -> bytes:
    """Return a stored robots.txt body."""
    return zlib.decompress(body)


def _texts(bodies: Iterable[bytes]) -> list[tuple[int, bytes]]:
    return list({fingerprint_bytes(body): _compressed(body) for body in bodies}.items())


def _compressed(body: bytes) -> bytes:
    return zlib.compress(body, 6)
