"""Rows of the ledger as people and programs read them."""

from __future__ import annotations

from typing import Any

from rove.inspect.open_crawl import StoredText
from rove.model.ledger import DelaySource, Location, RequestRow, Settlement
from rove.model.reasons import status_error
from rove.notation.humanize import hash_text, iso_time, utc_text

DELAY_REASONS = {
    DelaySource.DELAY: "set by the operator",
    DelaySource.CRAWL_DELAY: "the Crawl-delay of robots.txt",
    DelaySource.RETRY_AFTER: "the Retry-After of its response",
    DelaySource.BACKOFF: "it answered 429 or 503, or with a bot wall",
    DelaySource.SLOW: "ten times as long as its last response took",
    DelaySource.FAILURES: "it did not answer",
    DelaySource.EXPENSIVE: "its last page was large, so that reading it took much CPU time",
    DelaySource.REPEATS: "its pages repeat earlier texts",
    DelaySource.SPREAD: "second visits are spread out, because many domains were visited at once",
}

_SETTLEMENTS = {
    Settlement.SETTLED: "",
    Settlement.LATE: "too late to count",
    Settlement.LOST: "cut short by a crash",
    Settlement.OFFLINE: "not counted, because no site responded at that time",
}


def outcome_text(row: RequestRow) -> str:
    """Return the outcome of a request: its status, its error, or both."""
    if not row.status:
        return row.error or "no answer known"
    if row.error and row.error != status_error(row.status):
        return f"{row.status} {row.error}"
    return str(row.status)


def settlement_text(row: RequestRow) -> str:
    """Return why the visit of a request did not count; '' if it did."""
    return _SETTLEMENTS[row.settlement]


def is_stored(row: RequestRow) -> bool:
    """Whether a request brought a page that was stored."""
    return row.text is not None or row.raw is not None


def page_line(row: RequestRow) -> str:
    """Return the line that `pages` prints for a page."""
    outcome = str(row.status) if row.status else row.error
    what = row.title or (f"-> {row.target}" if row.target else row.error)
    return f"{utc_text(row.started)}  {outcome:>4}  {row.size:>9,}  {row.url}  {what}".rstrip()


def page_json(row: RequestRow) -> dict[str, Any]:
    """Return the object that `pages --json` prints for a page: the same keys for every page, null where empty."""
    return {
        "url": row.url,
        "fetched": iso_time(row.started),
        **_answer_json(row),
        "truncated": row.truncated,
        "marks": list(row.marks),
        "title": row.title or None,
        "language": row.languages[0].code if row.languages else None,
        "language_score": row.languages[0].percent / 100 if row.languages else None,
        "languages": [{"code": code, "share": percent / 100} for code, percent in row.languages],
        "simhash": hash_text(row.simhash),
        "usage": " ".join(row.usage) or None,
        "usage_from": list(row.usage_from),
        "visit": row.visit,
        "fate": _fate(row),
        "text_record": None if row.is_copy else _location_json(row.text),
        "revisit_record": _location_json(row.text) if row.is_copy else None,
        "raw_record": _location_json(row.raw),
    }


def page_with_records(stored: StoredText) -> dict[str, Any]:
    """Return what `export` tells of a page without reading its text: the same keys for every page."""
    return {
        **page_json(stored.row),
        "text_record": _location_json(stored.where),
        "copy_of": stored.copy_of or None,
    }


def request_json(row: RequestRow) -> dict[str, Any]:
    """Return the object that `explain --json` and `report --json` print for a request of any kind."""
    return {
        "visit": row.visit,
        "seq": row.seq,
        "kind": row.kind.value,
        "url": row.url,
        "started": iso_time(row.started),
        "address": row.address or None,
        **_answer_json(row),
        "stored": is_stored(row),
        "fate": _fate(row),
        "delay_after_s": row.delay,
        "delay_from": row.delay_from.value,
    }


def _answer_json(row: RequestRow) -> dict[str, Any]:
    return {
        "seconds": round((row.ended - row.began) / 1000, 3),
        "status": row.status,
        "error": row.error or None,
        "type": row.media_type or None,
        "bytes": row.size,
        "redirect_to": row.target or None,
        "content_hash": row.robots or hash_text(row.content_hash),
    }


def _fate(row: RequestRow) -> str:
    return row.settlement.value or "settled"


def _location_json(where: Location | None) -> dict[str, Any] | None:
    return None if where is None else {"file": where.file, "offset": where.offset, "length": where.length}
