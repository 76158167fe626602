"""Formats numbers and times: for people, and times also for programs."""

from __future__ import annotations

from datetime import UTC, datetime


def counted(count: int, noun: str, plural: str = "") -> str:
    """Format a number of things; `plural` is for nouns that take more than an s.

    >>> counted(1, "page"), counted(1200, "page"), counted(2, "fetch", "fetches")
    ('1 page', '1,200 pages', '2 fetches')
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def times(count: int) -> str:
    """Format how often something happened.

    >>> times(1), times(1200)
    ('once', '1,200 times')
    """
    return "once" if count == 1 else f"{count:,} times"


def hash_text(hash: int | None) -> str | None:
    """Format a signed 64-bit hash as 16 hexadecimal digits.

    >>> hash_text(-1), hash_text(255), hash_text(None)
    ('ffffffffffffffff', '00000000000000ff', None)
    """
    return None if hash is None else f"{hash & (2**64 - 1):016x}"


def size_text(count: float) -> str:
    """Format a number of bytes.

    >>> size_text(1536)
    '1.5 KiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def seconds_text(seconds: float, *, whole: bool = False) -> str:
    """Format a duration; with `whole`, without tenths of a second.

    >>> seconds_text(3700), seconds_text(50.6), seconds_text(50.6, whole=True)
    ('1 h 01 min', '50.6 s', '51 s')
    """
    if round(seconds, 1) < 60:
        return f"{seconds:.{0 if whole else 1}f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min"
    return f"{hours // 24} d {hours % 24:02d} h"


def precise(seconds: float) -> str:
    """Format a delay, to a tenth of a second below ten minutes, so that a delay of 70 s reads like the option.

    >>> precise(70.04), precise(71.5), precise(3600)
    ('70 s', '71.5 s', '1 h 00 min')
    """
    return f"{round(seconds, 1):g} s" if abs(seconds) < 600 else seconds_text(seconds)


def utc_text(seconds: float, *, milliseconds: bool = False) -> str:
    """Format a wall-clock time for people: every command, log and report shows times in UTC, with a Z.

    >>> utc_text(0), utc_text(1.25, milliseconds=True)
    ('1970-01-01 00:00:00Z', '1970-01-01 00:00:01.250Z')
    """
    return _utc(seconds, " ", "milliseconds" if milliseconds else "seconds")


def iso_time(seconds: float) -> str:
    """Format a wall-clock time for programs: ISO 8601 in UTC.

    >>> iso_time(1.25)
    '1970-01-01T00:00:01.250Z'
    """
    return _utc(seconds, "T", "milliseconds")


def _utc(seconds: float, separator: str, precision: str) -> str:
    time = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    return f"{time.isoformat(separator, precision)}Z"
