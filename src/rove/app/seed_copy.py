"""Copies the seeds that the user gives into the data directory, and refuses what holds no seeds."""

from __future__ import annotations

import filecmp
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from rove.app.seed_files import plain_lines
from rove.app.seeds import Survey, survey
from rove.datadir import DataDir
from rove.errors import Interrupted, UsageError
from rove.frontier.seed_source import SeedSource
from rove.urls.seed import is_seed

_SUFFIXES_OF_FILES = frozenset({".txt", ".csv", ".tsv", ".gz", ".zip", ".lst", ".list"})

STANDARD_INPUT = "-"
STANDARD_ERROR = 2
"""The descriptor to which messages go."""


@dataclass(frozen=True, slots=True)
class SeedInput:
    """The seeds that the user gives."""

    given: str
    """A file, or '-' for standard input."""
    yes: bool = False
    """Take them even if most lines are bad."""

    @property
    def name(self) -> str:
        """What messages call it."""
        return "standard input" if self.given == STANDARD_INPUT else self.given

    def check(self, from_pipe: str) -> None:
        """Refuse a file that does not exist; `from_pipe` is the command that reads standard input."""
        path = Path(self.given)
        if self.given == STANDARD_INPUT or path.is_file():
            return
        if path.is_dir():
            raise UsageError(f"the seed file {self.given} is a directory; give a file with a domain or URL per line")
        if path.exists():
            raise UsageError(
                f"the seed file {self.given} is not a regular file; to read seeds from a pipe, use '{from_pipe}'"
            )
        raise UsageError(f"there is no seed file {self.given}{_hint(self.given, from_pipe)}")

    def opened(self) -> AbstractContextManager[BinaryIO]:
        """Open it for reading."""
        if self.given == STANDARD_INPUT:
            return nullcontext(sys.stdin.buffer)
        try:
            return Path(self.given).open("rb")
        except OSError as error:
            raise UsageError(f"the seed file {self.given} cannot be read: {error.strerror}") from error


def _hint(given: str, from_pipe: str) -> str:
    """Return advice for somebody who gave a domain or a URL instead of a file; '' for the name of a file."""
    if Path(given).suffix.lower() in _SUFFIXES_OF_FILES or not is_seed(given):
        return ""
    return f"; to give a domain or URL without a file, use: echo {shlex.quote(given)} | {from_pipe}"


def copied_seeds(data: DataDir, seeds: SeedInput, file: BinaryIO, *, say: Callable[[str], None]) -> SeedSource:
    """Copy seeds into the data directory as plain lines; return the source to be loaded.

    If most of the first lines are bad, a user at a terminal has to confirm that with --yes. Without a terminal, the
    seeds are taken, because nobody could answer, and `say` tells about it.
    """
    with _interruptible():
        path = data.save_seeds(plain_lines(file, seeds.name))
    try:
        _check(survey(path), seeds, is_at_terminal=os.isatty(STANDARD_ERROR), say=say)
    except BaseException:
        path.unlink()
        raise
    return SeedSource(id=0, path=str(path.relative_to(data.root)), name=seeds.name)


def without_repeated_copy(data: DataDir, source: SeedSource, earlier: Sequence[SeedSource]) -> SeedSource | None:
    """Use the copy of an earlier source of this machine if it has the same lines; None: it is still being loaded.

    So a command that is repeated at every start of the machine does not fill the disk.
    """
    path = data.root / source.path
    for known in reversed(earlier):
        copy = data.root / known.path
        if known.is_here and copy.is_file() and filecmp.cmp(copy, path, shallow=False):
            path.unlink()
            return replace(source, path=known.path) if known.finished else None
    return source


def _check(found: Survey, seeds: SeedInput, *, is_at_terminal: bool, say: Callable[[str], None]) -> None:
    is_refused = not found.good or (found.is_mostly_bad and is_at_terminal and not seeds.yes)
    if is_refused:
        for problem in found.problems:
            say(f"{seeds.name}, {problem}")
    if not found.good:
        raise UsageError(f"{seeds.name} holds no domain or URL to start from")
    share = f"{found.bad:,} of {found.good + found.bad:,} lines of {seeds.name} are bad"
    if is_refused:
        raise UsageError(f"{share}; add --yes to go on with the others")
    if found.is_mostly_bad and not seeds.yes:
        say(f"{share}; going on with the others")


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let signals interrupt a blocking read: the event loop, which usually handles them, is blocked too."""
    numbers: Sequence[int] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    if threading.current_thread() is not threading.main_thread():
        numbers = ()
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, _interrupt)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, _: object) -> None:
    raise Interrupted(number)
