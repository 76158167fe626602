"""Rows of the frontiers as records; what is written and what is read share one mapping."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rove.frontier.contract import DomainRecord, Exclusion, MovedContent, Policy
from rove.frontier.sanitize import storable
from rove.model.ledger import (
    Content,
    DelaySource,
    Location,
    RequestKind,
    RequestRow,
    Settlement,
)
from rove.model.urls import PendingUrl
from rove.model.visits import (
    OriginRecord,
    Pace,
    RobotsStatus,
    VisitResult,
)
from rove.urls.fingerprint import fingerprint_bytes

REQUEST_COLUMNS = (
    *("visit", "seq", "domain", "kind", "url", "fingerprint", "started", "status", "error"),
    *("media_type", "size", "truncated", "content_hash", "target", "title"),
    *("text_file", "text_offset", "text_length", "raw_file", "raw_offset", "raw_length"),
    *("other_domain", "began", "ended", "address", "delay", "delay_from", "process", "fate"),
    *("marks", "is_copy"),
)


def request_row_values(row: RequestRow) -> list[Any]:
    """The REQUEST_COLUMNS of a request."""
    # A visit that came too late settled nothing: its pages are not indexed.
    counts = row.fate is Settlement.SETTLED
    return [
        row.visit,
        row.seq,
        row.domain,
        row.kind.value,
        row.url,
        row.fingerprint,
        row.started,
        row.status,
        row.error,
        storable(row.media_type),
        row.size,
        row.truncated,
        row.content_hash,
        storable(row.target),
        storable(row.title),
        *_location_values(row.text if counts else None),
        *_location_values(row.raw if counts else None),
        row.other_domain,
        row.began,
        row.ended,
        row.address,
        round(row.delay * 1000),
        row.delay_from.value,
        row.process,
        row.fate.value,
        " ".join(row.marks),
        row.is_copy and counts,
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
        status=values[7],
        error=values[8],
        media_type=values[9],
        size=values[10],
        truncated=bool(values[11]),
        content_hash=values[12],
        target=values[13],
        title=values[14],
        text=_location(values[15:18]),
        raw=_location(values[18:21]),
        other_domain=values[21],
        began=values[22],
        ended=values[23],
        address=values[24],
        delay=values[25] / 1000,
        delay_from=DelaySource(values[26]),
        process=values[27],
        fate=Settlement(values[28]),
        marks=tuple(values[29].split()),
        is_copy=bool(values[30]),
        place=place,
    )


def place_values(row: RequestRow) -> list[Any]:
    """Which request it is, and where its page is stored; without a record it is no copy any more."""
    return [
        row.visit,
        row.seq,
        *_location_values(row.text),
        *_location_values(row.raw),
        row.is_copy and row.text is not None,
    ]


def content_values(content: Content) -> list[Any]:
    """The columns of a row of `content`."""
    return [
        content.hash,
        content.checked,
        content.domain,
        content.visit,
        *_location_values(content.where),
    ]


def content_record(row: Sequence[Any], place: str = "") -> Content:
    """A stored text from the columns of known_contents; `place` has it."""
    where = _location(row[4:7])
    assert where is not None, "a text that is stored has a place"
    return Content(
        hash=row[0],
        checked=row[1],
        domain=row[2],
        visit=row[3],
        where=where,
        url=row[7],
        fetched_at=row[8],
        place=place,
    )


def moved_values(moved: MovedContent) -> list[Any]:
    """The values of place_contents: which text it is, what its record names now, and where that is."""
    heir = moved.heir or (None, None)
    return [*place_key(moved.hash, moved.old), *heir, *_location_values(moved.new)]


def place_key(hash: int, where: Location) -> list[Any]:
    """Which text it is, as long as it lies there."""
    return [hash, where.file, where.offset]


def contents_by_hash(visits: Iterable[VisitResult]) -> list[list[Any]]:
    """The texts that visits have stored, each once, in the order in which all processes lock them."""
    found: dict[int, Content] = {}
    for visit in visits:
        for content in visit.contents:
            found.setdefault(content.hash, content)
    return [content_values(found[hash]) for hash in sorted(found)]


def ledger_rows(
    visits: Iterable[VisitResult],
    crawl_delays: Mapping[int, int],
    *,
    policy: Policy,
    process: int,
) -> list[list[Any]]:
    """What goes into the ledger; `crawl_delays`: by the visits whose lease counted, in milliseconds."""
    values = []
    for visit in visits:
        crawl_delay = crawl_delays.get(visit.lease.token)
        is_late = crawl_delay is None
        delay, source = delay_in_force(
            visit,
            policy.delay,
            visit.lease.crawl_delay if crawl_delay is None else crawl_delay / 1000,
        )
        for row in visit.requests:
            fate = Settlement.LATE if is_late else row.fate
            entered = row.replace(delay=delay, delay_from=source, process=process, fate=fate)
            values.append(request_row_values(entered))
    return values


def delay_in_force(
    visit: VisitResult, delay: float, crawl_delay: float
) -> tuple[float, DelaySource]:
    """How long a domain is left alone after a visit, and why."""
    longest = max(delay, crawl_delay, visit.pause)
    if longest == delay:
        return longest, DelaySource.DELAY
    return longest, DelaySource.CRAWL_DELAY if longest == crawl_delay else visit.pause_from


def pending_url(row: Sequence[Any]) -> PendingUrl:
    """A pending URL from the columns of head_urls."""
    _, fingerprint, url, depth, hops, attempts, assume_https, priority, position, sitemap_of = row
    return PendingUrl(
        fingerprint, url, depth, hops, attempts, bool(assume_https), priority, position, sitemap_of
    )


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
        age=row[7] / 1000,
        source=row[8],
        etag=row[9],
        last_modified=row[10],
    )


def origin_values(record: OriginRecord) -> list[Any]:
    """What is kept of a robots.txt record, in the order of the parameters of put_origins."""
    return [
        record.domain,
        record.origin,
        record.status.value,
        zlib.compress(record.body, 6),
        round(record.crawl_delay * 1000),
        record.failures,
        round(record.valid_for * 1000),
        record.source,
        storable(record.etag),
        storable(record.last_modified),
    ]


def robots_texts(records: Iterable[OriginRecord]) -> dict[int, bytes]:
    """The copies of robots.txt to be kept for ever, compressed, by the hash that the ledger names them with."""
    return {
        fingerprint_bytes(record.body): zlib.compress(record.body, 6)
        for record in records
        if record.status is RobotsStatus.RULES
    }


def domain_record(row: Sequence[Any]) -> DomainRecord:
    """A domain from the columns of domain_record."""
    return DomainRecord(
        id=row[0],
        name=row[1],
        ready_in=None if row[2] is None else row[2] / 1000,
        free_in=row[3] / 1000,
        crawl_delay=row[4] / 1000,
        pace=Pace(backoff=row[5] / 1000, failures=row[6], repeats=row[7] / 1000),
        pending=row[8],
        is_leased=bool(row[9]),
        is_excluded=bool(row[10]),
        is_capped=bool(row[11]),
    )


def exclusion(row: Sequence[Any]) -> Exclusion:
    """An exclusion from the columns of exclusion_history."""
    pattern, at, wall, who, reason, lifted_at, lifted_wall, lifted_by = row
    return Exclusion(
        pattern=pattern,
        at=at,
        wall=wall,
        who=who,
        reason=reason,
        lifted_at=lifted_at,
        lifted_wall=lifted_wall or 0.0,
        lifted_by=lifted_by or "",
    )


def _location_values(location: Location | None) -> list[Any]:
    if location is None:
        return [None, None, None]
    return [location.file, location.offset, location.length]


def _location(values: Sequence[Any]) -> Location | None:
    if values[0] is None:
        return None
    return Location(file=values[0], offset=values[1], length=values[2])
