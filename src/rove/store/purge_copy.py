"""What a purge makes of one WARC file: what goes, what stays as it is, and what is written anew.

Two kinds of records are written anew. A text is stored once, in the record of the page that brought it first: where
that page goes and others with the same text stay, one of them inherits it, and the record names that one from then on.
And a revisit record of a page that stays no longer names a page that goes.
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
from rove.store.members import Member
from rove.store.record import (
    DEFAULT_LEVEL,
    REFERRED_URL,
    Record,
    compress,
    decompress,
    renamed_warcinfo,
    text_record,
    unreferring_record,
)

TEXTS_AT_ONCE = 1_000
_COPY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Heir:
    """The page that a text is to belong to from now on."""

    url: str
    fetched_at: float
    """Wall-clock seconds since the epoch."""
    domain: int
    visit: int


class Inherited(msgspec.Struct, frozen=True, kw_only=True):
    """A text that belongs to another page now, and where it is."""

    hash: int
    domain: int
    visit: int
    offset: int
    length: int


Heirs = Callable[[Sequence[tuple[int, Location]]], Mapping[int, Heir]]
"""For texts whose pages go, by hash and place: who inherits them, by offset."""


def nobody(texts: Sequence[tuple[int, Location]]) -> Mapping[int, Heir]:
    """Where texts are stored for their own page only."""
    return {}


class Moves(Mapping[int, int]):
    """Old offsets to new ones, both growing, in 16 bytes a record."""

    __slots__ = ("_new", "_old")

    def __init__(self, old: bytes = b"", new: bytes = b"") -> None:
        self._old = array("Q", old)
        self._new = array("Q", new)

    def append(self, old: int, new: int) -> None:
        """Add a move behind the last one."""
        self._old.append(old)
        self._new.append(new)

    def as_bytes(self) -> tuple[bytes, bytes]:
        """What makes the same Moves again."""
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
class Plan:
    """What is to become of the records of a file."""

    file: str
    is_purged: Callable[[str], bool]
    heirs: Heirs
    removed: int = 0
    end: int = 0
    """Of the last record."""
    warcinfo: Member | None = None
    """The record that opens the file; it is written anew."""
    stretches: list[tuple[int, int]] = field(default_factory=list)
    """Begin and end of what is copied as it is."""
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    """Of the records in there."""
    unreferred: dict[int, int] = field(default_factory=dict)
    """Offsets and lengths of revisit records that are not to name a page any more."""
    inherited: dict[int, tuple[int, int, Heir]] = field(default_factory=dict)
    """By offset of a text that goes to another page: its length, its hash, and the page."""
    _lone: list[tuple[int, Location]] = field(default_factory=list)
    """Texts whose page goes, of which nobody has been asked yet."""

    @property
    def changes_nothing(self) -> bool:
        """Whether the file may stay as it is."""
        return not self.removed and not self.unreferred

    @property
    def leaves_something(self) -> bool:
        """Whether there is anything to put into a new file."""
        return bool(self.stretches or self.unreferred or self.inherited)

    def take(self, member: Member) -> None:
        """Decide about the next record."""
        self.end = member.end
        url = member.headers.get("warc-target-uri")
        referred = member.headers.get(REFERRED_URL)
        if url is not None and self.is_purged(url):
            self.removed += 1
            if member.text_hash is not None:
                where = Location(file=self.file, offset=member.offset, length=member.length)
                self._lone.append((member.text_hash, where))
                if len(self._lone) >= TEXTS_AT_ONCE:
                    self.ask_heirs()
        elif referred is not None and self.is_purged(referred):
            self.unreferred[member.offset] = member.length
        elif not member.offset and member.headers.get("warc-type") == "warcinfo":
            self.warcinfo = member
        else:
            self._keep(member)

    def ask_heirs(self) -> None:
        """Find out who inherits the texts of the pages that go."""
        texts, self._lone = self._lone, []
        heirs = self.heirs(texts) if texts else {}
        for hash, where in texts:
            heir = heirs.get(where.offset)
            if heir is not None:
                self.inherited[where.offset] = (where.length, hash, heir)

    def _keep(self, member: Member) -> None:
        self.offsets.append(member.offset)
        if self.stretches and self.stretches[-1][1] == member.offset:
            self.stretches[-1] = (self.stretches[-1][0], member.end)
        else:
            self.stretches.append((member.offset, member.end))


@dataclass(slots=True, kw_only=True)
class Copied:
    """Where the records of a file are in its copy."""

    moves: Moves = field(default_factory=Moves)
    lengths: dict[int, int] = field(default_factory=dict)
    """By old offset, of those that were written anew."""
    inherited: dict[int, Inherited] = field(default_factory=dict)
    """By old offset."""
    size: int = 0


def copy(fd: int, to: Path, name: str, plan: Plan) -> Copied:
    """Write what stays of a file into a new one, which will get this name; it is on the disk when this returns."""
    done = Copied()
    rest = iter(plan.offsets)
    following = next(rest, None)
    anew = {*plan.unreferred, *plan.inherited}
    with new_file(to) as out:
        if plan.warcinfo is not None:
            record = _record(fd, plan.warcinfo.offset, plan.warcinfo.length)
            done.size += _write(out, renamed_warcinfo(record, name))
        for begin, end in sorted([*plan.stretches, *((offset, 0) for offset in anew)]):
            if begin in anew:
                _write_anew(fd, out, begin, plan, done)
                continue
            while following is not None and following < end:
                done.moves.append(following, following - begin + done.size)
                following = next(rest, None)
            _copy_bytes(fd, out, begin, end, to)
            done.size += end - begin
    return done


def _write_anew(fd: int, out: int, offset: int, plan: Plan, done: Copied) -> None:
    if offset in plan.unreferred:
        record = unreferring_record(_record(fd, offset, plan.unreferred[offset]))
        length = _write(out, record)
        done.moves.append(offset, done.size)
        done.lengths[offset] = length
    else:
        old_length, hash, heir = plan.inherited[offset]
        text = _record(fd, offset, old_length).block
        page = Page(url=heir.url, fetched_at=heir.fetched_at, text=text, source=None)
        length = _write(out, text_record(page, refers_to=None))
        done.inherited[offset] = Inherited(
            hash=hash, domain=heir.domain, visit=heir.visit, offset=done.size, length=length
        )
    done.size += length


def _record(fd: int, offset: int, length: int) -> Record:
    return decompress(os.pread(fd, length, offset))


def _write(out: int, record: bytes) -> int:
    """Write a record; its length as it is compressed."""
    member = compress(record, DEFAULT_LEVEL)
    write_all(out, member)
    return len(member)


def _copy_bytes(fd: int, out: int, position: int, end: int, to: Path) -> None:
    while position < end:
        chunk = os.pread(fd, min(_COPY_BYTES, end - position), position)
        if not chunk:
            raise StoreError(f"a file was cut while {to.name} was made from it")
        write_all(out, chunk)
        position += len(chunk)


@contextmanager
def new_file(path: Path) -> Iterator[int]:
    """A file to be filled; at the end it is on the disk, its name is the caller's to sync."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        yield fd
        os.fsync(fd)
    finally:
        os.close(fd)
