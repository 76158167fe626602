"""`rove` and `python -m rove`: run a command, print its error as one sentence and set the exit code.

An error may quote text from the web, so it is made harmless like everything that a command prints (cli/output.py).
"""

from __future__ import annotations

import io
import logging
import os
import sys
import traceback
from contextlib import suppress

import click

from rove.errors import RoveError
from rove.notation.harmless import one_line, some_lines

log = logging.getLogger("rove")
log.addHandler(logging.NullHandler())
log.propagate = False
logging.raiseExceptions = False  # do not print a traceback when the log file is on a full disk


def main() -> None:
    """Run the command line."""
    open_standard_streams()
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # before the command has installed its own handler
        code = 130
    sys.exit(code)


def open_standard_streams() -> None:
    """Open closed standard streams on /dev/null, so that no database or WARC file gets their descriptor."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a title may hold letters that the locale does not have


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    from rove.cli import rove  # slow to import; inside main's `try` because the user may press Ctrl-C

    try:
        code = rove.main(arguments, prog_name="rove", standalone_mode=False)
        sys.stdout.flush()
    except RoveError as error:
        if error.exit_code == 1:
            log.error("%s", error, exc_info=error)
        return _fail(str(error), error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        _print_error(some_lines(error.format_message()))
        return 2
    except click.exceptions.Abort:
        return 130
    except click.ClickException as error:
        hint = f" (see rove {_command(error)}--help)" if isinstance(error, click.UsageError) else ""
        return _fail(_message(error) + hint, 2)
    except Exception as error:
        log.exception("unexpected error; this is a bug")
        has_log_file = any(isinstance(handler, logging.FileHandler) for handler in log.handlers)
        if not has_log_file:
            _print_error(some_lines("".join(traceback.format_exception(error)).rstrip()))
        where = "see rove.log" if has_log_file else "see the traceback above"
        return _fail(f"unexpected {type(error).__name__}: {error} ({where})", 1)
    return code if isinstance(code, int) else 0


def _fail(sentence: str, code: int) -> int:
    _print_error(f"rove: {one_line(sentence)}")
    return code


def _print_error(text: str) -> None:
    with suppress(OSError, ValueError):  # the terminal may be closed
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def _message(error: click.ClickException) -> str:
    if not isinstance(error, click.NoSuchOption):
        return error.format_message().rstrip(".")
    meant = " or ".join(map(repr, sorted(error.possibilities or ())))
    return f"there is no option {error.option_name!r}" + (f"; did you mean {meant}?" if meant else "")


def _command(error: click.UsageError) -> str:
    name = error.ctx.info_name if error.ctx is not None and error.ctx.parent is not None else None
    return f"{name} " if name else ""


if __name__ == "__main__":
    main()
