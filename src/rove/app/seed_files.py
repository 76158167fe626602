"""Turns a seed file of any common kind into plain lines: UTF-8, line feeds, one seed on each line.

A file may be compressed (gzip, zip), be in UTF-16, end its lines with CR, or be a table such as the lists of Tranco,
Umbrella and Majestic. Everything is read in pieces, so that memory does not grow with the file. Each line of the file
stays one line, so that messages can name its number. A line that cannot be understood stays as it is.
"""

from __future__ import annotations

import codecs
import csv
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import BinaryIO

from rove.errors import UsageError
from rove.urls.seed import LONGEST_LINE, is_seed, seeds_in_table_row, table_fields

PIECE = 1 << 18
_GZIP = b"\x1f\x8b"
_GZIP_WBITS = 31
_ZIP = b"PK\x03\x04"
_TAR = b"ustar"
_TAR_OFFSET = 257
"""Where the header of the first file in a tar archive names the format."""
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
    codecs.BOM_UTF8: "utf-8",
}
_SEPARATORS = ",;\t"
_HAS_SEPARATOR = re.compile(rb"[,;\t]")
_RANKED = re.compile(rb'^ *"?\d+"?[,;\t] *"?([^\s",;/#]+)"? *$', re.MULTILINE)
"""A rank and a domain: nearly all lines of most lists."""
_COLUMNS = ("url", "origin", "hostname", "host", "fqdn", "domain", "site", "website")
"""The names of columns that hold seeds, best first."""
_COMMENT = re.compile(r"(?:^|\s)#.*")


