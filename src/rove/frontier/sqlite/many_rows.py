"""Statements that insert many rows at once."""

from __future__ import annotations

from functools import lru_cache

ONE_ROW = "(:row)"
INSERT_SIZES = (1024, 256, 64, 16, 4, 1)
"""The numbers of rows that an INSERT may have. Few different ones, so that few statements are prepared."""


@lru_cache(maxsize=64)
def for_rows(statement: str, count: int) -> str:
    """Repeat the one row of VALUES in a statement, with question marks for its columns."""
    before, values, after = statement.partition(f"VALUES {ONE_ROW}")
    assert values, "the statement has no row of VALUES"
    columns = before[before.index("(") : before.index(")")].count(",") + 1
    row = f"({', '.join('?' * columns)})"
    return f"{before}VALUES {', '.join([row] * count)}{after}"
