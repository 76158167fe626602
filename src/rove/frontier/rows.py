"""Rows of the frontiers as records; what is written and what is read share one mapping."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from rove.frontier.storable import storable
from rove.model import (
    Location,
    OriginRecord,
    PendingUrl,
    RequestKind,
    RequestRow,
    RobotsStatus,
)

REQUEST_COLUMNS = (
    *(
        "visit",
        "seq",
        "domain",
        "kind",
        "url",
        "fingerprint",
        "started",
        "finished",
        "status",
        "error",
    ),
    *("media_type", "size", "truncated", "content_hash", "target", "title"),
    *("text_file", "text_offset", "text_length", "raw_file", "raw_offset", "raw_length"),
)


def request_row_values(row: RequestRow, *, with_records: bool) -> list[Any]:
    """The REQUEST_COLUMNS of a request."""
    text = row.text if with_records else None
    raw = row.raw if with_records else None
    return [
        row.visit,
        row.seq,
        row.domain,
        row.kind.value,
        row.url,
        row.fingerprint,
        row.started,
        row.finished,
        row.status,
        row.error,
        storable(row.media_type),
        row.size,
        row.truncated,
        row.content_hash,
        storable(row.target),
        storable(row.title),
        *_location_values(text),
        *_location_values(raw),
    ]


def request_row(values: Sequence[Any], place: str = "") -> RequestRow:
    """A request from its REQUEST_COLUMNS; `place` has its page."""
    return RequestRow(
        visit=values[0],
        seq=values[1],
        domain=values[2],
        kind=RequestKind(values[3]),
        url=values[4],
        fingerprint=values[5],
        started=values[6],
        finished=values[7],
        status=values[8],
        error=values[9],
        media_type=values[10],
        size=values[11],
        truncated=bool(values[12]),
        content_hash=values[13],
        target=values[14],
        title=values[15],
        text=_location(values[16:19]),
        raw=_location(values[19:22]),
        place=place,
    )


def pending_url(row: Sequence[Any]) -> PendingUrl:
    """A pending URL from the columns of head_urls."""
    _, fingerprint, url, depth, hops, attempts, bare, priority, position = row
    return PendingUrl(fingerprint, url, depth, hops, attempts, bool(bare), priority, position)


def origin_record(row: Sequence[Any]) -> OriginRecord:
    """A robots.txt record from the columns of origins."""
    return OriginRecord(
        domain=row[0],
        origin=row[1],
        status=RobotsStatus(row[2]),
        body=zlib.decompress(row[3]),
        crawl_delay=row[4] / 1000,
        failures=row[5],
        valid_for=row[6] / 1000,
    )


def _location_values(location: Location | None) -> list[Any]:
    if location is None:
        return [None, None, None]
    return [location.file, location.offset, location.length]


def _location(values: Sequence[Any]) -> Location | None:
    if values[0] is None:
        return None
    return Location(file=values[0], offset=values[1], length=values[2])
