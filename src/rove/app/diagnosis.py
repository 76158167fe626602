"""Writes a report about this process on SIGUSR1: memory, open files, what tasks wait for, and all stacks.

The signal's handler only wakes a thread, which collects and writes the report. So the event loop is not held up, and a
report can be had from a loop that is busy for long. Nothing that goes wrong here reaches the crawl.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType

from rove.admin.diagnose import SIGNAL
from rove.datadir import report_of
from rove.notation.harmless import one_line
from rove.notation.humanize import counted, size_text, utc_text
from rove.notation.log_line import log_line
from rove.resources.open_descriptors import descriptors_by_kind
from rove.resources.process_state import memory_by_kind, resident_bytes
from rove.resources.stacks import tasks_by_wait, thread_stacks

MAX_BYTES = 1 << 20
CUT = b"(cut here: the report is as long as it may be)\n"
MAX_GROUPS = 100
"""Groups of tasks, and kinds of objects, that are listed."""
MAX_KINDS = 25

Accounts = Callable[[], Mapping[str, str]]
"""What a process holds, by rove's own accounts: names and texts. Called from another thread, so it only reads."""

log = logging.getLogger(__name__)


class Diagnosis:
    """The reports of this process."""

    def __init__(self, name: str, log_file: Path) -> None:
        """`name` is that of the process; the report is written beside its log file."""
        self._name = name
        self._file = report_of(log_file)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._accounts: Accounts = dict
        self._wake_end = -1

    def attach(self, accounts: Accounts) -> None:
        """Report from now on about the running event loop, and what `accounts` returns."""
        self._loop, self._accounts = asyncio.get_running_loop(), accounts

    def install(self) -> None:
        """Wait for the signal from now on; to be called by the main thread, once."""
        try:
            read_end, self._wake_end = os.pipe()
            os.set_blocking(self._wake_end, False)
            threading.Thread(target=self._serve, args=(read_end,), name="diagnosis", daemon=True).start()
            signal.signal(SIGNAL, self._on_signal)
        except (OSError, RuntimeError) as error:
            log.warning("no report can be asked for with %s: %s", SIGNAL.name, error)

    def write(self) -> None:
        """Write a report now; the one before is kept beside it."""
        began = time.perf_counter()
        partial = self._file.with_suffix(".partial")
        try:
            size = _write_lines(partial, self._lines())
            with suppress(FileNotFoundError):
                self._file.replace(self._file.with_suffix(".1.txt"))
            partial.replace(self._file)
        except OSError as error:
            log.warning("%s cannot be written: %s", self._file, error.strerror)
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            return
        log.info("%s", log_line("diagnosis", file=self._file, bytes=size, seconds=time.perf_counter() - began))

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        with suppress(OSError):  # the pipe is full of signals
            os.write(self._wake_end, b"!")

    def _serve(self, read_end: int) -> None:
        while os.read(read_end, 4096):
            try:
                self.write()
            except Exception:
                log.exception("no report could be written; this is a bug")

    def _lines(self) -> Iterator[str]:
        yield f"process {os.getpid()} ({self._name}) at {utc_text(time.time(), milliseconds=True)}"
        yield self._summary()
        yield from _section("memory", self._memory)
        yield from _section("by rove's own accounts", self._by_accounts)
        yield from _section("open files", _open_files)
        yield from _section("tasks by what they wait for", self._tasks)
        yield from _section("threads", _threads)
        yield from _section("the commonest kinds of Python objects", _objects)

    def _summary(self) -> str:
        tasks = 0 if self._loop is None else len(asyncio.all_tasks(self._loop))
        parts = (
            f"{size_text(resident_bytes() or 0)} resident",
            counted(descriptors_by_kind().total(), "open file"),
            counted(threading.active_count(), "thread"),
            counted(tasks, "task"),
        )
        return ", ".join(parts)

    def _memory(self) -> Iterator[str]:
        for name, size in memory_by_kind().items():
            yield f"{size_text(size):>12}  {name}"

    def _by_accounts(self) -> Iterator[str]:
        accounts = self._accounts()
        width = max(map(len, accounts), default=0)
        for name, text in accounts.items():
            yield f"{name:<{width}}  {text}"

    def _tasks(self) -> Iterator[str]:
        if self._loop is None:
            yield "the crawl has not begun"
            return
        groups = tasks_by_wait(self._loop)
        yield f"{counted(groups.total(), 'task')} in {counted(len(groups), 'group')}"
        for chain, count in groups.most_common(MAX_GROUPS):
            yield f"{count:>6,}  {' > '.join(chain)}"


def _section(title: str, lines: Callable[[], Iterable[str]]) -> Iterator[str]:
    """Return a section with its title; a section that fails does not take the others with it."""
    yield ""
    yield f"{title}:"
    try:
        for line in lines():
            yield f"  {line}"
    except Exception as error:
        log.exception("a part of a report could not be told; this is a bug")
        yield f"  could not be told: {type(error).__name__}: {error}"


def _open_files() -> Iterator[str]:
    for kind, count in descriptors_by_kind().most_common(MAX_GROUPS):
        yield f"{count:>6,}  {kind}"


def _threads() -> Iterator[str]:
    for name, calls in thread_stacks():
        yield f"{name}:"
        for call in calls:
            yield f"  {call}"


def _objects() -> Iterator[str]:
    objects = gc.get_objects()
    kinds = Counter(map(type, objects))
    yield f"{counted(len(objects), 'object')} that the garbage collector knows"
    del objects
    for kind, count in kinds.most_common(MAX_KINDS):
        yield f"{count:>9,}  {kind.__module__}.{kind.__qualname__}"


def _write_lines(file: Path, lines: Iterable[str]) -> int:
    """Write lines until the report is as long as it may be; return its size."""
    size = 0
    with file.open("wb") as output:
        for line in lines:
            text = one_line(line).encode(errors="backslashreplace") + b"\n"
            if size + len(text) + len(CUT) > MAX_BYTES:
                return size + output.write(CUT)
            size += output.write(text)
    return size
