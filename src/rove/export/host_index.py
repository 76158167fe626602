"""Common Crawl's host index: a row for each host, with the counts of its responses by kind."""

from __future__ import annotations

import enum
from array import array
from collections import Counter
from collections.abc import AsyncIterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from rove.export.parquet import SHARD_BYTES, Column, ShardWriter, Type
from rove.export.sorting import ExternalSort
from rove.export.surt import surt_host
from rove.model.ledger import RequestKind, RequestRow
from rove.urls.domain import is_address, suffix_and_domain
from rove.urls.origin import host_and_port, origin_of


class Outcome(enum.Enum):
    """A kind of response, as the columns are called."""

    SUCCESS = "200"
    """Any status from 200 to 299."""
    OTHER_REDIRECT = "3xx"
    CLIENT_ERROR = "4xx"
    SERVER_ERROR = "5xx"
    GONE = "gone"
    NOT_MODIFIED = "notModified"
    OTHER = "other"
    """No response, or a status outside these ranges."""
    PERMANENT_REDIRECT = "redirPerm"
    TEMPORARY_REDIRECT = "redirTemp"


_EXACT = {
    301: Outcome.PERMANENT_REDIRECT,
    302: Outcome.TEMPORARY_REDIRECT,
    304: Outcome.NOT_MODIFIED,
    307: Outcome.TEMPORARY_REDIRECT,
    308: Outcome.PERMANENT_REDIRECT,
    404: Outcome.GONE,
    410: Outcome.GONE,
}
_RANGES = {
    2: Outcome.SUCCESS,
    3: Outcome.OTHER_REDIRECT,
    4: Outcome.CLIENT_ERROR,
    5: Outcome.SERVER_ERROR,
}
_GROUPS = ("fetch", "robots")
COLUMNS = (
    Column("surt_host_name", nullable=False),
    Column("url_host_registered_domain"),
    Column("url_host_tld"),
    Column("warc_record_length_av", Type.INT32),
    Column("warc_record_length_median", Type.INT32),
    *(Column(f"{group}_{outcome.value}", Type.INT32, nullable=False) for group in _GROUPS for outcome in Outcome),
)


def outcome_of(status: int) -> Outcome:
    """Return the kind of a response; a status of 0 means that there was none."""
    return _EXACT.get(status) or _RANGES.get(status // 100, Outcome.OTHER)


@dataclass(slots=True)
class _Host:
    """What is counted of a host."""

    name: str
    counts: Counter[tuple[str, Outcome]] = field(default_factory=Counter)
    lengths: array[int] = field(default_factory=lambda: array("q"))

    def add(self, row: RequestRow) -> None:
        group = "robots" if row.kind is RequestKind.ROBOTS else "fetch"
        self.counts[group, outcome_of(row.status)] += 1
        if (record := row.raw or row.text) is not None:
            self.lengths.append(record.length)

    def row(self, key: str) -> list[Any]:
        """Return the values in the order of COLUMNS."""
        has_name = not is_address(self.name)
        lengths = self.lengths
        return [
            key,
            suffix_and_domain(self.name, private=False)[1] if has_name else None,
            self.name.rpartition(".")[2] if has_name else None,
            round(sum(lengths) / len(lengths)) if lengths else None,
            round(median(lengths)) if lengths else None,
            *(self.counts[group, outcome] for group in _GROUPS for outcome in Outcome),
        ]


class HostIndex:
    """Collects the hosts of a crawl and writes them in order."""

    def __init__(self, directory: Path, crawl: str, *, shard_bytes: int = SHARD_BYTES) -> None:
        self._folder = directory / f"crawl={crawl}"
        self._shard_bytes = shard_bytes
        self._sort = ExternalSort(directory)

    async def read(self, rows: AsyncIterable[RequestRow]) -> None:
        """Take requests; those of one domain must come together."""
        domain: int | None = None
        hosts: dict[str, _Host] = {}
        async for row in rows:
            if row.domain != domain:
                self._flush(hosts)
                domain = row.domain
            key = surt_host(row.url)
            if key not in hosts:
                hosts[key] = _Host(host_and_port(origin_of(row.url))[0])
            hosts[key].add(row)
        self._flush(hosts)

    def write(self) -> int:
        """Write all hosts; return their number."""
        count = 0
        writer = ShardWriter(
            COLUMNS, lambda number: self._folder / f"part-{number:05}.parquet", shard_bytes=self._shard_bytes
        )
        try:
            for row in self._rows():
                writer.add(row)
                count += 1
            writer.close()
        finally:
            writer.abandon()
        return count

    def _flush(self, hosts: dict[str, _Host]) -> None:
        for key, host in hosts.items():
            self._sort.add(key.encode() + b"\0" + msgspec.msgpack.encode(host.row(key)))
        hosts.clear()

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        for item in self._sort.merged():
            yield tuple(msgspec.msgpack.decode(item.partition(b"\0")[2]))
