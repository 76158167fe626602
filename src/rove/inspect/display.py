"""Formats times, delays and untrusted text for people and programs."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

from rove.humanize import seconds_text

_UNSHOWABLE = r"\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff"
_UNSHOWABLE_IN_LINE = re.compile(rf"[\x00-\x1f{_UNSHOWABLE}]")
_UNSHOWABLE_IN_TEXT = re.compile(rf"[\x00-\x08\x0b-\x1f{_UNSHOWABLE}]")


def one_line(text: str) -> str:
    r"""Escape the control and direction characters of untrusted text, so that a terminal can show it safely.

    >>> one_line("a\x1b[2Jb\nc")
    'a\\x1b[2Jb\\x0ac'
    """
    return _UNSHOWABLE_IN_LINE.sub(_escaped, text)


def whole_text(body: bytes) -> str:
    """Decode an untrusted text of several lines and escape it like `one_line`, apart from tabs and line feeds."""
    text = body.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return _UNSHOWABLE_IN_TEXT.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def utc_text(seconds: float) -> str:
    """Format a wall-clock time for people.

    >>> utc_text(0)
    '1970-01-01 00:00:00 UTC'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def local_text(seconds: float) -> str:
    """Format a wall-clock time in the time zone of this machine."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def iso_time(seconds: float) -> str:
    """Format a wall-clock time for programs: ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def precise(seconds: float) -> str:
    """Format a delay, to a tenth of a second below ten minutes, so that a delay of 70 s reads like the option.

    >>> precise(70.04), precise(71.5), precise(3600)
    ('70 s', '71.5 s', '1 h 00 min')
    """
    return f"{round(seconds, 1):g} s" if abs(seconds) < 600 else seconds_text(seconds)
