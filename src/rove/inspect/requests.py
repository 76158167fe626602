"""Requests of the ledger as people and programs read them, and text from the web as a terminal may be shown it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from rove.humanize import hash_text, seconds_text
from rove.inspect.pages import iso_time
from rove.model.ledger import DelaySource, RequestRow, Settlement
from rove.model.reasons import status_error

DELAY_REASONS = {
    DelaySource.DELAY: "chosen by who runs the crawl",
    DelaySource.CRAWL_DELAY: "the Crawl-delay of robots.txt",
    DelaySource.RETRY_AFTER: "the Retry-After of its answer",
    DelaySource.BACKOFF: "it answered 429 or 503",
    DelaySource.SLOW: "ten times what its last answer took",
    DelaySource.FAILURES: "it did not answer",
    DelaySource.REPEATS: "its pages repeat what it gave before",
}

_FATES = {
    Settlement.SETTLED: "",
    Settlement.LATE: "too late to count",
    Settlement.LOST: "cut short by a crash",
}
_UNSHOWABLE = (
    r"\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff"
)
_UNSHOWABLE_IN_LINE = re.compile(rf"[\x00-\x1f{_UNSHOWABLE}]")
_UNSHOWABLE_IN_TEXT = re.compile(rf"[\x00-\x08\x0b-\x1f{_UNSHOWABLE}]")


def one_line(text: str) -> str:
    r"""Text from elsewhere, harmless on a terminal: what steers it or turns the direction of writing is spelt out.

    >>> one_line("a\x1b[2Jb\nc")
    'a\\x1b[2Jb\\x0ac'
    """
    return _UNSHOWABLE_IN_LINE.sub(_spelt, text)


def whole_text(body: bytes) -> str:
    """Likewise of a text of several lines, as it was sent."""
    text = body.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return _UNSHOWABLE_IN_TEXT.sub(_spelt, text)


def _spelt(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def utc_text(seconds: float) -> str:
    """A wall-clock time for people everywhere.

    >>> utc_text(0)
    '1970-01-01 00:00:00 UTC'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def precise(seconds: float) -> str:
    """A delay, to the tenth of a second while that matters: to who chose 70 s it is not 1 min 10 s.

    >>> precise(70.04), precise(71.5), precise(3600)
    ('70 s', '71.5 s', '1 h 00 min')
    """
    return f"{round(seconds, 1):g} s" if abs(seconds) < 600 else seconds_text(seconds)


def outcome_text(row: RequestRow) -> str:
    """What a request came to, in a word or two."""
    if not row.status:
        return row.error or "no answer known"
    if row.error and row.error != status_error(row.status):
        return f"{row.status} {row.error}"
    return str(row.status)


def fate_text(row: RequestRow) -> str:
    """What became of its visit, where that is not a matter of course."""
    return _FATES[row.settlement]


def is_stored(row: RequestRow) -> bool:
    """Whether a page was kept of it."""
    return row.text is not None or row.raw is not None


def request_json(row: RequestRow) -> dict[str, Any]:
    """A request of whatever kind as an object."""
    return {
        "visit": row.visit,
        "seq": row.seq,
        "kind": row.kind.value,
        "url": row.url,
        "started": iso_time(row.started),
        "seconds": round((row.ended - row.began) / 1000, 3),
        "address": row.address or None,
        "status": row.status,
        "error": row.error or None,
        "type": row.media_type or None,
        "bytes": row.size,
        "redirect_to": row.target or None,
        "stored": is_stored(row),
        "content_hash": hash_text(row.content_hash),
        "fate": row.settlement.value or "settled",
        "delay_after_s": row.delay,
        "delay_from": row.delay_from.value,
    }
