"""The in-flight log: requests that a process has made and not settled yet, in files that survive kill -9.

A line is written before each request and another when it has ended. The files are mapped into memory: a written line
belongs to the operating system, so it survives the process, and writing it takes no system call (write() took 47 µs on
average and up to 50 ms when it waited for the disk). A file is deleted once all its visits are settled. The next start
enters the requests of a dead process into the ledger (`lost_visits`). So the ledger knows every request ever made, and
each domain is left alone for as long as its responses require.

Two more lines say when a process begins and ends to read the response to a pending URL, which means to decode and to
parse it. If the process dies in between, this URL is a suspect.

The files are not synced to disk, so a power cut may lose the last seconds.
"""

from __future__ import annotations

import math
import mmap
import os
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from rove.errors import DiskFull, StoreError, is_disk_full
from rove.frontier.priority import suspect_deaths
from rove.frontier.records import LostVisit, Suspect
from rove.model.ledger import DelaySource, RequestRow, Settlement
from rove.model.urls import PendingUrl
from rove.resources.spare_files import SpareFiles, at_once

FILE_BYTES = 256 * 1024
"""Size of a file from its creation on. A full file is followed by another."""
_NAME = re.compile(r"requests-(\d+)-(\d+)\.jsonl")


class Note(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="request"):
    """A line about a request."""

    row: RequestRow
    """The request as it stands."""
    pause: float = 0.0
    """How long the responses so far require to leave the domain alone after the visit, in seconds."""
    pause_from: DelaySource = DelaySource.DELAY
    robots: bytes | None = None
    """The robots.txt that was fetched."""


class ReadingBegan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="reading"):
    """A line that says that a visit begins to read the response to a pending URL."""

    visit: int
    fingerprint: int
    deaths: int | None = None
    """The deaths that are evidence against the URL so far, if it is a suspect that is tried alone."""


class ReadingEnded(msgspec.Struct, frozen=True, kw_only=True, tag="read"):
    """A line that says that the visit has read it."""

    visit: int


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Note | ReadingBegan | ReadingEnded).decode


