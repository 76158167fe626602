"""Writes a file completely or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rove.errors import UsageError
from rove.store.files import sync_directory


@contextmanager
def whole_file(
    path: Path, *, overwrite: bool = True, on_complete: Callable[[Path], None] | None = None
) -> Iterator[BinaryIO]:
    """Open a new file that gets its name, and replaces an older one, only when it is complete.

    `on_complete` is called with the complete file, before it gets its name.
    """
    target = _target(path)
    if target.exists() and not overwrite:
        raise UsageError(f"{path} exists; add --force to replace it")
    new = target.with_name(f".{target.name}.{secrets.token_hex(4)}.new")
    try:
        try:
            with new.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if on_complete is not None:
                on_complete(new)
            new.replace(target)
            sync_directory(target.parent)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error


def _target(path: Path) -> Path:
    """Resolve symbolic links, so that the new file replaces their target; refuse anything but an ordinary file."""
    target = path.resolve()
    if target.exists() and not target.is_file():
        raise UsageError(f"cannot write {path}: it is not an ordinary file")
    return target
