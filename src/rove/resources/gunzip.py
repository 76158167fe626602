"""Decompress gzip data with a limit on the output: a kilobyte can expand to a megabyte."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from isal import isal_zlib

GZIP_MAGIC = b"\x1f\x8b"
GZIP_WBITS = 31
"""Tells zlib to expect a gzip header."""
MAX_MEMBERS = 100


def gunzip(data: bytes, *, limit: int, step: int) -> Iterator[bytes]:
    """Yield the content of a gzip file, decompressing `step` bytes at a time, until `limit` is exceeded by one byte.

    A file may have several members (RFC 1952, section 2.2). As in browsers, bytes after the last member are ignored.
    Raise zlib.error for invalid data and for more than MAX_MEMBERS members, EOFError if the last member is cut off.
    After a zlib.error only the output of its step is lost, so a small step saves more of a damaged file.
    """
    left = limit + 1
    position = 0
    for _ in range(MAX_MEMBERS):
        member = isal_zlib.decompressobj(GZIP_WBITS)
        while not member.eof:
            compressed = data[position : position + step]
            if not compressed:
                raise EOFError("the last member is cut off")
            position += len(compressed)
            try:
                piece = member.decompress(compressed, left)
            except isal_zlib.IsalError as error:  # type: ignore[misc]  # its stub takes the class for an instance
                raise zlib.error(str(error)) from None
            yield piece
            left -= len(piece)
            if left == 0:
                return
        position -= len(member.unused_data)
        if not data.startswith(GZIP_MAGIC, position):
            return
    raise zlib.error("too many members")
