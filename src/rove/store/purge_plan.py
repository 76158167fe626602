"""The plan for purging one WARC file: which records are deleted, copied or rewritten. It also makes the copy.

Two kinds of records are rewritten. A text is stored once, in the record of the first page that had it. If that page is
purged and other pages have the same text, one of them inherits the text, and its record names that page. A revisit
record that refers to a purged page loses the reference.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from rove.errors import StoreError
from rove.model.ledger import Location
from rove.store.contract import Page
from rove.store.files import write_all
from rove.store.record import (
    REFERRED_URL,
    Record,
    compress,
    decompress,
    renamed_warcinfo,
    text_record,
    unreferring_record,
)
from rove.store.scan import ScannedRecord

TEXTS_AT_ONCE = 1_000
_COPY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Heir:
    """The page that inherits a text."""

    url: str
    fetched_at: float
    """Seconds since the epoch."""
    domain: int
    visit: int
    response_id: str | None = None
    """The record id of its stored HTTP response; None if there is none here."""


class Inherited(msgspec.Struct, frozen=True, kw_only=True):
    """A text that now belongs to another page, and its new position."""

    hash: int
    domain: int
    visit: int
    offset: int
    length: int


Heirs = Callable[[Sequence[tuple[int, Location]]], Mapping[int, Heir]]
"""Takes the hashes and locations of texts whose pages are purged; returns the heirs by offset."""


class Moves(Mapping[int, int]):
    """Maps old offsets to new ones, both ascending, in 16 bytes per record."""

    __slots__ = ("_new", "_old")

    def __init__(self, old: bytes = b"", new: bytes = b"") -> None:
        self._old = array("Q", old)
        self._new = array("Q", new)

    def append(self, old: int, new: int) -> None:
        """Add a move whose offsets are higher than all before."""
        self._old.append(old)
        self._new.append(new)

    def as_bytes(self) -> tuple[bytes, bytes]:
        """Return the arguments that create an equal Moves."""
        return self._old.tobytes(), self._new.tobytes()

    def __getitem__(self, offset: int) -> int:
        index = bisect_left(self._old, offset)
        if index == len(self._old) or self._old[index] != offset:
            raise KeyError(offset)
        return self._new[index]

    def __iter__(self) -> Iterator[int]:
        return iter(self._old)

    def __len__(self) -> int:
        return len(self._old)


@dataclass(slots=True, kw_only=True)
class PurgePlan:
    """Collects what must happen to each record of a file."""

    file: str
    is_purged: Callable[[str], bool]
    heirs: Heirs
    removed: int = 0
    end: int = 0
    """End of the last record."""
    warcinfo: ScannedRecord | None = None
    """The first record of the file, which is rewritten with the new file name."""
    ranges: list[tuple[int, int]] = field(default_factory=list)
    """Start and end of byte ranges that are copied unchanged."""
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    """The offsets of the records in `ranges`."""
    unreferred: dict[int, int] = field(default_factory=dict)
    """Offsets and lengths of revisit records that lose their reference."""
    inherited: dict[int, tuple[int, int, Heir]] = field(default_factory=dict)
    """Length, hash and heir of each inherited text, by offset."""
    _orphans: list[tuple[int, Location]] = field(default_factory=list)
    """Texts of purged pages for which `heirs` has not been called yet."""

    @property
    def changes_nothing(self) -> bool:
        """Whether the file can stay as it is."""
        return not self.removed and not self.unreferred

    @property
    def leaves_something(self) -> bool:
        """Whether the new file has any record."""
        return bool(self.ranges or self.unreferred or self.inherited)

    def add(self, record: ScannedRecord) -> None:
        """Decide what happens to the next record."""
        self.end = record.end
        url = record.headers.get("warc-target-uri")
        referred = record.headers.get(REFERRED_URL)
        if url is not None and self.is_purged(url):
            self.removed += 1
            if record.text_hash is not None:
                location = Location(file=self.file, offset=record.offset, length=record.length)
                self._orphans.append((record.text_hash, location))
                if len(self._orphans) >= TEXTS_AT_ONCE:
                    self.ask_heirs()
        elif referred is not None and self.is_purged(referred):
            self.unreferred[record.offset] = record.length
        elif not record.offset and record.headers.get("warc-type") == "warcinfo":
            self.warcinfo = record
        else:
            self._copy(record)

    def ask_heirs(self) -> None:
        """Find the heirs of the texts of purged pages."""
        texts, self._orphans = self._orphans, []
        heirs = self.heirs(texts) if texts else {}
        for hash, location in texts:
            heir = heirs.get(location.offset)
            if heir is not None:
                self.inherited[location.offset] = (location.length, hash, heir)

    def _copy(self, record: ScannedRecord) -> None:
        self.offsets.append(record.offset)
        if self.ranges and self.ranges[-1][1] == record.offset:
            self.ranges[-1] = (self.ranges[-1][0], record.end)
        else:
            self.ranges.append((record.offset, record.end))


@dataclass(slots=True, kw_only=True)
class Copied:
    """The positions of a file's records in its copy."""

    moves: Moves = field(default_factory=Moves)
    lengths: dict[int, int] = field(default_factory=dict)
    """The new lengths of rewritten records, by old offset."""
    inherited: dict[int, Inherited] = field(default_factory=dict)
    """By old offset."""
    size: int = 0


