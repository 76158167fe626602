"""What a process has asked and not settled yet, in a file of its own: the ledger's memory across kill -9.

Before a request is made a line says so; when it has ended a line says what came of it. The file is mapped into memory:
a line is there for the operating system as soon as it is written, whatever becomes of the process, and costs no call (a
call a line waited for the disk now and then: 47 µs on average, 50 ms at worst). When its visits are settled a file is
deleted. What the files of a dead process still hold is entered into the ledger by the next start (`lost_visits`): the
ledger then knows every request that was ever made, and the domain is left alone for as long as its answer asked for.

The files are not synced to the disk: after a power cut the last seconds may be missing.
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from rove.datadir import FULL_DISK_ERRORS
from rove.errors import DiskFull, StoreError
from rove.frontier.contract import LostVisit
from rove.model.ledger import DelaySource, RequestRow, Settlement
from rove.resources.spare_files import SpareFiles, at_once

FILE_BYTES = 256 * 1024
"""A file has this size from the beginning, and when it is full it is followed by another."""
_NAME = re.compile(r"requests-(\d+)-(\d+)\.jsonl")


class Note(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line."""

    visit: int
    domain: int
    row: RequestRow | None = None
    """A request as far as it has come."""
    pause: float = 0.0
    """Seconds after the visit for which an answer asks to be left alone."""
    pause_from: DelaySource = DelaySource.DELAY
    robots: bytes | None = None
    """A robots.txt that was read."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Note).decode


class InflightLog:
    """The notes of one process."""

    def __init__(self, directory: Path, process: int, spare: SpareFiles | None = None) -> None:
        self._opened = at_once if spare is None else spare.opened
        self._directory = directory
        self._process = process
        self._number = 0
        self._map: mmap.mmap | None = None
        self._size = 0
        self._path = directory
        self._noted: set[int] = set()
        """The visits in the file that is written to which are not settled."""
        self._open: dict[Path, set[int]] = {}
        """Likewise in each file."""

    def note(self, note: Note) -> None:
        """Write a line; when this returns, it outlives the process."""
        line = _encode(note) + b"\n"
        if self._map is None or self._size + len(line) > len(self._map):
            self._turn(max(FILE_BYTES, len(line)))
        assert self._map is not None, "a new file is mapped"
        end = self._size + len(line)
        self._map[self._size : end] = line
        self._size = end
        self._noted.add(note.visit)

    def settled(self, visits: Iterable[int]) -> None:
        """These visits are in the ledger: forget them."""
        done = set(visits)
        for path, open_visits in list(self._open.items()):
            open_visits -= done
            if not open_visits and path != self._path:
                self._delete(path)

    def close(self) -> None:
        """Leave only what is not settled."""
        self._unmap()
        for path, open_visits in list(self._open.items()):
            if not open_visits:
                self._delete(path)
        self._open.clear()

    def _turn(self, size: int) -> None:
        """Go on in a new file."""
        old = self._path
        self._unmap()
        self._number += 1
        self._path = self._directory / f"requests-{self._process}-{self._number}.jsonl"
        try:
            self._directory.mkdir(exist_ok=True)
            self._map = self._opened(lambda: _mapped(self._path, size))
        except OSError as error:
            with suppress(OSError):
                self._path.unlink()
            if error.errno in FULL_DISK_ERRORS:
                raise DiskFull(
                    f"the disk is full: {self._path} cannot be made ({error.strerror}); make room, "
                    "then use --resume"
                ) from error
            raise StoreError(f"{self._path} cannot be written: {error.strerror}") from error
        self._size = 0
        self._noted = self._open[self._path] = set()
        if not self._open.get(old, {0}):
            self._delete(old)

    def _unmap(self) -> None:
        if self._map is not None:
            self._map.close()
            self._map = None

    def _delete(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        del self._open[path]


def _mapped(path: Path, size: int) -> mmap.mmap:
    """A new file in memory, whose room on the disk is taken: a full disk is an error here and not a fault later."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, 0, size)
        else:
            os.write(fd, bytes(size))
        return mmap.mmap(fd, size)
    finally:
        os.close(fd)


def spool_files(
    directory: Path, *, of: Sequence[int] | None = None, but: int = 0
) -> list[tuple[int, Path]]:
    """The files that processes have left, with their numbers: of these, or of all but one."""
    found = []
    with suppress(FileNotFoundError):
        for path in directory.iterdir():
            name = _NAME.fullmatch(path.name)
            if name is None:
                continue
            process = int(name[1])
            if process != but if of is None else process in of:
                found.append((process, int(name[2]), path))
    return [(process, path) for process, _, path in sorted(found)]


def lost_visits(process: int, paths: Iterable[Path], delay: float) -> list[LostVisit]:
    """What a dead process had asked and perhaps not settled; `delay` is what the user chose."""
    notes: dict[int, list[Note]] = {}
    for path in paths:
        for line in path.read_bytes().rstrip(b"\0").splitlines():
            with suppress(msgspec.DecodeError):  # the last line may be half a line
                note = _decode(line)
                notes.setdefault(note.visit, []).append(note)
    return [_lost(visit, found, process, delay) for visit, found in notes.items()]


def _lost(visit: int, notes: list[Note], process: int, delay: float) -> LostVisit:
    rows = {note.row.seq: note.row for note in notes if note.row is not None}
    longest = max(notes, key=lambda note: note.pause)
    pause, source = longest.pause, longest.pause_from
    if pause <= delay:
        pause, source = delay, DelaySource.DELAY
    ended = max((row.ended for row in rows.values()), default=0)
    return LostVisit(
        domain=notes[0].domain,
        visit=visit,
        rows=[
            row.replace(delay=pause, delay_from=source, process=process, settlement=Settlement.LOST)
            for row in rows.values()
        ],
        earliest=ended + round(pause * 1000) if ended else 0,
        robots=[note.robots for note in notes if note.robots is not None],
    )
