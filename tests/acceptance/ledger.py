"""What a crawl says of itself, held against what the web saw."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from rove.demo.log import LogKind
from tests.acceptance.web import ServedWeb, rove

Entries = list[tuple[str, int]]
"""The URL and the status of each request in a ledger."""


def entries_of(data: Path) -> Entries:
    """The ledger of a crawl on SQLite, read from outside."""
    with closing(sqlite3.connect(data / "frontier.sqlite")) as connection:
        return connection.execute("SELECT url, status FROM request").fetchall()


def check_ledger(web: ServedWeb, entries: Entries) -> None:
    """The ledger has every request that the web saw, and says of none that it was answered which the web did not see.

    A request may be in the ledger that the web never saw: it was begun, and its process killed before it was sent.
    """
    seen = Counter(request.url for request in web.requests() if request.kind is LogKind.REQUEST)
    known = Counter(url for url, _ in entries)
    answered = Counter(url for url, status in entries if status)
    assert not seen - known, f"not in the ledger: {list(seen - known)[:5]}"
    assert not answered - seen, f"never asked: {list(answered - seen)[:5]}"


def check_audit(data: Path) -> dict[str, Any]:
    """`rove audit` finds nothing; what it says."""
    result = rove("audit", "--json", "--data-dir", data)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr
    said: dict[str, Any] = json.loads(result.stdout)
    return said
