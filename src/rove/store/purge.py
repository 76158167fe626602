"""Deletes records from finished WARC files: the part of `rove purge` that handles the files.

The database knows where each record is and learns of a move only afterwards. So at every moment, even if the process is
killed, each remaining record must be where the database says, in the old file or in the new one. For each file:

1. Read the file. If nothing in it is purged, skip it. Ask the caller whether other pages inherit the texts of purged
   pages (purge_plan.py). From then on no page may start to refer to a text without an heir.
2. Copy the remaining records, still compressed, to `NEW.warc.gz.purge` and sync it. NEW is the old name with `-p1` at
   its end, or `-p2` if it had `-p1`; the store never uses such names.
3. Write `purge.json` with the old name, the new name and all moves. From here on the step will be completed. If the
   process is killed before this, the next purge deletes the copy.
4. Rename the copy to `NEW.warc.gz`. Now both files exist.
5. The caller updates the database and calls `finish`.
6. Delete the old file, then `purge.json`.

File names are synced between the steps. A purge that finds a `purge.json` continues after step 3, even if it was for
another domain, and the caller gets the same move again. If the old file is gone, the database was updated, and only
`purge.json` is left to delete. Recovery and the store ignore all these names, so a crawl may run in between.
"""

from __future__ import annotations

import os
import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from rove.errors import StoreError
from rove.store.files import store_error, sync_directory, write_all
from rove.store.purge_plan import Copied, Heirs, Inherited, Moves, PurgePlan, copy, new_file
from rove.store.record import NotARecord
from rove.store.recovery import recover
from rove.store.scan import scan

STEP_NAME = "purge.json"
COPY_SUFFIX = ".purge"
_NUMBERED = re.compile(r"(?P<name>.*?)(?:-p(?P<number>[0-9]+))?\.warc\.gz", re.DOTALL)


class Rewritten(msgspec.Struct, frozen=True, kw_only=True):
    """A file whose records moved, so that its rows in the database must be updated: the content of `purge.json`."""

    old: str
    new: str | None
    """None if no record is left."""
    moved: Moves
    """Old to new offset of each remaining record. Records at all other old offsets are deleted."""
    lengths: dict[int, int]
    """New lengths, by old offset, of records that lost a reference to a purged page. Other lengths are unchanged."""
    inherited: dict[int, Inherited]
    """Texts of purged pages that other pages inherit, by old offset."""
    removed: int
    bytes_freed: int

    @property
    def records(self) -> int:
        """The number of remaining records, without the warcinfo record."""
        return len(self.moved) + len(self.inherited)


class Purge:
    """Rewrites the WARC files of a directory without some of their records, while no crawl writes to it."""

    def __init__(self, directory: Path, is_purged: Callable[[str], bool], heirs: Heirs) -> None:
        """`is_purged` decides by the URL of a record; `heirs` finds pages that inherit the texts of purged ones."""
        self._directory = directory
        self._is_purged = is_purged
        self._heirs = heirs
        self._step_path = directory / STEP_NAME
        self._partial_step = directory / f"{STEP_NAME}.partial"

    def rewrite(self) -> Iterator[Rewritten]:
        """Rewrite one file after another, starting with one that an earlier purge did not finish.

        After each file the caller updates the database, calls `finish` and continues. It may stop at any point. Raise
        StoreError if a file is damaged or cannot be written: that file is unchanged, earlier ones are finished.
        """
        if not self._directory.exists():
            return
        with _as_store_errors(self._directory):
            if recover(self._directory).in_use:
                raise StoreError(f"a crawl is writing to {self._directory}; stop it, then purge again")
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
        """Return the last rewritten file if the database may not know of it yet.

        Complete the renames that a kill interrupted. Calling it again gives the same result.
        """
        with _as_store_errors(self._directory):
            step = self._read_step()
            if step is None:
                return None
            if not (self._directory / step.old).exists():
                self._delete_step()
                return None
            self._rename_copy(step)
            return step

    def finish(self, old: str) -> None:
        """Delete the old version of a rewritten file, after the database has been updated."""
        with _as_store_errors(self._directory):
            step = self._read_step()
            if step is None or step.old != old:
                raise RuntimeError(f"{old} was not rewritten or is already finished")
            (self._directory / old).unlink()
            sync_directory(self._directory)
            self._delete_step()

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
                step = Rewritten(
                    old=path.name,
                    new=new.name if new else None,
                    moved=copied.moves,
                    lengths=copied.lengths,
                    inherited=copied.inherited,
                    removed=plan.removed,
                    bytes_freed=os.fstat(fd).st_size - copied.size,
                )
                with new_file(self._partial_step) as out:
                    write_all(out, msgspec.json.encode(step, enc_hook=Moves.as_bytes))
            except BaseException:
                with suppress(OSError):  # the next purge deletes them
                    self._remove_copies()
                raise
        finally:
            os.close(fd)
        self._partial_step.rename(self._step_path)
        sync_directory(self._directory)
        return self.unfinished()

    def _read(self, fd: int, path: Path) -> PurgePlan:
        """Read a whole file, which also proves that all its records are intact."""
        plan = PurgePlan(file=path.name, is_purged=self._is_purged, heirs=self._heirs)
        try:
            for record in scan(fd):
                plan.add(record)
        except NotARecord as error:
            raise StoreError(
                f"{path} is damaged at byte {plan.end} ({error}) and was not changed;"
                " move it out of the directory to purge the other files"
            ) from error
        plan.ask_heirs()
        return plan

    def _new_path(self, path: Path) -> Path:
        match = _NUMBERED.fullmatch(path.name)
        assert match is not None, "rewrite() lists only such names"
        number = int(match["number"] or 0)
        while True:
            number += 1
            new = path.with_name(f"{match['name']}-p{number}.warc.gz")
            if not new.exists():
                return new

    def _rename_copy(self, step: Rewritten) -> None:
        """Give the copy its final name, once `purge.json` exists."""
        if step.new is None:
            return
        new = self._directory / step.new
        if _copy_name(new).exists():
            _copy_name(new).rename(new)
            sync_directory(self._directory)
        elif not new.exists():
            raise StoreError(f"{new}, the replacement of {step.old}, is missing; {step.old} was not deleted")

    def _must_be_finished(self, old: str) -> None:
        if self._step_path.exists():
            raise RuntimeError(f"finish {old} before the next file")

    def _remove_copies(self) -> None:
        """Delete copies and a partial `purge.json` of a step that was not completed."""
        for path in (*self._directory.glob(f"*.warc.gz{COPY_SUFFIX}"), self._partial_step):
            path.unlink(missing_ok=True)

    def _read_step(self) -> Rewritten | None:
        try:
            return msgspec.json.decode(self._step_path.read_bytes(), type=Rewritten, dec_hook=_moves)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise StoreError(f"could not read {self._step_path}: {error}") from error

    def _delete_step(self) -> None:
        self._step_path.unlink()
        sync_directory(self._directory)


@contextmanager
def _as_store_errors(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        remedy = "a purge needs as much space as the largest file there, so free some and purge again"
        raise store_error(error, f"rewrite pages in {directory}", remedy) from error


def _copy_name(path: Path) -> Path:
    """Return the name of a new file before it is complete."""
    return path.with_name(path.name + COPY_SUFFIX)


def _moves(_: type[Moves], encoded: list[str]) -> Moves:
    """Decode the only field of `purge.json` that is not plain JSON."""
    return Moves(*map(b64decode, encoded))
