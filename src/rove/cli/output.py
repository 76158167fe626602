"""Output of the commands that only read."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import click
import msgspec

from rove.errors import FULL_DISK_ERRNOS, RoveError

P = ParamSpec("P")
T = TypeVar("T")
_UNWRITABLE = FULL_DISK_ERRNOS | {errno.EIO}


def reading(command: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Make a command of a coroutine function that prints, and handle an output that can no longer be written."""

    @wraps(command)
    def run(*args: P.args, **options: P.kwargs) -> T:
        try:
            result = asyncio.run(command(*args, **options))
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader has seen enough, as with `| head`. That is not an error.
            _discard_output()
            raise click.exceptions.Exit(0) from None
        except OSError as error:
            if error.errno not in _UNWRITABLE:
                raise
            _discard_output()
            raise RoveError(f"the output cannot be written: {error.strerror}") from error
        return result

    return run


def _discard_output() -> None:
    """Redirect standard output, so that the flush at exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(value: Any) -> None:
    """Print a value as JSON on one line."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
