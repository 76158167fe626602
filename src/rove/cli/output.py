"""Everything that a command prints goes through here, so that text from the web never reaches a terminal raw.

No other module prints: ruff forbids `print`, `click.echo`, the standard streams and consoles elsewhere.
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
import sys
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from functools import wraps
from typing import IO, Any, ParamSpec, TextIO, TypeVar, cast

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from rove.cli.terminal import SafeOutput
from rove.errors import FULL_DISK_ERRNOS, RoveError
from rove.notation.harmless import one_line, some_lines, whole_text, without_surrogates
from rove.notation.json_text import json_text

P = ParamSpec("P")
T = TypeVar("T")
_PROGRESS_SECONDS = 0.1
_UNWRITABLE = FULL_DISK_ERRNOS | {errno.EIO}


def print_line(line: str = "") -> None:
    """Print one line; a line feed inside it is escaped like every other control character."""
    sys.stdout.write(one_line(line) + "\n")


def print_lines(lines: Iterable[str]) -> None:
    """Print several lines."""
    for line in lines:
        print_line(line)


def print_note(line: str) -> None:
    """Print a line for the person at the terminal, on standard error, so that it is not part of the result."""
    sys.stdout.flush()
    with suppress(OSError, ValueError):  # the terminal may be closed
        sys.stderr.write(one_line(line) + "\n")
        sys.stderr.flush()


def print_drawing(lines: Iterable[Iterable[tuple[str, str]]]) -> None:
    """Print lines of texts, each with a style that only a terminal shows, such as 'bold' or 'red'."""
    if not sys.stdout.isatty():
        print_lines("".join(text for text, _ in parts).rstrip() for parts in lines)
        return
    console = _HarmlessConsole(file=sys.stdout, highlight=False, markup=False, emoji=False)
    for parts in lines:
        console.print(Text.assemble(*((one_line(text), style) for text, style in parts)), soft_wrap=True)


def can_print(text: str) -> bool:
    """Whether standard output has the characters of a text."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def print_text(text: str) -> None:
    """Print the text of a page: exactly to a file or pipe, harmless to a terminal."""
    if sys.stdout.isatty():
        sys.stdout.write(some_lines(text) + "\n")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(without_surrogates(text).encode() + b"\n")


def print_bytes(body: bytes) -> None:
    """Print the bytes that a server sent: exactly to a file or pipe, harmless to a terminal."""
    sys.stdout.flush()
    if sys.stdout.isatty():
        sys.stdout.write(whole_text(body))
    else:
        sys.stdout.buffer.write(body)


def print_json(value: Any) -> None:
    """Print a value as JSON on one line, in UTF-8 whatever the locale. Nothing else goes to standard output then."""
    write_json(value, standard_output())


def write_json(value: Any, file: IO[bytes]) -> None:
    """Write a value as JSON on one line. Characters that a terminal would obey are written as escapes."""
    file.write(json_text(value) + b"\n")


def standard_output() -> IO[bytes]:
    """Return the stream for `write_json`."""
    return sys.stdout.buffer


def flush() -> None:
    """Show everything that was printed."""
    sys.stdout.flush()


def is_output_closed() -> bool:
    """Whether nobody reads standard output any more."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return bool(poll.poll(0))


def crawl_console(*, quiet: bool = False) -> Console:
    """Return the console of a crawl, on standard error: it survives a closed terminal. `quiet`: it prints nothing."""
    stream = cast(TextIO, SafeOutput(sys.stderr))
    return _HarmlessConsole(file=stream, highlight=False, soft_wrap=True, markup=False, emoji=False, quiet=quiet)


def watching_console() -> Console:
    """Return the console of a command that shows a running crawl, on standard output."""
    return _HarmlessConsole(file=sys.stdout, highlight=False, soft_wrap=True, markup=False, emoji=False)


@contextmanager
def progress(what: str, total: int | None, *, is_shown: bool = True) -> Iterator[Callable[[int], None]]:
    """Show a bar with the time left during this block, if standard error is a terminal.

    The block calls what it gets with the size of each step. Without a total, the bar shows only the steps so far.
    """
    console = crawl_console(quiet=not is_shown)
    if not (is_shown and console.is_terminal):
        yield lambda step: None
        return
    from rich.progress import Progress  # slow to import

    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(one_line(what), total=total)
        shown_at, waiting = 0.0, 0

        def advance(step: int) -> None:
            nonlocal shown_at, waiting
            waiting += step
            if (now := time.monotonic()) - shown_at > _PROGRESS_SECONDS:
                bar.advance(task, waiting)
                shown_at, waiting = now, 0

        yield advance


def print_sentence(console: Console, sentence: str) -> None:
    """Print a sentence. On a terminal, lines end between words, unless there is a command to copy."""
    has_command = "rove " in sentence
    console.print(one_line(sentence), soft_wrap=has_command or not console.is_terminal)


class _HarmlessConsole(Console):
    """A console that escapes the text of everything it draws. Its own colours and cursor movements are not text."""

    def on_broken_pipe(self) -> None:
        """Raise the error that is being handled: rich would end the process with an exit code of its own."""
        raise

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(some_lines(segment.text), segment.style)


def reading(command: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Make a command of a coroutine function that prints, and handle an output that can no longer be written."""

    @wraps(command)
    def run(*args: P.args, **options: P.kwargs) -> T:
        with printing():
            return asyncio.run(command(*args, **options))

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
            raise RoveError(f"the output cannot be written: {_reason(output.error)}; everything else is done")
        return result

    return run


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


@contextmanager
def printing() -> Iterator[None]:
    """Handle an output that can no longer be written during this block."""
    try:
        yield
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


def _discard_output() -> None:
    """Redirect standard output, so that the flush at exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
