"""Scans a whole WARC file, record by record, without holding its content in memory.

Recovery and purge need this. The end of a gzip member is known only after decompressing it, which ISA-L does in half
the time of zlib.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import xxhash
from isal import isal_zlib

from rove.model.text_hash import signed
from rove.resources.gunzip import GZIP_WBITS
from rove.store.record import HEAD_END, RECORD_END, NotARecord, content_length, parse_head

_IsalError: type[Exception] = isal_zlib.error  # type: ignore[assignment]
"""The stubs of isal declare the class as an instance."""
_STEP = 16 * 1024
"""Bytes per read. Bytes after a member's end are read again, and most members are small."""
_MAX_HEAD = 64 * 1024


class ScannedRecord(NamedTuple):
    """The position of a record's gzip member in its file, and the record's headers by lower-case name."""

    offset: int
    length: int
    headers: Mapping[str, str]
    text_hash: int | None = None
    """The hash by which the ledger knows the record's text, if it has one."""
    block: bytes = b""
    """The first bytes of its block, if they were asked for."""

    @property
    def end(self) -> int:
        """The position after the last byte."""
        return self.offset + self.length


def scan(fd: int, *, block_bytes: int = 0) -> Iterator[ScannedRecord]:
    """Yield the records of a file in order; raise NotARecord at the first bytes that are not a whole record.

    The records come with up to `block_bytes` bytes of their blocks.
    """
    start = 0
    while (record := _scan_record(fd, start, block_bytes)) is not None:
        yield record
        start = record.end


def _scan_record(fd: int, start: int, block_bytes: int) -> ScannedRecord | None:
    """Scan the record at an offset; return None at the end of the file."""
    stream = isal_zlib.decompressobj(GZIP_WBITS)
    check = _RecordCheck(block_bytes)
    position = start
    while not stream.eof:
        chunk = os.pread(fd, _STEP, position)
        if not chunk:
            if position == start:
                return None
            raise NotARecord("the file ends inside a record")
        position += len(chunk)
        try:
            check.feed(stream.decompress(chunk))
        except _IsalError as error:
            raise NotARecord(str(error)) from error
    end = position - len(stream.unused_data)
    headers = check.finish()
    return ScannedRecord(start, end - start, headers, check.text_hash, check.block)


class _RecordCheck:
    """Checks that a stream of bytes is exactly one record."""

    def __init__(self, block_bytes: int) -> None:
        self.block = b""
        """The value for ScannedRecord.block."""
        self._block_bytes = block_bytes
        self._head = b""
        self._headers: Mapping[str, str] | None = None
        self._left = 0
        self._tail = b""
        self._hash: xxhash.xxh3_64 | None = None

    @property
    def text_hash(self) -> int | None:
        """The value for ScannedRecord.text_hash."""
        return None if self._hash is None else signed(self._hash.intdigest())

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        if self._headers is None:
            self._head += data
            head, head_end, data = self._head.partition(HEAD_END)
            if not head_end:
                if len(head) > _MAX_HEAD:
                    raise NotARecord("the head does not end")
                return
            self._headers = parse_head(head)
            self._left = content_length(self._headers) + len(RECORD_END)
            self._head = b""
            if self._headers.get("warc-type") == "conversion":
                self._hash = xxhash.xxh3_64()
        if self._hash is not None:
            self._hash.update(data[: max(0, self._left - len(RECORD_END))])
        if len(self.block) < self._block_bytes:
            self.block += data[: min(self._block_bytes - len(self.block), max(0, self._left - len(RECORD_END)))]
        self._left -= len(data)
        self._tail = (self._tail + data[-len(RECORD_END) :])[-len(RECORD_END) :]

    def finish(self) -> Mapping[str, str]:
        """Return the headers after the last byte; raise NotARecord unless the bytes were exactly one record."""
        if self._headers is None or self._left or self._tail != RECORD_END:
            raise NotARecord("not one whole record")
        return self._headers
