"""Sizes and durations as the user writes them: '512MiB', '1h30m'."""

from __future__ import annotations

import re

from rove.errors import UsageError

LARGEST_NUMBER = 1e15
"""A larger size or duration is a typing error, and may not fit into a number."""

_NUMBER = r"\d+(?:\.\d+)?"
_PLAIN_NUMBER = re.compile(_NUMBER, re.ASCII)
_SIZE = re.compile(rf"({_NUMBER})\s*(?:([kmgt])(?:i?b)?|b?)", re.ASCII)
_SIZE_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_DURATION_UNITS = {"d": 86_400.0, "h": 3_600.0, "m(?:in)?": 60.0, "s": 1.0}
_DURATION = re.compile(r"\s*".join(rf"(?:({_NUMBER})\s*{unit})?" for unit in _DURATION_UNITS), re.ASCII)


def parse_size(text: str) -> int:
    """Parse '512MiB', '1.5G', '800M', '64k' or a number of bytes. Units are powers of 1024."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or float(match[1]) > LARGEST_NUMBER:
        raise UsageError(f"{text!r} is not a size; write 512MiB, 2GiB, 1.5G or a number of bytes")
    return int(float(match[1]) * (1 << _SIZE_UNITS[match[2] or ""]))


def parse_duration(text: str) -> float:
    """Parse '90s', '1h30m', '2d 4h' or a number of seconds; 0 is a duration too."""
    wanted = text.strip().lower()
    match = _DURATION.fullmatch(f"{wanted}s" if _PLAIN_NUMBER.fullmatch(wanted) else wanted)
    numbers = match.groups() if match and wanted else ()
    seconds = sum(float(number or 0) * unit for number, unit in zip(numbers, _DURATION_UNITS.values(), strict=False))
    if not numbers or seconds > LARGEST_NUMBER:
        raise UsageError(f"{text!r} is not a duration; write 90, 90s, 30m, 1h30m or '2d 4h'")
    return seconds


def parse_positive_duration(text: str) -> float:
    """Parse a duration that is longer than 0."""
    seconds = parse_duration(text)
    if not seconds:
        raise UsageError(f"{text!r} is not a duration above 0; write 90s, 30m, 1h30m or '2d 4h'")
    return seconds


def duration_text(seconds: float) -> str:
    """Format a duration as the user would write it.

    >>> duration_text(70), duration_text(5400), duration_text(0.5), duration_text(30 * 86_400)
    ('70s', '1h30m', '0.5s', '30d')
    """
    if seconds < 120 or seconds != int(seconds):
        return f"{seconds:.10g}s"
    rest, parts = int(seconds), ""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        parts += f"{count}{unit}" if count else ""
    return parts
