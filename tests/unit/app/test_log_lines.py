"""Lines of the log file."""

from __future__ import annotations

import logging
import sys

from rove.app.log_file import LogFormatter


def test_the_time_of_a_line_is_utc() -> None:
    record = logging.LogRecord("rove", logging.INFO, "", 0, "started", None, None)
    record.created = 1_700_000_000.5
    assert LogFormatter("%(asctime)s %(message)s").format(record) == "2023-11-14 22:13:20.500Z started"


def test_a_line_cannot_forge_another() -> None:
    title = "a\x1b[2J\n2026-01-01 00:00:00Z forged\u202e"
    record = logging.LogRecord("rove", logging.INFO, "", 0, "title %s", (title,), None)
    line = LogFormatter("%(message)s").format(record)
    assert line == r"title a\x1b[2J\x0a2026-01-01 00:00:00Z forged\u202e"


def test_a_traceback_keeps_its_lines_and_is_harmless() -> None:
    try:
        raise ValueError("bad \x1b[2J title")
    except ValueError:
        record = logging.LogRecord("rove", logging.INFO, "", 0, "failed", None, sys.exc_info())
    text = LogFormatter("%(message)s").format(record)
    assert text.startswith("failed\nTraceback")
    assert text.endswith(r"ValueError: bad \x1b[2J title")
