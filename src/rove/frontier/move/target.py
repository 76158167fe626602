"""Writes to the PostgreSQL schema that a move copies to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rove.errors import FrontierError
from rove.frontier.move.source import Slice
from rove.frontier.queries import load_numbered_queries

QUERIES = load_numbered_queries("move")

Columns = Mapping[str, bool]
"""The columns of a table; True for those of type boolean, which are integers in SQLite."""


async def fetch(connection: Any, query: str, **parameters: Any) -> list[Any]:
    """Run a named query of a move."""
    known = QUERIES[query]
    rows: list[Any] = await connection.fetch(known.text, *(parameters[name] for name in known.parameters))
    return rows


async def read_columns(connection: Any) -> dict[str, dict[str, bool]]:
    """Return the columns of all tables."""
    tables: dict[str, dict[str, bool]] = {}
    for table, column, is_boolean in await fetch(connection, "columns"):
        tables.setdefault(table, {})[column] = is_boolean
    return tables


async def copy_rows(connection: Any, table: str, columns: Columns, part: Slice) -> None:
    """Insert a slice into a table."""
    plain = [name for name, is_boolean in columns.items() if not is_boolean]
    booleans = [name for name, is_boolean in columns.items() if is_boolean]
    # Of two columns with one name the last one counts.
    index = {name: number for number, name in enumerate(part.columns)}
    values, flags = [index[name] for name in plain], [index[name] for name in booleans]
    records = [(*[row[number] for number in values], *[bool(row[number]) for number in flags]) for row in part.rows]
    try:
        await connection.copy_records_to_table(table, records=records, columns=plain + booleans)
    except (TypeError, ValueError, OverflowError) as error:
        raise FrontierError(f"a row of the table {table} does not fit into PostgreSQL: {error}") from error
