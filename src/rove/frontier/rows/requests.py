"""The ledger's rows. The list of columns below is the only one: queries include it as a fragment.

To add a column, add it to both schemas, to RequestRow and to the list.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from rove.errors import FrontierError
from rove.frontier.records import Policy
from rove.frontier.sanitize import storable
from rove.model.languages import languages_from, languages_text
from rove.model.ledger import DelaySource, Location, RequestKind, RequestRow, Settlement
from rove.model.visits import VisitResult


class _Column(NamedTuple):
    """A column of `request` and the field of RequestRow that it holds."""

    name: str
    type: str
    """The type in PostgreSQL."""
    attribute: str = ""
    """The path of the value in a RequestRow, if it is not the name."""
    write: Callable[[Any], Any] | None = None
    """Converts the value for the database."""
    read: Callable[[Any], Any] | None = None
    """Converts the value from the database."""


def _enum(name: str, members: type[enum.Enum]) -> _Column:
    """Return the column of an enum. A dictionary finds a member three times as fast as the enum does."""
    by_value = {member.value: member for member in members}
    return _Column(name, "text", f"{name}._value_", read=by_value.__getitem__)


_FIELDS = (
    _Column("visit", "bigint"),
    _Column("seq", "smallint"),
    _Column("domain", "bigint"),
    _enum("kind", RequestKind),
    _Column("url", "text"),
    _Column("fingerprint", "bigint"),
    _Column("started", "double precision"),
    _Column("status", "integer"),
    _Column("error", "text"),
    _Column("media_type", "text", write=storable),
    _Column("size", "bigint"),
    _Column("truncated", "boolean", read=bool),
    _Column("content_hash", "bigint"),
    _Column("robots", "text"),
    _Column("target", "text", write=storable),
    _Column("title", "text", write=storable),
    _Column("began", "bigint"),
    _Column("ended", "bigint"),
    _Column("address", "text"),
    _Column("delay", "bigint", write=lambda value: round(value * 1000), read=lambda v: v / 1000),
    _enum("delay_from", DelaySource),
    _Column("process", "bigint"),
    _enum("settlement", Settlement),
    _Column("marks", "text", write=" ".join, read=lambda value: tuple(value.split())),
    _Column("is_copy", "boolean", read=bool),
    _Column("languages", "text", write=languages_text, read=languages_from),
    _Column("usage", "text", write=" ".join, read=lambda value: tuple(value.split())),
    _Column("usage_from", "text", write=" ".join, read=lambda value: tuple(value.split())),
    _Column("purpose", "text"),
    _Column("simhash", "bigint"),
)
_LOCATIONS = ("text", "raw")
_LOCATION_PARTS = (
    _Column(f"{field}_{part}", type)
    for field in _LOCATIONS
    for part, type in (("file", "text"), ("offset", "bigint"), ("length", "bigint"))
)
_COLUMNS = (*_FIELDS, *_LOCATION_PARTS)

REQUEST_COLUMNS = tuple(column.name for column in _COLUMNS)
REQUEST_FRAGMENTS = {
    "request_columns": ", ".join(REQUEST_COLUMNS),
    "request_arrays": ", ".join(f":{column.name}::{column.type}[]" for column in _COLUMNS),
}
"""Fragments of queries: the columns, and an array parameter for each of them."""
LOCATION_COLUMNS = ("visit", "seq", "is_copy", *REQUEST_COLUMNS[len(_FIELDS) :])
"""The parameters of relocate_pages."""

_fields_of = attrgetter(*(column.attribute or column.name for column in _FIELDS))
_WRITE = [(i, column.write) for i, column in enumerate(_FIELDS) if column.write is not None]
_READ = [(column.name, column.read) for column in _FIELDS if column.read is not None]


def request_values(row: RequestRow) -> list[Any]:
    """Return the values of a request in the order of REQUEST_COLUMNS."""
    if row.settlement is not Settlement.SETTLED:
        # A late or lost visit settled nothing, so its pages are not indexed.
        row = row.replace(text=None, raw=None, is_copy=False)
    values = [*_fields_of(row), *_location_values(row.text), *_location_values(row.raw)]
    for index, write in _WRITE:
        values[index] = write(values[index])
    return values


def request_row(values: Iterable[Any], node: str = "") -> RequestRow:
    """Build a request from the values of REQUEST_COLUMNS; `node` stores its page. Damaged rows raise FrontierError."""
    fields = dict(zip(REQUEST_COLUMNS, values, strict=False))
    for name, read in _READ:
        try:
            fields[name] = read(fields[name])
        except KeyError:
            raise FrontierError(
                f"the database is damaged: request {fields['seq']} of visit {fields['visit']} has the {name} "
                f"{fields[name]!r}; restore a backup, or delete that row of the table 'request'"
            ) from None
    for name in _LOCATIONS:
        parts = [fields.pop(f"{name}_{part}") for part in ("file", "offset", "length")]
        fields[name] = location_from(parts)
    return RequestRow(**fields, node=node)


def location_values(row: RequestRow) -> list[Any]:
    """Return the values of LOCATION_COLUMNS; a page whose record is gone is no longer a copy."""
    is_copy = row.is_copy and row.text is not None
    locations = (*_location_values(row.text), *_location_values(row.raw))
    return [row.visit, row.seq, is_copy, *locations]


def location_from(values: Sequence[Any]) -> Location | None:
    """Build a location from file, offset and length, which are all NULL where there is none."""
    file, offset, length = values
    return None if file is None else Location(file=file, offset=offset, length=length)


def _location_values(location: Location | None) -> tuple[str | None, int | None, int | None]:
    return (None, None, None) if location is None else (location.file, location.offset, location.length)


def ledger_rows(
    visits: Iterable[VisitResult], crawl_delays: Mapping[int, int], *, policy: Policy, process: int
) -> list[list[Any]]:
    """Return the ledger rows of visits. `crawl_delays` maps settled visits to milliseconds; all others are late."""
    values = []
    for visit in visits:
        crawl_delay = crawl_delays.get(visit.lease.token)
        is_late = crawl_delay is None
        delay, source = delay_in_force(
            visit, policy.delay, visit.lease.crawl_delay if crawl_delay is None else crawl_delay / 1000
        )
        for row in visit.requests:
            entry = row.replace(
                delay=delay,
                delay_from=source,
                process=process,
                settlement=Settlement.LATE if is_late else row.settlement,
            )
            values.append(request_values(entry))
    return values


def delay_in_force(visit: VisitResult, delay: float, crawl_delay: float) -> tuple[float, DelaySource]:
    """Return how long a domain is left alone after a visit, and why."""
    longest = max(delay, crawl_delay, visit.pause)
    if longest == delay:
        return longest, DelaySource.DELAY
    return longest, DelaySource.CRAWL_DELAY if longest == crawl_delay else visit.pause_from
