"""CDXJ: one line for each record, sorted by its key, for replay tools such as pywb.

The lines are those of cdxj-indexer, in the order of their bytes. ZipNum is the same in gzip members of a few thousand
lines, with a short index of these members beside it.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, NamedTuple

from rove.export.captures import Capture
from rove.export.surt import surt
from rove.resources.gunzip import GZIP_WBITS

BLOCK_LINES = 3_000


class Block(NamedTuple):
    """A gzip member of a ZipNum file."""

    key: str
    """The key and the time of its first line."""
    offset: int
    length: int
    sha256: str


def cdxj_line(capture: Capture) -> bytes:
    """Return the line of a record, without a line feed."""
    values = {
        "url": capture.url,
        "mime": capture.media_type,
        "status": capture.status,
        "digest": capture.digest,
        "length": str(capture.record.length),
        "offset": str(capture.record.offset),
        "filename": capture.file,
    }
    # The standard library writes the same spaces and escapes as cdxj-indexer.
    fields = json.dumps({name: value for name, value in values.items() if value is not None})
    return f"{surt(capture.url)} {capture.stamp} {fields}".encode()


def write_lines(lines: Iterable[bytes], file: IO[bytes]) -> int:
    """Write sorted lines; return their number."""
    count = 0
    for line in lines:
        file.write(line + b"\n")
        count += 1
    return count


def write_blocks(
    lines: Iterable[bytes], file: IO[bytes], on_block: Callable[[Block], None], *, block_lines: int = BLOCK_LINES
) -> int:
    """Write sorted lines in gzip members; return the number of lines."""
    count = offset = 0
    for members in _slices(lines, block_lines):
        data = _compressed(b"".join(line + b"\n" for line in members))
        file.write(data)
        key = members[0].partition(b" {")[0].decode()
        on_block(Block(key, offset, len(data), hashlib.sha256(data).hexdigest()))
        count += len(members)
        offset += len(data)
    return count


def zipnum_line(block: Block, number: int, name: str) -> bytes:
    """Return the line of a member in a ZipNum index, as pywb and Common Crawl have it."""
    return f"{block.key}\t{name}\t{block.offset}\t{block.length}\t{number}\n".encode()


def _slices(lines: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for line in lines:
        batch.append(line)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _compressed(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=GZIP_WBITS)
    return stream.compress(data) + stream.flush()
