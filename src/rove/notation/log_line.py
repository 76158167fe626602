"""The grammar of the log's lines: an event, then `key=value` pairs, so that `grep` and `awk` can read them.

docs/operations.md describes it. A value without blanks, quotes or `=` stands as it is; any other value is a JSON
string. A float has at most three decimals. None and empty values are `-`.
"""

from __future__ import annotations

import json
import re
from typing import Any

_PLAIN = re.compile(r"[!#-&(-<>-\[\]-~]+")
"""Visible ASCII without quotes, = and backslash. Everything else is escaped, because it may come from the web."""


def log_line(event: str, /, **fields: Any) -> str:
    """Return a line of the log.

    >>> log_line("fetch", domain="a.test", status=200, seconds=0.25, title="a b", error=None)
    'fetch domain=a.test status=200 seconds=0.25 title="a b" error=-'
    """
    return " ".join((event, *(f"{name}={_text(value)}" for name, value in fields.items())))


def _text(value: Any) -> str:
    if value is None or value == "":
        return "-"
    text = f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)
