"""Maps sqlite3's errors to ours."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from rove.errors import DiskFull, FrontierError, RoveError, UsageError


def mapped(error: sqlite3.Error | UnicodeDecodeError, path: Path) -> RoveError:
    """Return our exception for one of sqlite3's."""
    if isinstance(error, UnicodeDecodeError):
        return UsageError(damage_text(path, "a text is not UTF-8"))
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_FULL" or name.startswith("SQLITE_IOERR_WRITE"):
        return DiskFull(f"the disk is full: {path} cannot grow ({error}); free some space, then use --resume")
    if name == "SQLITE_NOTADB":
        return UsageError(f"{path} is not a frontier that rove can read ({error})")
    if name.startswith("SQLITE_CORRUPT"):
        return UsageError(damage_text(path, str(error)))
    return FrontierError(f"the frontier {path} failed: {error}")


def damage_text(path: Path, what: str) -> str:
    """Say that a file is damaged, and what to do."""
    return (
        f"{path} is damaged ({what}); restore it from a backup, or repair it with "
        f"'sqlite3 {path.name} .recover | sqlite3 repaired.sqlite' and put the new file in its place"
    )
