"""The tables that a move copies, in this order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rove.model.ledger import RequestKind
from rove.model.request_counts import counter_names
from rove.model.urls import UrlState
from rove.notation.humanize import counted

Key = list[int | str]
"""The key of the last row of a slice. A text is in hexadecimal, because it may hold what PostgreSQL cannot store."""

BEFORE_INTEGERS = float("-inf")
"""SQLite sorts this before every integer."""
ROWS_WITH_BODIES = 500
"""Slice size of tables that hold robots.txt files or samples, which may be large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table that exists in both databases. Its queries are `slice_NAME` and `count_NAME` in queries.sql."""

    name: str
    one: str
    title: str
    """What people call one of its rows, and several."""
    start: tuple[float | str, ...] = (BEFORE_INTEGERS,)
    """A key before every key of the table; a text is in hexadecimal."""
    has_bodies: bool = False
    counters: tuple[str, ...] = ()
    """The counters that add up to the number of its rows."""

    def slice_size(self, rows: int) -> int:
        """How many rows to read at a time, where tables of small rows take `rows`."""
        return min(rows, ROWS_WITH_BODIES) if self.has_bodies else rows


_PAIR = (BEFORE_INTEGERS, BEFORE_INTEGERS)
_REQUESTS = tuple(name for kind in RequestKind for name in counter_names(kind, ""))

TABLES = (
    Table(name="domain", one="domain", title="domains", counters=("domains.total",)),
    Table(
        name="url",
        one="URL",
        title="URLs",
        start=_PAIR,
        counters=tuple(f"urls.{state.name.lower()}" for state in UrlState),
    ),
    Table(name="origin", one="robots.txt record", title="robots.txt records", start=(BEFORE_INTEGERS, "")),
    Table(name="request", one="request", title="requests", start=_PAIR, counters=_REQUESTS),
    Table(name="skipped", one="skipped link", title="skipped links", start=("", BEFORE_INTEGERS, BEFORE_INTEGERS)),
    Table(name="content", one="text", title="texts"),
    Table(name="robots_text", one="robots.txt file", title="robots.txt files", start=("",), has_bodies=True),
    Table(name="sample", one="sample", title="samples", start=_PAIR, has_bodies=True),
    Table(name="exclusion", one="exclusion", title="exclusions"),
    Table(name="seed_source", one="seed file", title="seed files"),
    Table(name="retry", one="retry", title="retries"),
    Table(name="run", one="run", title="runs"),
    Table(name="process", one="process", title="processes"),
    Table(name="counter", one="counter", title="counters", start=("",)),
)


def rows_text(rows: Mapping[str, int]) -> str:
    """Return how many rows each table has; `rows` counts them by title."""
    return ", ".join(counted(rows[table.title], table.one, table.title) for table in TABLES)


def table_after(table: Table) -> str:
    """Return the name of the table that is copied next, '' after the last one."""
    names = [known.name for known in TABLES]
    return dict(zip(names, [*names[1:], ""], strict=True))[table.name]
