"""A connection to PostgreSQL that runs named queries."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any

from rove.frontier.postgres.arrays import array_text, columns_of, with_arrays_as_text
from rove.frontier.queries import load_numbered_queries
from rove.frontier.query_times import Timings

QUERIES = {name: with_arrays_as_text(query) for name, query in load_numbered_queries("postgres").items()}


class Session:
    """A connection that work holds for a while."""

    def __init__(self, connection: Any, timings: Timings) -> None:
        self.connection = connection
        self._timings = timings
        self.query = ""
        """The query that is running, or the last one."""
        self.active_at = time.monotonic()
        """When a query began or ended, or the session began."""

    async def fetch(self, query: str, /, **parameters: Any) -> list[Any]:
        """Run a named query and return all its rows."""
        self.query = query
        known = QUERIES[query]
        values = [
            array_text(parameters[name]) if name in known.as_text else parameters[name] for name in known.parameters
        ]
        started = time.perf_counter()
        self.active_at = time.monotonic()
        try:
            rows: list[Any] = await self.connection.fetch(known.text, *values)
        finally:
            self._timings.add(query, time.perf_counter() - started)
        self.active_at = time.monotonic()
        return rows

    async def batch(
        self, query: str, columns: Sequence[str], rows: Collection[Sequence[Any]], /, **parameters: Any
    ) -> list[Any]:
        """Run a named query over rows, which it takes as one array per column. Without rows, do nothing."""
        if not rows:
            return []
        return await self.fetch(query, **dict(zip(columns, columns_of(rows), strict=True)), **parameters)

    async def value(self, query: str, /, **parameters: Any) -> Any:
        """Return the first column of the first row, None if there is none."""
        rows = await self.fetch(query, **parameters)
        return rows[0][0] if rows else None
