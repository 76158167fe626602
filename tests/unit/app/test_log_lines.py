"""Lines of the log file."""

from __future__ import annotations

import logging

from rove.app.process import LogFormatter


def test_the_time_of_a_line_is_utc() -> None:
    record = logging.LogRecord("rove", logging.INFO, "", 0, "started", None, None)
    record.created = 1_700_000_000.5
    assert LogFormatter("%(asctime)s %(message)s").format(record) == "2023-11-14 22:13:20.500Z started"