def plain_lines(source: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield the lines of a seed file in pieces; `name` is what messages call the file."""
    # A generator, so that nothing is read before the caller is ready: a pipe may make it wait.
    yield from _seed_columns(_with_line_feeds(_decoded(_no_archive(_uncompressed(source, name), name))))


def without_comment(line: str) -> str:
    """Return a line without its comment and the white space around it."""
    return (_COMMENT.sub("", line) if "#" in line else line).strip()


def _pieces(source: BinaryIO) -> Iterator[bytes]:
    while piece := source.read(PIECE):
        yield piece


def _uncompressed(source: BinaryIO, name: str) -> Iterator[bytes]:
    first = source.read(PIECE)
    if first.startswith(_GZIP):
        return _gunzipped(chain([first], _pieces(source)), name)
    if first.startswith(_ZIP):
        return _unzipped(source, name)
    return chain([first], _pieces(source))


def _no_archive(pieces: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Refuse a tar archive, compressed or not: between its files are headers, which would spoil lines."""
    start = b""
    for piece in pieces:
        start += piece
        if len(start) >= _TAR_OFFSET + len(_TAR):
            break
    if start.startswith(_TAR, _TAR_OFFSET):
        raise UsageError(f"{name} is a tar archive; unpack it and give the seed file in it")
    return chain([start], pieces)


def _gunzipped(pieces: Iterable[bytes], name: str) -> Iterator[bytes]:
    member = zlib.decompressobj(_GZIP_WBITS)
    try:
        for piece in pieces:
            while piece:
                if member.eof:
                    if not piece.strip(b"\0"):
                        break  # padding
                    member = zlib.decompressobj(_GZIP_WBITS)
                yield member.decompress(piece, PIECE)
                piece = member.unused_data if member.eof else member.unconsumed_tail
        if not member.eof:
            raise EOFError
    except (zlib.error, EOFError) as error:
        raise UsageError(f"{name} is a damaged gzip file, or it was cut off; download it again") from error


def _unzipped(source: BinaryIO, name: str) -> Iterator[bytes]:
    if not source.seekable():
        raise UsageError(f"{name} is a zip archive, which cannot be read from a pipe; give the file itself")
    try:
        with zipfile.ZipFile(source) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            if len(members) != 1:
                raise UsageError(f"{name} is a zip archive of {len(members)} files; unpack it and give one of them")
            with archive.open(members[0]) as file:
                while piece := file.read(PIECE):
                    yield piece
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise UsageError(f"{name} is a zip archive that cannot be read: {error}") from error


def _decoded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Bring a file with a byte order mark to UTF-8 without one. Other files are UTF-8, or have bad lines."""
    start = b""
    for piece in pieces:
        start += piece
        if len(start) >= len(codecs.BOM_UTF32_LE):
            break
    mark = next((mark for mark in _BYTE_ORDER_MARKS if start.startswith(mark)), b"")
    pieces = chain([start[len(mark) :]], pieces)
    encoding = _BYTE_ORDER_MARKS.get(mark, "utf-8")
    if encoding == "utf-8":
        yield from pieces
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for piece in pieces:
        yield decoder.decode(piece).encode()
    yield decoder.decode(b"", final=True).encode()


def _with_line_feeds(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """End every line with LF, whether it ends with CR, CRLF or LF."""
    ended_with_cr = False
    for piece in pieces:
        if not piece:
            continue
        if ended_with_cr and piece[:1] == b"\n":
            piece = piece[1:]
        ended_with_cr = piece.endswith(b"\r") if piece else False
        yield piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in piece else piece


def _seed_columns(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Replace each row of a table by its seed, and the row of the column names by a comment."""
    table = _Table()
    rest = b""
    for piece in pieces:
        rest += piece
        end = rest.rfind(b"\n") + 1
        if end:
            yield table.seeds(rest[:end])
            rest = rest[end:]
        elif len(rest) > PIECE:
            # Part of an endless line, which is bad in any case.
            yield rest
            rest = b""
    if rest:
        yield table.seeds(rest)


class _Table:
    """The columns of a seed file, if it has any."""

    def __init__(self) -> None:
        self._has_begun = False
        self._column: int | None = None
        """The column that holds the seeds; None if the file has no column names."""
        self._separator = ","

    def seeds(self, lines: bytes) -> bytes:
        """Return whole lines with each row of a table replaced by its seed."""
        if not self._has_begun:
            lines = self._without_names(lines)
        if self._column is None:
            if not _HAS_SEPARATOR.search(lines):
                return lines
            lines = _RANKED.sub(rb"\1", lines)
            if not _HAS_SEPARATOR.search(lines):
                return lines
        return b"\n".join([self._seed(line) for line in lines.split(b"\n")])

    def _without_names(self, lines: bytes) -> bytes:
        """Read the column names from the first line that is not empty, and make that line a comment."""
        every = lines.split(b"\n")
        for number, line in enumerate(every):
            text = without_comment(line[:LONGEST_LINE].decode(errors="replace"))
            if text:
                self._has_begun = True
                if self._read_names(text):
                    every[number] = b"# " + line
                    return b"\n".join(every)
                break
        return lines

    def _read_names(self, text: str) -> bool:
        separator = next((one for one in _SEPARATORS if one in text), ",")
        names = [name.strip().lower() for name in _split(text, separator)]
        if any(is_seed(name) for name in names):
            return False
        best = next((name for name in _COLUMNS if name in names), None)
        if best is not None:
            self._column, self._separator = names.index(best), separator
        return best is not None

    def _seed(self, line: bytes) -> bytes:
        if len(line) >= LONGEST_LINE or not _HAS_SEPARATOR.search(line):
            return line
        try:
            text = without_comment(line.decode())
        except UnicodeDecodeError:
            return line
        if self._column is not None:
            fields = _split(text, self._separator)
            return fields[self._column].strip().encode() if len(fields) > self._column else line
        found = seeds_in_table_row(table_fields(text))
        return found[0].encode() if len(found) == 1 else line


def _split(text: str, separator: str) -> list[str]:
    if '"' not in text:
        return text.split(separator)
    try:
        return next(csv.reader([text], delimiter=separator), [])
    except csv.Error:
        return text.split(separator)
