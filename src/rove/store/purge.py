"""Taking records out of finished WARC files: the part of `rove purge` that knows the files.

The database says where each record of the crawl is, and it is told of a move after the fact. So at
every moment, whenever the process is killed, each record that stays lies where the database says,
be that the old place or the new one. For one file after the other:

1. The file is read. If nothing in it is to go, that is all. Of the texts that are to go the caller is asked whether a
   page that stays has no other (see purge_copy.py); from then on nobody may refer anew to one that nobody inherits.
2. What stays is copied, as it was compressed, to `NEW.warc.gz.purge`, and synced. NEW is the old name
   with `-p1` at its end, or `-p2` if that had `-p1`: names that the store never makes.
3. `purge.json` is put into the directory: old name, new name, what moved where. From here on the step
   is decided. A copy without it, left by a kill before this, is taken away by the next purge.
4. The copy is renamed to `NEW.warc.gz`. Old and new file stand side by side.
5. The caller brings the rows of the old file up to date, and says so with `finish`.
6. The old file is deleted, then `purge.json`.

Names are synced between the steps. A purge that finds a `purge.json` goes on behind step 3, whatever domain
that was for: the caller is given the same move again. If the old file is gone already, the database had
been told, and only `purge.json` is left to delete. Recovery looks at none of these names, and the store makes
none of them, so a crawl may even go on in between.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from rove.errors import DiskFull, StoreError, is_disk_full
from rove.store.files import sync_directory, write_all
from rove.store.members import members
from rove.store.purge_copy import Copied, Heirs, Inherited, Moves, Plan, copy, new_file, nobody
from rove.store.record import NotARecord
from rove.store.recovery import recover

STEP_NAME = "purge.json"
COPY_SUFFIX = ".purge"
_PARTIAL_SUFFIX = ".partial"

_NUMBERED = re.compile(r"(?P<name>.*?)(?:-p(?P<number>[0-9]+))?\.warc\.gz", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A file whose records moved; its rows in the database are to be brought up to date."""

    old: str
    new: str | None
    """None: nothing was left for a new file."""
    moved: Mapping[int, int]
    """The offset of each record that stays, old to new; what lay at any other offset of the old file is gone."""
    lengths: Mapping[int, int] = field(default_factory=dict)
    """By old offset: of the records that were written anew, as they named a page that goes; others are as they were."""
    inherited: Mapping[int, Inherited] = field(default_factory=dict)
    """By old offset: the texts of pages that go, which pages that stay have as well."""
    removed: int
    bytes_freed: int

    @property
    def records(self) -> int:
        """How many stay, without the one that opens the file."""
        return len(self.moved) + len(self.inherited)


class _PurgeStep(msgspec.Struct, frozen=True, kw_only=True):
    """What `purge.json` says."""

    old: str
    new: str | None
    removed: int
    bytes_freed: int
    moved_from: bytes
    moved_to: bytes
    lengths: dict[int, int] = {}
    inherited: dict[int, Inherited] = {}


