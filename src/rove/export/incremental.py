"""What an export has written so far, so that the next one writes only what is new, and every page once.

The state file names the last visit that was exported. An export goes through these steps:

1. Write the output under a temporary name.
2. Save in the state file what the output will be, under which temporary name it is, and the new last visit.
3. Rename the output.
4. Save the new last visit.

If it is killed before step 2, nothing has happened. Between 2 and 3 the temporary name still exists: the next export
deletes it and writes these pages again. After 3 the temporary name is gone: the next export completes step 4. If step 3
fails, step 2 is undone.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from rove.errors import UsageError
from rove.export.chosen import Span
from rove.inspect.open_crawl import Archive
from rove.inspect.whole_file import whole_file

SLACK = 1_000
"""Visits before the newest one that a running crawl on several machines may have numbered but not begun yet."""


PART_SUFFIX = ".new"
"""How the temporary names of outputs end."""


class _Pending(msgspec.Struct, frozen=True, kw_only=True):
    """An output that is complete and may not have its name yet."""

    part: str
    """Its temporary name."""
    last: int


class _Saved(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a state file."""

    crawl: str
    choice: str
    last: int = 0
    pending: _Pending | None = None


class State:
    """A state file, for one crawl and one choice of pages."""

    def __init__(self, path: Path, crawl: str, choice: str) -> None:
        """Read the state and complete what an earlier export left; `choice` says which pages are exported, and how."""
        self._path = path
        saved = _read(path) or _Saved(crawl=crawl, choice=choice)
        if saved.crawl != crawl:
            raise UsageError(f"{path} belongs to another crawl; name another file with --incremental")
        if saved.choice != choice:
            raise UsageError(
                f"{path} belongs to an export with other options ({saved.choice}); use the same, or another file"
            )
        if saved.pending is not None:
            part = Path(saved.pending.part)
            is_named = not part.exists()
            if not is_named:
                _delete(part)
            saved = msgspec.structs.replace(saved, last=saved.pending.last if is_named else saved.last, pending=None)
            self._save(saved)
        self._saved = saved

    async def span(self, archive: Archive) -> Span:
        """Return the visits that are new and have ended."""
        oldest = await archive.reader.oldest_lease()
        last = self._saved.last
        async for row in archive.reader.pages():
            last = row.visit
            break
        if await archive.is_running():
            last -= SLACK
        if oldest is not None:
            last = min(last, oldest - 1)
        return Span(self._saved.last, max(last, self._saved.last))

    def complete(self, span: Span, part: Path) -> None:
        """Note that the output of these visits is complete, and that it is about to get its name."""
        self._save(msgspec.structs.replace(self._saved, pending=_Pending(part=str(part), last=span.last)))

    def withdraw(self) -> None:
        """Note that the output could not get its name, and that nothing is left of it."""
        self._save(self._saved)

    def advance(self, span: Span) -> None:
        """Note that the visits are exported, and that the output has its name."""
        self._saved = msgspec.structs.replace(self._saved, last=span.last)
        self._save(self._saved)

    def _save(self, saved: _Saved) -> None:
        with whole_file(self._path) as file:
            file.write(msgspec.json.encode(saved) + b"\n")


async def crawl_mark(archive: Archive) -> str:
    """Return what tells a crawl from another one; it stays when the crawl moves to another database."""
    runs = await archive.reader.runs()
    return f"{min((run.started for run in runs), default=0.0):.3f}"


def _read(path: Path) -> _Saved | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Saved)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path} is not a state file of rove export: {error}") from error


def _delete(part: Path) -> None:
    if not (part.name.startswith(".") and part.name.endswith(PART_SUFFIX)):
        raise UsageError(f"{part} is not the temporary name of an export; the state file is damaged")
    if part.is_dir():
        shutil.rmtree(part)
    else:
        part.unlink()
