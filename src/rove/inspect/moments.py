"""Times that a person writes: how long ago, a date, or a time."""

from __future__ import annotations

from datetime import UTC, datetime

from rove.errors import UsageError
from rove.notation.quantities import parse_positive_duration


def parse_moment(text: str, *, now: float) -> float:
    """Return the wall-clock time that a text means. A duration means that long ago; without a zone it is UTC.

    >>> parse_moment("12h", now=86_400.0), parse_moment("1970-01-02", now=0.0)
    (43200.0, 86400.0)
    >>> parse_moment("1970-01-01 00:01:00Z", now=0.0), parse_moment("1970-01-01T02:00+02:00", now=0.0)
    (60.0, 0.0)
    """
    if "-" in text or ":" in text:  # otherwise a date without hyphens could be a number of seconds
        try:
            time = datetime.fromisoformat(text.strip())
            return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            pass
    else:
        try:
            return now - parse_positive_duration(text.strip().removesuffix(" ago"))
        except UsageError:
            pass
    raise UsageError(f"{text!r} is not a time; write how long ago (12h, 2d), a date (2026-11-18) or 2026-11-18T01:39Z")
