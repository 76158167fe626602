"""Read the results of a crawl from outside, and compare its ledger with the requests that the web saw."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.acceptance.command import rove

LedgerEntries = Iterable[tuple[str, int]]
"""The URL and the status of each request in a ledger."""


def exported(data: Path, *options: object) -> list[dict[str, Any]]:
    """Return all pages that `rove export` prints."""
    result = rove("export", "--data-dir", data, *options)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def exported_urls(data: Path, *options: object) -> set[str]:
    """Return the URLs of all exported pages, and check that no page is exported twice."""
    urls = [page["url"] for page in exported(data, *options)]
    assert len(urls) == len(set(urls)), "a page is in the export twice"
    return set(urls)


def status_of(data: Path) -> dict[str, Any]:
    """Return the output of `rove status --json`."""
    result = rove("status", "--data-dir", data, "--json")
    assert result.returncode == 0, result.stderr
    status: dict[str, Any] = json.loads(result.stdout)
    return status


def frontier_rows(data: Path, query: str) -> list[tuple[Any, ...]]:
    """Query the SQLite frontier directly. Before the frontier exists, there are no rows."""
    path = data / "frontier.sqlite"
    if not path.exists():
        return []
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as connection:
            return connection.execute(query).fetchall()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error) or "unable to open" in str(error):
            return []
        raise


def secret_of(data: Path) -> bytes:
    """Return the secret of a crawl on SQLite."""
    ((text,),) = frontier_rows(data, "SELECT value FROM meta WHERE key = 'secret'")
    return bytes.fromhex(text)


def shows_secret(text: bytes, secret: bytes) -> bool:
    """Whether a text has a secret in it: as it is, in hexadecimal, in base64, or as Python or JSON write bytes."""
    written = [secret.hex(), secret.hex().upper(), base64.b64encode(secret).decode().rstrip("=")]
    written += [base64.urlsafe_b64encode(secret).decode().rstrip("="), repr(secret)[2:-1], str(list(secret))[1:-1]]
    forms = [secret, *(form.encode() for form in written), str(list(secret))[1:-1].replace(" ", "").encode()]
    return any(form in text for form in forms)


def files_with_secret(data: Path, secret: bytes) -> set[str]:
    """Return the names of all files of a data directory that have a secret in them."""
    return {path.name for path in data.rglob("*") if path.is_file() and shows_secret(path.read_bytes(), secret)}


def leased_domains(data: Path) -> int:
    """Count the domains whose lease was not given back."""
    ((count,),) = frontier_rows(data, "SELECT count(*) FROM domain WHERE owner IS NOT NULL")
    return int(count)


def ledger_entries(data: Path) -> list[tuple[str, int]]:
    """Return the ledger of a crawl on SQLite."""
    return [(url, status) for url, status in frontier_rows(data, "SELECT url, status FROM request")]


def check_ledger(entries: LedgerEntries, requested_urls: Iterable[str]) -> None:
    """Check that the ledger holds every request the web saw, and no answer to a request the web did not see.

    The ledger may hold a request that the web never saw: its process was killed before it sent the request.
    """
    entries = list(entries)
    seen = Counter(requested_urls)
    known = Counter(url for url, _ in entries)
    answered = Counter(url for url, status in entries if status)
    assert not seen - known, f"not in the ledger: {list(seen - known)[:5]}"
    assert not answered - seen, f"never requested: {list(answered - seen)[:5]}"


def check_audit(data: Path) -> dict[str, Any]:
    """Check that `rove audit` finds no broken rule, and return its report."""
    result = rove("audit", "--json", "--data-dir", data)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    assert report["polite"], report
    return report


def check_books(data: Path, requested_urls: Iterable[str]) -> dict[str, Any]:
    """Check the ledger of a crawl on SQLite against the web and with `rove audit`; return the audit's report."""
    entries = ledger_entries(data)
    check_ledger(entries, requested_urls)
    report = check_audit(data)
    assert report["requests"] == len(entries), report
    return report
