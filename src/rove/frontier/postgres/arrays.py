"""Batches on their way to PostgreSQL: one array a column, written as text.

The driver looks at every element of an array before it encodes it, which takes half a microsecond; a page with sixty
links has five hundred elements. So an array goes as the text that the server itself reads it from. JSON is that text
but for its brackets, as long as nothing in it had to be escaped, and it is written in one go.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from rove.frontier.queries import NumberedQuery

_UNNESTED = re.compile(
    r"(?<!ANY \()(?<!ALL \()\$(\d+)::(?=(?:bigint|integer|smallint|double precision|boolean|text)\[\])"
)
"""An array that is read once. One that rows are compared with would be read from its text for every row."""

Element = int | float | bool | str | None


@dataclass(frozen=True, slots=True)
class BatchQuery:
    """A query with its parameters in order, and which of them are arrays that go as text."""

    text: str
    parameters: tuple[str, ...]
    as_text: frozenset[str]


def with_arrays_as_text(query: NumberedQuery) -> BatchQuery:
    """The same query, which reads its arrays from text."""
    places = {int(place) for place in _UNNESTED.findall(query.text)}
    names = frozenset(query.parameters[place - 1] for place in places)
    return BatchQuery(_UNNESTED.sub(r"$\1::text::", query.text), query.parameters, names)


def array_text(values: Sequence[Element]) -> str:
    """An array as the server reads it: {1,NULL,"a text"}. Numbers must be finite."""
    written = msgspec.json.encode(values).decode()
    if "\\" in written:
        return "{" + ",".join([_element(value) for value in values]) + "}"
    return "{" + written[1:-1] + "}"


def _element(value: Element) -> str:
    """One element, with the escapes of arrays, which are not those of JSON."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return msgspec.json.encode(value).decode()
