"""Output of the commands that only read."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import redirect_stdout
from functools import wraps
from typing import Any, ParamSpec, TextIO, TypeVar, cast

import click
import msgspec

from rove.cli.terminal import SafeOutput
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


def changing(command: Callable[P, T]) -> Callable[P, T]:
    """Make a command that changes a crawl finish its work, even if its output can no longer be written."""

    @wraps(command)
    def run(*args: P.args, **options: P.kwargs) -> T:
        output = SafeOutput(sys.stdout)
        with redirect_stdout(cast(TextIO, output)):
            result = command(*args, **options)
        output.flush()
        if output.error is not None:
            _discard_output()
            if isinstance(output.error, BrokenPipeError):
                raise click.exceptions.Exit(0)
            raise RoveError(f"the work is done and saved, but the output cannot be written: {_reason(output.error)}")
        return result

    return run


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _discard_output() -> None:
    """Redirect standard output, so that the flush at exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(value: Any) -> None:
    """Print a value as JSON on one line."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