def copy(fd: int, to: Path, name: str, plan: PurgePlan) -> Copied:
    """Copy the remaining records of a file to a new one that will be called `name`, and sync it."""
    copied = Copied()
    rest = iter(plan.offsets)
    following = next(rest, None)
    rewritten = {*plan.unreferred, *plan.inherited}
    with new_file(to) as out:
        if plan.warcinfo is not None:
            record = _record(fd, plan.warcinfo.offset, plan.warcinfo.length)
            copied.size += _write(out, renamed_warcinfo(record, name))
        for begin, end in sorted([*plan.ranges, *((offset, 0) for offset in rewritten)]):
            if begin in rewritten:
                _rewrite(fd, out, begin, plan, copied)
                continue
            while following is not None and following < end:
                copied.moves.append(following, following - begin + copied.size)
                following = next(rest, None)
            _copy_bytes(fd, out, begin, end, to)
            copied.size += end - begin
    return copied


def _rewrite(fd: int, out: int, offset: int, plan: PurgePlan, copied: Copied) -> None:
    if offset in plan.unreferred:
        record = unreferring_record(_record(fd, offset, plan.unreferred[offset]))
        length = _write(out, record)
        copied.moves.append(offset, copied.size)
        copied.lengths[offset] = length
    else:
        old_length, hash, heir = plan.inherited[offset]
        old = _record(fd, offset, old_length)
        page = Page(url=heir.url, fetched_at=heir.fetched_at, text=old.block, source=None, languages=old.languages)
        length = _write(out, text_record(page, refers_to=heir.response_id))
        copied.inherited[offset] = Inherited(
            hash=hash, domain=heir.domain, visit=heir.visit, offset=copied.size, length=length
        )
    copied.size += length


def _record(fd: int, offset: int, length: int) -> Record:
    return decompress(os.pread(fd, length, offset))


def _write(out: int, record: bytes) -> int:
    """Write a record and return its compressed length."""
    member = compress(record)
    write_all(out, member)
    return len(member)


def _copy_bytes(fd: int, out: int, position: int, end: int, to: Path) -> None:
    while position < end:
        chunk = os.pread(fd, min(_COPY_BYTES, end - position), position)
        if not chunk:
            raise StoreError(f"a file was truncated while it was copied to {to.name}")
        write_all(out, chunk)
        position += len(chunk)


@contextmanager
def new_file(path: Path) -> Iterator[int]:
    """Create a file to write to and sync it at the end. The caller syncs the directory."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        yield fd
        os.fsync(fd)
    finally:
        os.close(fd)
