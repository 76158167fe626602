"""The ledger's rows. The list of columns below is the only one: queries include it as a fragment.

To add a column, add it to both schemas, to RequestRow and to the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from rove.frontier.contract import Policy
from rove.frontier.sanitize import storable
from rove.model.ledger import DelaySource, Location, RequestKind, RequestRow, Settlement
from rove.model.visits import VisitResult


class _Column:
    """A column of `request`: its type in PostgreSQL, how it is taken from a RequestRow, how it is read back."""

    __slots__ = ("name", "read", "type", "value")

    def __init__(
        self,
        name: str,
        type: str,
        value: Callable[[RequestRow], Any] | None = None,
        read: Callable[[Any], Any] | None = None,
    ) -> None:
        self.name = name
        self.type = type
        self.value = value or attrgetter(name)
        self.read = read


def _location_columns(field: str) -> tuple[_Column, ...]:
    """Return the columns of a Location, which are all NULL where there is none."""
    location = attrgetter(field)

    def column(part: str, type: str) -> _Column:
        value = attrgetter(part)
        return _Column(
            f"{field}_{part}", type, lambda row: value(location(row)) if location(row) else None
        )

    return (column("file", "text"), column("offset", "bigint"), column("length", "bigint"))


_COLUMNS = (
    _Column("visit", "bigint"),
    _Column("seq", "smallint"),
    _Column("domain", "bigint"),
    _Column("kind", "text", lambda row: row.kind.value, RequestKind),
    _Column("url", "text"),
    _Column("fingerprint", "bigint"),
    _Column("started", "double precision"),
    _Column("status", "integer"),
    _Column("error", "text"),
    _Column("media_type", "text", lambda row: storable(row.media_type)),
    _Column("size", "bigint"),
    _Column("truncated", "boolean", read=bool),
    _Column("content_hash", "bigint"),
    _Column("target", "text", lambda row: storable(row.target)),
    _Column("title", "text", lambda row: storable(row.title)),
    *_location_columns("text"),
    *_location_columns("raw"),
    _Column("other_domain", "bigint"),
    _Column("began", "bigint"),
    _Column("ended", "bigint"),
    _Column("address", "text"),
    _Column("delay", "bigint", lambda row: round(row.delay * 1000), lambda value: value / 1000),
    _Column("delay_from", "text", lambda row: row.delay_from.value, DelaySource),
    _Column("process", "bigint"),
    _Column("settlement", "text", lambda row: row.settlement.value, Settlement),
    _Column("marks", "text", lambda row: " ".join(row.marks), lambda value: tuple(value.split())),
    _Column("is_copy", "boolean", read=bool),
)

REQUEST_COLUMNS = tuple(column.name for column in _COLUMNS)
REQUEST_FRAGMENTS = {
    "request_columns": ", ".join(REQUEST_COLUMNS),
    "request_arrays": ", ".join(f":{column.name}::{column.type}[]" for column in _COLUMNS),
}
"""Fragments of queries: the columns, and an array parameter for each of them."""

_VALUES = tuple(column.value for column in _COLUMNS)
_READ = tuple((column.name, column.read) for column in _COLUMNS if column.read is not None)

LOCATION_COLUMNS = (
    *("visit", "seq", "text_file", "text_offset", "text_length"),
    *("raw_file", "raw_offset", "raw_length", "is_copy"),
)
"""The parameters of relocate_pages."""
_LOCATION_VALUES = tuple(_COLUMNS[REQUEST_COLUMNS.index(name)].value for name in LOCATION_COLUMNS)


def request_values(row: RequestRow) -> list[Any]:
    """Return the values of a request in the order of REQUEST_COLUMNS."""
    if row.settlement is not Settlement.SETTLED:
        # A late visit settled nothing, so its pages are not indexed.
        row = row.replace(text=None, raw=None, is_copy=False)
    return [value(row) for value in _VALUES]


def request_row(values: Iterable[Any], node: str = "") -> RequestRow:
    """Build a request from the values of REQUEST_COLUMNS; `node` stores its page."""
    fields = dict(zip(REQUEST_COLUMNS, values, strict=False))
    for name, read in _READ:
        fields[name] = read(fields[name])
    for name in ("text", "raw"):
        parts = [fields.pop(f"{name}_{part}") for part in ("file", "offset", "length")]
        fields[name] = location_from(parts)
    return RequestRow(**fields, node=node)


def location_values(row: RequestRow) -> list[Any]:
    """Return the values of LOCATION_COLUMNS; a page whose record is gone is no longer a copy."""
    if row.text is None and row.is_copy:
        row = row.replace(is_copy=False)
    return [value(row) for value in _LOCATION_VALUES]


def location_from(values: Sequence[Any]) -> Location | None:
    """Build a location from file, offset and length, which are all NULL where there is none."""
    file, offset, length = values
    return None if file is None else Location(file=file, offset=offset, length=length)


def ledger_rows(
    visits: Iterable[VisitResult],
    crawl_delays: Mapping[int, int],
    *,
    policy: Policy,
    process: int,
) -> list[list[Any]]:
    """Return the ledger rows of visits. `crawl_delays` maps each settled visit to milliseconds; all others are late."""
    values = []
    for visit in visits:
        crawl_delay = crawl_delays.get(visit.lease.token)
        is_late = crawl_delay is None
        delay, source = delay_in_force(
            visit,
            policy.delay,
            visit.lease.crawl_delay if crawl_delay is None else crawl_delay / 1000,
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


def delay_in_force(
    visit: VisitResult, delay: float, crawl_delay: float
) -> tuple[float, DelaySource]:
    """Return how long a domain is left alone after a visit, and why."""
    longest = max(delay, crawl_delay, visit.pause)
    if longest == delay:
        return longest, DelaySource.DELAY
    return longest, DelaySource.CRAWL_DELAY if longest == crawl_delay else visit.pause_from
