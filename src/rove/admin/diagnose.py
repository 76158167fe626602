"""`rove diagnose`: ask the processes of a running crawl on this machine for a report about themselves."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rove.admin.exclude import current_user
from rove.datadir import DataDir
from rove.errors import RoveError
from rove.resources.holders import handles, holders

SIGNAL = signal.SIGUSR1
"""Asks a process of a crawl for a report (app/diagnosis.py)."""
POLL_SECONDS = 0.05
_HEAD_BYTES = 1_000

_Stamps = Mapping[Path, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report of one process."""

    file: Path
    process: str
    """Which process it is about, and when."""
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """The reports that were asked for."""

    written: Sequence[Report]
    late: Sequence[int]
    """The ids of the processes that have not written theirs in time."""


async def diagnose(data: DataDir, *, patience: float) -> Reports:
    """Ask all processes of the crawl in this directory for a report, and wait at most `patience` seconds."""
    if not data.in_use():
        raise RoveError(f"no crawl is running in {data.root}; there is nothing to report")
    before, waiting = _stamps(data), _asked(data)
    if not waiting:
        raise RoveError(
            f"the crawl in {data.root} has no process that {current_user()} can ask for a report; it may belong to "
            "another user, run in another container, or have just started"
        )
    deadline, written = time.monotonic() + patience, []
    while waiting and time.monotonic() < deadline:
        await asyncio.sleep(POLL_SECONDS)
        for file, stamp in _stamps(data).items():
            if stamp != before.get(file) and (report := _read(file)) is not None:
                pid = next((pid for pid in waiting if report.process.startswith(f"process {pid} ")), None)
                if pid is not None:
                    waiting.remove(pid)
                    written.append(report)
    return Reports(written=sorted(written, key=lambda report: report.file), late=sorted(waiting))


def _asked(data: DataDir) -> set[int]:
    """Ask the processes, and return their ids.

    A process without a handler would be ended by the signal, so only those that have one get it. What holds the lock
    files open belongs to the crawl, whichever process its id had belonged to before.
    """
    asked = set()
    for pid in holders(data.lock_files):
        if handles(pid, SIGNAL):
            try:
                os.kill(pid, SIGNAL)
            except OSError:
                continue  # it has ended, or is another user's
            asked.add(pid)
    return asked


def _stamps(data: DataDir) -> _Stamps:
    """Return for each report what changes when it is written again."""
    stamps = {}
    for file in data.reports:
        try:
            status = file.stat()
        except OSError:
            continue
        stamps[file] = (status.st_ino, status.st_mtime_ns)
    return stamps


def _read(file: Path) -> Report | None:
    """Return the head of a report; None if it has just been replaced or is another file."""
    try:
        with file.open(errors="replace") as text:
            head = text.read(_HEAD_BYTES).splitlines()
    except OSError as error:
        raise RoveError(f"{file} cannot be read: {error.strerror}") from error
    return Report(file=file, process=head[0], summary=head[1]) if len(head) > 1 else None
