"""Count the shared buffers that a claim touches on PostgreSQL."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.frontier_backends import Postgres
from rove.frontier.postgres.connector import SESSION_SETTINGS
from rove.frontier.postgres.session import QUERIES
from rove.frontier.priority import FOREIGN, HELD, RETRIED, URLS_PER_LEASE, foreign_bounds

EXPLAINED_BATCH = 100
EXPLAINED_TIMES = 5


async def buffers_per_claim(backend: Postgres, bound: int) -> float:
    """Return how many shared buffers a claim of a hundred domains touches per domain, hit or read."""
    async with backend.connected(**SESSION_SETTINGS) as connection:
        for query in ("lease", "head_urls"):
            await connection.execute(f"PREPARE {query} AS {QUERIES[query].text}")
        counts = [await _claim_explained(connection, bound) for _ in range(EXPLAINED_TIMES)]
    return statistics.median(counts)


async def _claim_explained(connection: Any, bound: int) -> float:
    transaction = connection.transaction()
    await transaction.start()
    try:
        lease = {"bound": bound, "limit": EXPLAINED_BATCH, "budget": 180_000, "delay": 0}
        lease |= {"latest": 1 << 62, "ceiling": 1 << 62, "earliest": 0}
        touched = await _explained(connection, "lease", {**lease, "process": -1})
        rows = await connection.fetch("SELECT id FROM domain WHERE owner = -1")
        now = await connection.fetchval("SELECT clock_ms()")
        before, after = foreign_bounds(foreign_first=False)
        columns = {
            "domains": _array(row[0] for row in rows),
            "foreign_before": _array(before for _ in rows),
            "foreign_after": _array(after for _ in rows),
        }
        order = {"foreign": FOREIGN, "retried": RETRIED, "held": HELD, "limit": URLS_PER_LEASE}
        touched += await _explained(connection, "head_urls", {**columns, "now": now, **order})
        return touched / len(rows)
    finally:
        await transaction.rollback()


def _array(values: Iterable[int]) -> str:
    return "'{" + ",".join(map(str, values)) + "}'"


async def _explained(connection: Any, query: str, given: Mapping[str, object]) -> int:
    values = ", ".join(str(given[name]) for name in QUERIES[query].parameters)
    sql = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {query} ({values})"
    plan = json.loads(await connection.fetchval(sql))[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
