"""Decides how many processes crawl on this machine and how many fetches each has in flight."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from typing import Literal

from rove.config import AUTO, Settings
from rove.crawl.pressure import SLOT_BYTES, fetches_within
from rove.notation.humanize import counted, size_text
from rove.policy.concurrency import MOST, START, Bounds, HeldBy, fixed

SQLITE_PROCESSES = 3
"""More processes would mostly wait for each other, because they share one SQLite writer (docs/performance.md)."""
SPARE_FILES = 64
"""Open files of a process besides its fetches: the database, WARC files, the log, the resolver."""
FILES_PER_FETCH = 2
"""libcurl keeps a TLS connection open for up to a second after its end."""


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def process_count(wanted: int | None, *, cores: int, concurrency: int | Literal["auto"], is_sqlite: bool) -> int:
    """Return the number of processes: as wanted, else one per core; never more than there are fetches."""
    default = min(cores, SQLITE_PROCESSES) if is_sqlite else cores
    count = wanted or default
    return count if concurrency == AUTO else min(count, concurrency)


def bounds_per_process(
    settings: Settings, processes: int, *, open_files: int | None, say: Callable[[str], None]
) -> list[Bounds]:
    """Share --concurrency among the processes; if files or memory do not suffice, lower it and say so.

    `open_files` is the limit of each process, or None if there is none.
    """
    in_memory = fetches_within(settings.max_memory, settings.max_page_size)
    in_files = MOST if open_files is None else fetches_with(open_files)
    if settings.concurrency == AUTO:
        bounds = _automatic(processes, in_memory=in_memory, in_files=in_files)
        if in_files < START:  # otherwise the panel says so if it ever matters
            at_once = counted(in_files, "fetch", "fetches")
            say(
                f"a process may open only {counted(open_files or 0, 'file')} here (ulimit -Hn), "
                f"so each has at most {at_once} in flight"
            )
        return [bounds] * processes
    fetches = settings.concurrency
    if open_files is not None and fetches > processes * in_files:
        fetches = processes * in_files
        say(
            f"a process may open only {counted(open_files, 'file')} here; "
            f"--concurrency is lowered from {settings.concurrency:,} to {fetches:,}"
        )
    most = processes * in_memory
    if fetches > most:
        say(
            f"--max-memory {size_text(settings.max_memory)} is too little for "
            f"{counted(fetches, 'fetch', 'fetches')} at once; --concurrency is lowered to {most:,}"
        )
        fetches = most
    return [fixed(fetches // processes + (n < fetches % processes)) for n in range(processes)]


def _automatic(processes: int, *, in_memory: int, in_files: int) -> Bounds:
    """Return the bounds of each process, with what sets the maximum."""
    most, most_by = min((MOST, HeldBy.MOST), (in_memory, HeldBy.MEMORY), (in_files, HeldBy.FILES))
    start = max(1, START // processes)
    return Bounds(start=min(start, most), most=most, most_by=most_by, bytes_each=SLOT_BYTES)


def raise_open_files() -> int | None:
    """Raise the limit of open files, which workers inherit, as far as possible; return it, None if there is none."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return None if hard == resource.RLIM_INFINITY else hard


def fetches_with(open_files: int) -> int:
    """Return how many fetches a process can have in flight within a limit of open files."""
    return max(1, (open_files - SPARE_FILES) // FILES_PER_FETCH)
