"""Encodes batches for PostgreSQL: one array per column, written as text.

The driver inspects every element of an array before it encodes it, which takes half a microsecond, and a page with
sixty links has five hundred elements. So an array is sent as text, which the server parses. JSON is that text except
for its brackets, as long as nothing in it had to be escaped, and it is encoded in one call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from rove.frontier.queries import NumberedQuery

_UNNESTED = re.compile(
    r"(?<!ANY \()(?<!ALL \()\$(\d+)::(?=(?:bigint|integer|smallint|double precision|boolean|text)\[\])"
)
"""An array that is read once. An array in ANY or ALL would be parsed again for every row."""

Element = int | float | bool | str | None


@dataclass(frozen=True, slots=True)
class BatchQuery:
    """A query with its parameters in order, and the names of those that are arrays sent as text."""

    text: str
    parameters: tuple[str, ...]
    as_text: frozenset[str]


def with_arrays_as_text(query: NumberedQuery) -> BatchQuery:
    """Return the same query with its arrays read from text."""
    numbers = {int(number) for number in _UNNESTED.findall(query.text)}
    names = frozenset(query.parameters[number - 1] for number in numbers)
    return BatchQuery(_UNNESTED.sub(r"$\1::text::", query.text), query.parameters, names)


def array_text(values: Sequence[Element]) -> str:
    """Write an array as the server reads it: {1,NULL,"a text"}. Numbers must be finite."""
    written = msgspec.json.encode(values).decode()
    if "\\" in written:
        return "{" + ",".join([_element(value) for value in values]) + "}"
    return "{" + written[1:-1] + "}"


def columns_of(rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """Transpose rows into one list per column."""
    return [list(column) for column in zip(*rows, strict=True)]


def _element(value: Element) -> str:
    """Write one element with the escapes of arrays, which differ from those of JSON."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return msgspec.json.encode(value).decode()
