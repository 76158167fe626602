"""Shows how SQLite executes rove's own statements. Nothing is executed, so nothing can change."""

from __future__ import annotations

import re
from typing import Any

from rove.errors import UsageError
from rove.frontier.sqlite.database import QUERIES, SqliteDatabase
from rove.frontier.sqlite.many_rows import ONE_ROW, for_rows

_PARAMETER = re.compile(r"(?<!:):(\w+)")
_TABLES = re.compile(r"\b(?:FROM|JOIN|UPDATE|INTO)\s+(?:domain|url|request|origin|robots_text|content|counter)\b")


def query_names() -> list[str]:
    """Return the names of the statements on the tables that grow."""
    return sorted(name for name, text in QUERIES.items() if _TABLES.search(text))


async def explain_query(database: SqliteDatabase, name: str) -> list[str]:
    """Return the lines of the plan of a statement; UsageError if there is none of this name."""
    if name not in query_names():
        raise UsageError(f"there is no statement {name!r}; 'rove explain-query' lists them")
    text = QUERIES[name]
    parameters: Any = {parameter: "[]" if parameter == "rows" else None for parameter in _PARAMETER.findall(text)}
    if ONE_ROW in text:
        text = for_rows(text, 1)
        parameters = [None] * text.count("?")
    rows = await database.run(lambda: database.plan(text, parameters))
    depths = {0: 0}
    lines = []
    for id, parent, _, step in rows:
        depths[id] = depths[parent] + 1
        lines.append("  " * depths[parent] + str(step))
    return lines or ["no search: it only inserts"]