class InflightLog:
    """The in-flight log of one process."""

    def __init__(
        self, directory: Path, process: int, spare: SpareFiles | None = None, *, file_bytes: int = FILE_BYTES
    ) -> None:
        """`process`: the number of this process in the frontier; `spare`: used when no more files can be opened."""
        self._open_file = at_once if spare is None else spare.opened
        self._directory = directory
        self._process = process
        self._file_bytes = file_bytes
        self._number = 0
        self._map: mmap.mmap | None = None
        self._size = 0
        self._path = directory
        self._unsettled: dict[Path, set[int]] = {}
        """The unsettled visits in each file."""
        self._current: set[int] = set()
        """The unsettled visits in the file that is being written."""

    def note(self, note: Note) -> None:
        """Write a line about a request. When this returns, the line survives the process."""
        self.write(_encode(note) + b"\n", note.row.visit)

    def write(self, line: bytes, visit: int, *, room_for: bytes = b"") -> None:
        """Write a line of a visit, into a file that has room for another one as well."""
        needed = len(line) + len(room_for)
        if self._map is None or self._size + needed > len(self._map):
            self._start_file(max(self._file_bytes, needed))
        assert self._map is not None, "a new file is mapped"
        end = self._size + len(line)
        self._map[self._size : end] = line
        self._size = end
        self._current.add(visit)

    def settled(self, visits: Iterable[int]) -> None:
        """Forget visits that are in the ledger."""
        done = set(visits)
        for path, unsettled in list(self._unsettled.items()):
            unsettled -= done
            if not unsettled and path != self._path:
                self._delete(path)

    def close(self) -> None:
        """Close the log and delete all files without unsettled visits."""
        self._unmap()
        for path, unsettled in list(self._unsettled.items()):
            if not unsettled:
                self._delete(path)
        self._unsettled.clear()

    def _start_file(self, size: int) -> None:
        old = self._path
        self._unmap()
        self._number += 1
        self._path = self._directory / f"requests-{self._process}-{self._number}.jsonl"
        try:
            self._directory.mkdir(exist_ok=True)
            self._map = self._open_file(lambda: _create_mapped(self._path, size))
        except OSError as error:
            with suppress(OSError):
                self._path.unlink()
            if is_disk_full(error):
                raise DiskFull(
                    f"the disk is full: could not create {self._path} ({error.strerror}); free some space, "
                    "then use --resume"
                ) from error
            raise StoreError(f"could not write {self._path}: {error.strerror}") from error
        self._size = 0
        self._current = self._unsettled[self._path] = set()
        if not self._unsettled.get(old, {0}):
            self._delete(old)

    def _unmap(self) -> None:
        if self._map is not None:
            self._map.close()
            self._map = None

    def _delete(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        del self._unsettled[path]


class Reading:
    """Notes in the log that a visit reads the response to a pending URL. A context manager for repeated use."""

    __slots__ = ("_ended", "_log", "_url", "_visit")

    def __init__(self, log: InflightLog, visit: int, url: PendingUrl) -> None:
        self._log = log
        self._visit = visit
        self._url = url
        self._ended = b""

    def __enter__(self) -> None:
        visit, url = self._visit, self._url
        began = ReadingBegan(visit=visit, fingerprint=url.fingerprint, deaths=suspect_deaths(url.priority))
        self._ended = self._ended or _encode(ReadingEnded(visit=visit)) + b"\n"
        # Both lines go into one file: a file is deleted alone, and the first line must not outlive the second.
        self._log.write(_encode(began) + b"\n", visit, room_for=self._ended)

    def __exit__(self, *_: object) -> None:
        self._log.write(self._ended, self._visit)


def _create_mapped(path: Path, size: int) -> mmap.mmap:
    """Create a file and map it. Its disk space is reserved, so that a full disk fails here and not at a write."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, 0, size)
        else:
            os.write(fd, bytes(size))
        return mmap.mmap(fd, size)
    finally:
        os.close(fd)


def inflight_files(
    directory: Path, *, processes: Collection[int] | None = None, except_process: int = 0
) -> list[tuple[int, Path]]:
    """Return the files of these processes, or of all but one, each with the number of its process."""
    files = []
    with suppress(FileNotFoundError):
        for path in directory.iterdir():
            name = _NAME.fullmatch(path.name)
            if name is None:
                continue
            process = int(name[1])
            if process != except_process if processes is None else process in processes:
                files.append((process, int(name[2]), path))
    return [(process, path) for process, _, path in sorted(files)]


def lost_visits(process: int, paths: Iterable[Path], delay: float, *, is_evidence: bool = False) -> list[LostVisit]:
    """Return the visits in the files of a dead process, which may not be settled; `delay` is the chosen delay.

    `is_evidence`: the death counts against a suspect that the process was trying alone.
    """
    notes: dict[int, list[Note]] = {}
    unread: dict[int, Suspect] = {}
    for path in paths:
        for line in path.read_bytes().rstrip(b"\0").splitlines():
            with suppress(msgspec.DecodeError):  # the last line may be incomplete
                match _decode(line):
                    case ReadingBegan(visit=visit, fingerprint=fingerprint, deaths=deaths):
                        unread[visit] = Suspect(fingerprint=fingerprint, deaths=deaths if is_evidence else None)
                    case ReadingEnded(visit=visit):
                        unread.pop(visit, None)
                    case note:
                        notes.setdefault(note.row.visit, []).append(note)
    return [_lost_visit(of_visit, unread.get(visit), process, delay) for visit, of_visit in notes.items()]


def _lost_visit(notes: list[Note], suspect: Suspect | None, process: int, delay: float) -> LostVisit:
    rows = {note.row.seq: note.row for note in notes}
    longest = max(notes, key=lambda note: note.pause)
    pause, source = longest.pause, longest.pause_from
    if pause <= delay:
        pause, source = delay, DelaySource.DELAY
    return LostVisit(
        domain=notes[0].row.domain,
        visit=notes[0].row.visit,
        rows=[
            row.replace(delay=pause, delay_from=source, process=process, settlement=Settlement.LOST)
            for row in rows.values()
        ],
        # One more, because `ended` is truncated to milliseconds and a delay must not end early.
        earliest=max(row.ended for row in rows.values()) + 1 + math.ceil(pause * 1000),
        robots=[note.robots for note in notes if note.robots is not None],
        suspect=suspect,
    )
