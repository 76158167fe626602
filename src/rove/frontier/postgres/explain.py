"""Shows how the server executes rove's own statements, with parameters from the crawl itself.

A statement that changes rows is executed too, because only then does the server tell what it costs. Its transaction is
rolled back, and the time for which it may hold locks is limited.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import asyncpg

from rove.errors import FrontierError, UsageError
from rove.frontier.postgres.arrays import array_text
from rove.frontier.postgres.database import PostgresDatabase
from rove.frontier.postgres.session import QUERIES, Session
from rove.frontier.priority import (
    ALONE,
    CLASSES,
    FOREIGN,
    HELD,
    RETRIED,
    SUSPECT,
    URLS_PER_ADD,
    foreign_bounds,
)
from rove.policy.constants import DAY, VISIT_BUDGET

ROWS = 64
"""Rows in a batch."""
LOCK_MS = 200
"""How long a statement waits for a lock."""
LONGEST_CHANGE_MS = 2_000
"""How long a statement may run that changes or locks rows."""
LONGEST_READ_MS = 30_000
_SHOWN = re.compile(r"\b(?:FROM|JOIN|UPDATE|INTO)\s+(?:domain|url|request|origin|robots_text|content|counter)\b")
_CHANGES = re.compile(r"\b(?:UPDATE|INSERT|DELETE|FOR NO KEY UPDATE|FOR UPDATE)\b")
_NUMBER = re.compile(r"nextval\('\w+'\)")
"""A rollback does not give back the numbers of a sequence."""
_TYPED = re.compile(r"\$(\d+)::(?:text::)?(bigint|integer|smallint|double precision|real|boolean|text|bytea)(\[\])?")
_PREPARED = "rove_explained"
_LOWEST, _HIGHEST = -(1 << 62), 1 << 62
_EMPTY: dict[str, Any] = {"boolean": False, "text": "", "bytea": ""}
"""Parameters by type that have no better value; other types get 0."""
_SAME = {
    "domains": "domain",
    "fingerprints": "fingerprint",
    "visits": "visit",
    "seqs": "seq",
    "hashes": "hash",
    "priorities": "priority",
    "positions": "position",
    "processes": "process",
    "names": "name",
}
"""Parameters for a batch, and those for a single row."""
_NEUTRAL: dict[str, Any] = {
    **ALONE,
    "foreign": FOREIGN,
    "retried": RETRIED,
    "held": HELD,
    "suspect": SUSPECT,
    "classes": CLASSES,
    **dict(zip(("foreign_before", "foreign_after"), foreign_bounds(foreign_first=False), strict=True)),
    "earliest": _LOWEST,
    "ceiling": _HIGHEST,
    "latest": _HIGHEST,
    "bound": _LOWEST,
    "until": _HIGHEST,
    "after": _LOWEST,
    "after_key": _LOWEST,
    "after_id": _LOWEST,
    "worst_key": _HIGHEST,
    "worst_id": _HIGHEST,
    "limit": ROWS,
    "slice": 5_000,
    "by": "pending",
    "sign": 1,
    "low": -(1 << 31),
    "below": FOREIGN,
    "budget": round(VISIT_BUDGET * 1000),
    "delay": 70_000,
    "within": 3_600_000,
    "day_ms": round(DAY * 1000),
    "requested": True,
    "answered": True,
    "settled": 1,
    "states": 1,
    "state": 3,
    "cap": None,
    "ready_at": _LOWEST,
    "unseen": 1,
    "fewer": 1,
    "excess": 1,
    "exempt": [],
    "waits": 140_000,
    "more": 1,
    "amounts": 1,
    "seed": _LOWEST,
    "urls_per_add": URLS_PER_ADD,
    "kind": "page",
    "most": 1 << 22,
}
_OTHERWISE: dict[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {
    # What is inserted must be new.
    "insert_urls": lambda known: {"fingerprints": list(range(ROWS))},
    "insert_urls_beside": lambda known: {"fingerprints": list(range(ROWS))},
    "insert_wanted_robots": lambda known: {"fingerprints": list(range(ROWS))},
    "insert_requests": lambda known: {"visit": list(range(-ROWS, 0)), "content_hash": list(range(ROWS))},
    "insert_contents": lambda known: {"hashes": list(range(ROWS))},
    "requests_before": lambda known: {"visit": _HIGHEST},
    "requests_of_domain_before": lambda known: {"visit": _HIGHEST},
    "requests_of_domain": lambda known: {"visit": _LOWEST},
    "ledger": lambda known: {"domain": _LOWEST, "visit": _LOWEST},
}
"""Where the parameters of the same names in other statements would not do."""


def query_names() -> list[str]:
    """Return the names of the statements on the tables that grow."""
    return sorted(name for name, query in QUERIES.items() if _SHOWN.search(query.text))


async def explain_query(database: PostgresDatabase, name: str) -> list[str]:
    """Return the lines of the plan of a statement, as it was executed; UsageError if there is none of this name."""
    if name not in query_names():
        raise UsageError(f"there is no statement {name!r}; 'rove explain-query' lists them")

    async def work(session: Session) -> list[str]:
        try:
            return await _explained(session, name)
        except asyncpg.QueryCanceledError as error:
            raise FrontierError(f"{name} takes too long to be executed: {error}") from error
        except asyncpg.LockNotAvailableError as error:
            raise FrontierError(f"{name} needs rows that the crawl has locked; try again: {error}") from error
        except asyncpg.ReadOnlySQLTransactionError as error:
            raise FrontierError(f"{name} changes rows, and this server is read-only: {error}") from error

    return await database.run("explain", work)


async def _explained(session: Session, name: str) -> list[str]:
    connection = session.connection
    text = _NUMBER.sub("0::bigint", QUERIES[name].text)
    changes = bool(_CHANGES.search(text))
    transaction = connection.transaction(readonly=not changes)
    await transaction.start()
    try:
        await connection.execute(f"SET LOCAL lock_timeout = {LOCK_MS}")
        await connection.execute(f"SET LOCAL statement_timeout = {LONGEST_CHANGE_MS if changes else LONGEST_READ_MS}")
        known = await _parameters(session, name)
        # The server quotes them, because a URL may hold anything.
        values = [await connection.fetchval("SELECT quote_nullable($1::text)", value) for value in _texts(name, known)]
        # A prepared statement gets the generic plan that the crawl uses; parameters of EXPLAIN would not.
        await connection.execute(f"PREPARE {_PREPARED} AS {text}")
        call = f"{_PREPARED}({', '.join(values)})" if values else _PREPARED
        rows = await connection.fetch(f"EXPLAIN (ANALYZE, BUFFERS) EXECUTE {call}")
        return [row[0] for row in rows]
    finally:
        await transaction.rollback()
        # A prepared statement outlives its transaction; without one of this name, this is an error.
        with suppress(asyncpg.InvalidSQLStatementNameError):
            await connection.execute(f"DEALLOCATE {_PREPARED}")


async def _parameters(session: Session, name: str) -> dict[str, Any]:
    """Return parameters from the crawl: the next domains with their first URLs, and the last requests."""
    urls = [list(column) for column in zip(*await session.fetch("sample_urls", limit=ROWS), strict=True)]
    requests = [list(column) for column in zip(*await session.fetch("sample_requests", limit=ROWS), strict=True)]
    names = ("domains", "names", "tokens", "fingerprints", "urls", "priorities", "positions")
    known: dict[str, Any] = {**_NEUTRAL, **dict(zip(names, urls, strict=False))}
    known |= dict(zip(("visits", "seqs", "hashes", "processes", "robots"), requests, strict=False))
    for several, one in _SAME.items():
        known[one] = known.get(several, [])
    known["now"] = await session.value("now")
    if name in _OTHERWISE:
        known |= _OTHERWISE[name](known)
    return known


def _texts(name: str, known: Mapping[str, Any]) -> list[str | None]:
    """Return the parameters of a statement as the server reads them."""
    query = QUERIES[name]
    typed = {int(match[1]): (match[2], bool(match[3])) for match in _TYPED.finditer(query.text)}
    values = []
    for number, parameter in enumerate(query.parameters, start=1):
        type, is_array = typed[number]
        values.append((known.get(parameter, _EMPTY.get(type, 0)), is_array))
    lengths = [len(value) for value, is_array in values if is_array and isinstance(value, list)]
    rows = min(lengths, default=ROWS)
    return [_array(value, rows) if is_array else _single(value) for value, is_array in values]


def _array(value: Any, rows: int) -> str:
    return array_text(value[:rows] if isinstance(value, list) else [value] * rows)


def _single(value: Any) -> str | None:
    if isinstance(value, list):
        value = value[0] if value else 0
    return None if value is None else str(value)
