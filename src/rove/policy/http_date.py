"""Dates in HTTP headers."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

_MAX_LENGTH = 100


def parse_http_date(text: str) -> float | None:
    """Return a date in seconds since the epoch, or None if it cannot be read; a date without a zone is UTC.

    >>> parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT")
    784111777.0
    >>> parse_http_date("soon") is None
    True
    """
    try:
        date = parsedate_to_datetime(text[:_MAX_LENGTH])
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
