"""What commands print that only read."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

import click
import msgspec

from rove.errors import FULL_DISK_ERRNOS, RoveError

T = TypeVar("T")
_UNWRITABLE = FULL_DISK_ERRNOS | {errno.EIO}


def run_reading(work: Coroutine[Any, Any, T]) -> T:
    """Run a command that prints; whoever reads it may stop doing so."""
    try:
        result = asyncio.run(work)
        sys.stdout.flush()
    except BrokenPipeError:
        # Who reads our output has had enough, as `head` does: nothing is wrong.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(0) from None
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise RoveError(f"the output cannot be written: {error.strerror}") from error
    return result


def print_json(value: Any) -> None:
    """One object on one line."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