class Purge:
    """Rewrites the files of a store that nobody writes to, without some of their records."""

    def __init__(
        self, directory: Path, is_purged: Callable[[str], bool], heirs: Heirs = nobody
    ) -> None:
        """`is_purged` is asked about the URL of every record that has one; `heirs` about the texts of pages that go."""
        self._directory = directory
        self._is_purged = is_purged
        self._heirs = heirs
        self._step_path = directory / STEP_NAME

    def rewrite(self) -> Iterator[Rewritten]:
        """Rewrite file after file; what an earlier purge had not finished comes first.

        After each, the caller brings the database up to date and calls `finish`, then goes on. It
        may be left at any point. StoreError if a file is damaged or cannot be written: that one is
        as it was, those before it are finished.
        """
        if not self._directory.exists():
            return
        with _as_store_errors(self._directory):
            if recover(self._directory).in_use:
                raise StoreError(
                    f"a crawl is writing to {self._directory}: stop it, then purge again"
                )
            pending = self.unfinished()
            self._remove_copies()
        if pending is not None:
            yield pending
            self._must_be_finished(pending.old)
        for path in sorted(self._directory.glob("*.warc.gz")):
            with _as_store_errors(self._directory):
                done = self._rewrite_file(path)
            if done is not None:
                yield done
                self._must_be_finished(done.old)

    def unfinished(self) -> Rewritten | None:
        """The file that was rewritten last, if it may be that the database does not know yet.

        Completes the files' part of what a kill interrupted; asking again gives the same.
        """
        with _as_store_errors(self._directory):
            step = self._read_step()
            if step is None:
                return None
            if not (self._directory / step.old).exists():
                self._forget_step()
                return None
            self._reveal(step)
        return Rewritten(
            old=step.old,
            new=step.new,
            moved=Moves(step.moved_from, step.moved_to),
            lengths=step.lengths,
            inherited=step.inherited,
            removed=step.removed,
            bytes_freed=step.bytes_freed,
        )

    def finish(self, old: str) -> None:
        """Delete a file that was rewritten: the database no longer points to it."""
        with _as_store_errors(self._directory):
            step = self._read_step()
            if step is None or step.old != old:
                raise RuntimeError(f"{old} was not rewritten, or is finished")
            (self._directory / old).unlink()
            sync_directory(self._directory)
            self._forget_step()

    def _rewrite_file(self, path: Path) -> Rewritten | None:
        fd = os.open(path, os.O_RDONLY)
        try:
            plan = self._read(fd, path)
            if plan.changes_nothing:
                return None
            new = self._new_path(path) if plan.leaves_something else None
            try:
                copied = Copied()
                if new is not None:
                    copied = copy(fd, _copy_name(new), new.name, plan)
                    sync_directory(self._directory)
                self._write_partial_step(_step(fd, path, new, plan, copied))
            except BaseException:
                with suppress(OSError):  # what stays is taken away by the next purge
                    self._remove_copies()
                raise
        finally:
            os.close(fd)
        self._partial_step.rename(self._step_path)
        sync_directory(self._directory)
        return self.unfinished()

    def _read(self, fd: int, path: Path) -> Plan:
        """Read a whole file, which is the proof that what will be copied is whole."""
        plan = Plan(file=path.name, is_purged=self._is_purged, heirs=self._heirs)
        try:
            for member in members(fd):
                plan.take(member)
        except NotARecord as error:
            raise StoreError(
                f"{path} is damaged at byte {plan.end} ({error}) and stays as it is;"
                " move it out of the directory to purge the other files"
            ) from error
        plan.ask_heirs()
        return plan

    def _new_path(self, path: Path) -> Path:
        found = _NUMBERED.fullmatch(path.name)
        assert found is not None, "files are listed by how their names end"
        number = int(found["number"] or 0)
        while True:
            number += 1
            new = path.with_name(f"{found['name']}-p{number}.warc.gz")
            if not new.exists():
                return new

    def _reveal(self, step: _PurgeStep) -> None:
        """Give the copy of a decided step its final name."""
        if step.new is None:
            return
        new = self._directory / step.new
        if _copy_name(new).exists():
            _copy_name(new).rename(new)
            sync_directory(self._directory)
        elif not new.exists():
            raise StoreError(
                f"{new}, which is to replace {step.old}, is missing; {step.old} was not deleted"
            )

    def _must_be_finished(self, old: str) -> None:
        if self._step_path.exists():
            raise RuntimeError(f"{old} has to be finished before the next file")

    def _remove_copies(self) -> None:
        """Take away what was not decided: copies, and the beginning of a `purge.json`."""
        for path in (*self._directory.glob(f"*.warc.gz{COPY_SUFFIX}"), self._partial_step):
            path.unlink(missing_ok=True)

    @property
    def _partial_step(self) -> Path:
        return self._directory / f"{STEP_NAME}{_PARTIAL_SUFFIX}"

    def _read_step(self) -> _PurgeStep | None:
        try:
            return msgspec.json.decode(self._step_path.read_bytes(), type=_PurgeStep)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise StoreError(f"{self._step_path} cannot be read: {error}") from error

    def _write_partial_step(self, step: _PurgeStep) -> None:
        with new_file(self._partial_step) as fd:
            write_all(fd, msgspec.json.encode(step))

    def _forget_step(self) -> None:
        self._step_path.unlink()
        sync_directory(self._directory)


@contextmanager
def _as_store_errors(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if is_disk_full(error):
            raise DiskFull(
                f"no room left to rewrite pages in {directory} ({reason}): a purge needs as much as the"
                " largest file there; make room and purge again"
            ) from error
        raise StoreError(f"pages in {directory} cannot be rewritten: {reason}") from error


def _copy_name(path: Path) -> Path:
    """What the new file is called before it is decided that it takes the old one's place."""
    return path.with_name(path.name + COPY_SUFFIX)


def _step(fd: int, path: Path, new: Path | None, plan: Plan, copied: Copied) -> _PurgeStep:
    moved_from, moved_to = copied.moves.as_bytes()
    return _PurgeStep(
        old=path.name,
        new=new.name if new else None,
        removed=plan.removed,
        bytes_freed=os.fstat(fd).st_size - copied.size,
        moved_from=moved_from,
        moved_to=moved_to,
        lengths=copied.lengths,
        inherited=copied.inherited,
    )
