"""Writes a directory completely or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rove.errors import UsageError
from rove.store.files import sync_directory

OWN_SUFFIX = ".parquet"
OWN_NAMES = frozenset({"README.md"})
"""Besides Parquet files, the only files of a directory that an export may replace."""


@contextmanager
def whole_directory(
    path: Path, *, overwrite: bool, on_complete: Callable[[Path], None] | None = None
) -> Iterator[Path]:
    """Make a new directory that gets its name, and replaces an older one, only when it is complete.

    Only a directory that an export has made is replaced. `on_complete` is called with the complete directory, before it
    gets its name.
    """
    target = path.resolve()
    _check(path, target, overwrite=overwrite)
    token = secrets.token_hex(4)
    new, old = (target.with_name(f".{target.name}.{token}.{end}") for end in ("new", "old"))
    try:
        try:
            new.mkdir()
            yield new
            for directory in [*(found for found in new.rglob("*") if found.is_dir()), new]:
                sync_directory(directory)
            if on_complete is not None:
                on_complete(new)
            if target.exists():
                target.rename(old)
            new.rename(target)
            sync_directory(target.parent)
        finally:
            for leftover in (new, old):
                shutil.rmtree(leftover, ignore_errors=True)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error


def sync_file(path: Path) -> None:
    """Make the content of a file survive a power cut."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _check(path: Path, target: Path, *, overwrite: bool) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise UsageError(f"{path} is a file; this format is written into a directory")
    foreign = [found for found in target.rglob("*") if found.is_file() and not _is_own(found)]
    if foreign:
        raise UsageError(f"{path} holds files that are not of an export, such as {foreign[0].name}; name another one")
    if not overwrite:
        raise UsageError(f"{path} exists; add --force to replace it")


def _is_own(file: Path) -> bool:
    return file.suffix == OWN_SUFFIX or file.name in OWN_NAMES
