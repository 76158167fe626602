"""Common Crawl's columnar index: a row for each record in WARC files, sorted by key, in partitions.

The columns are those of cc-index-table, so that queries that were written for Common Crawl work here too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import msgspec

from rove.export.captures import ROBOTS_PATH, Capture, status_of
from rove.export.parquet import SHARD_BYTES, Column, ShardWriter, Type
from rove.export.sorting import ExternalSort
from rove.export.surt import surt
from rove.urls.domain import is_address, suffix_and_domain

SUBSETS = ("warc", "crawldiagnostics", "robotstxt")
COLUMNS = (
    Column("url_surtkey", nullable=False),
    Column("url", nullable=False),
    Column("url_host_name", nullable=False),
    Column("url_host_tld"),
    Column("url_host_2nd_last_part"),
    Column("url_host_3rd_last_part"),
    Column("url_host_4th_last_part"),
    Column("url_host_5th_last_part"),
    Column("url_host_registry_suffix"),
    Column("url_host_registered_domain"),
    Column("url_host_private_suffix"),
    Column("url_host_private_domain"),
    Column("url_host_name_reversed"),
    Column("url_protocol", nullable=False),
    Column("url_port", Type.INT32),
    Column("url_path", nullable=False),
    Column("url_query"),
    Column("fetch_time", Type.TIME, nullable=False),
    Column("fetch_status", Type.INT16, nullable=False),
    Column("fetch_redirect"),
    Column("content_digest"),
    Column("content_mime_type"),
    Column("content_mime_detected"),
    Column("content_charset"),
    Column("content_languages"),
    Column("content_truncated"),
    Column("warc_record_id", Type.BYTES, nullable=False),
    Column("warc_filename", nullable=False),
    Column("warc_record_offset", Type.INT32, nullable=False),
    Column("warc_record_length", Type.INT32, nullable=False),
    Column("warc_segment", nullable=False),
)
"""The order is that of the values in `_row`."""
_FETCH_TIME = [column.name for column in COLUMNS].index("fetch_time")
_PARTS = 5
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([^\s\"';]+)", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class ColumnarIndex:
    """Takes records in any order and writes the index."""

    def __init__(self, directory: Path, crawl: str, *, shard_bytes: int = SHARD_BYTES) -> None:
        """`crawl` is the name of the crawl in the partitions."""
        self._directory = directory
        self._crawl = crawl
        self._shard_bytes = shard_bytes
        self._sorts: dict[str, ExternalSort] = {}

    def add(self, capture: Capture) -> None:
        """Take a record."""
        row = _row(capture)
        # No key has a NUL, so that the bytes before it decide first.
        key = f"{row[0]}\0{capture.stamp}\0{capture.file}\0{capture.record.offset:012}\0".encode()
        subset = subset_of(capture)
        if subset not in self._sorts:
            self._sorts[subset] = ExternalSort(self._directory)
        self._sorts[subset].add(key + msgspec.msgpack.encode(row))

    def write(self) -> int:
        """Write all rows; return their number."""
        count = 0
        for subset in SUBSETS if self._sorts else SUBSETS[:1]:
            if self._sorts and subset not in self._sorts:
                continue
            count += self._write_subset(subset)
        return count

    def _write_subset(self, subset: str) -> int:
        folder = self._directory / f"crawl={self._crawl}" / f"subset={subset}"
        writer = ShardWriter(
            COLUMNS, lambda number: folder / f"part-{number:05}.parquet", shard_bytes=self._shard_bytes
        )
        count = 0
        try:
            for row in _rows(self._sorts.get(subset)):
                writer.add(row)
                count += 1
            writer.close()
        finally:
            writer.abandon()
        return count


def subset_of(capture: Capture) -> str:
    """Return the partition of a record: pages, what brought no page, and robots.txt files."""
    if urlsplit(capture.url).path == ROBOTS_PATH:
        return "robotstxt"
    return "warc" if 200 <= status_of(capture) < 300 else "crawldiagnostics"


def _rows(items: ExternalSort | None) -> Iterator[tuple[Any, ...]]:
    for item in () if items is None else items.merged():
        row = msgspec.msgpack.decode(item.split(b"\0", 4)[4])
        row[_FETCH_TIME] = datetime.fromisoformat(row[_FETCH_TIME]).replace(tzinfo=None)
        yield tuple(row)


def _row(capture: Capture) -> list[Any]:
    """Return the values of a record in the order of COLUMNS; the time is still a text."""
    parts = urlsplit(capture.url)
    headers = capture.record.headers
    content_type = capture.headers.get("content-type", "")
    charset = _CHARSET.search(content_type)
    digest = capture.digest
    uuid = _UUID.search(headers.get("warc-record-id", ""))
    return [
        surt(capture.url),
        capture.url,
        *_host_values(_host_of(parts.netloc)),
        parts.scheme,
        parts.port,
        parts.path,
        parts.query or None,
        capture.date,
        status_of(capture),
        capture.headers.get("location") if 300 <= status_of(capture) < 400 else None,
        None if digest is None else digest.removeprefix("sha1:"),
        capture.media_type,
        headers.get("warc-identified-payload-type"),
        charset[1].upper() if charset else "UTF-8" if capture.kind.is_text else None,
        headers.get("warc-identified-content-language"),
        headers.get("warc-truncated"),
        UUID(uuid[0]).bytes if uuid else b"",
        capture.file,
        capture.record.offset,
        capture.record.length,
        capture.file.removesuffix(".warc.gz"),
    ]


def _host_of(netloc: str) -> str:
    host, colon, port = netloc.rpartition(":")
    return host if colon and port.isdigit() else netloc


@lru_cache(maxsize=8_192)
def _host_values(host: str) -> tuple[str | None, ...]:
    """Return the columns from url_host_name to url_host_name_reversed."""
    if is_address(host):
        return (host, *[None] * (_PARTS + 5))
    labels = host.split(".")[::-1]
    parts = [*labels[:_PARTS], *[None] * (_PARTS - len(labels))]
    return (
        host,
        *parts,
        *suffix_and_domain(host, private=False),
        *suffix_and_domain(host, private=True),
        ".".join(labels),
    )
