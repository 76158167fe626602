"""Decides how many processes crawl on this machine and how many fetches each has in flight."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable

from rove.config import Settings
from rove.crawl.pressure import fetches_within
from rove.humanize import counted, size_text

SQLITE_PROCESSES = 3
"""More processes would mostly wait for each other, because they share one SQLite writer (docs/performance.md)."""
SPARE_FILES = 64
"""Open files of a process besides its fetches: the database, WARC files, the log, the resolver."""
FILES_PER_FETCH = 2
"""libcurl keeps a TLS connection open for up to a second after its end."""


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def process_count(wanted: int | None, *, cores: int, concurrency: int, is_sqlite: bool) -> int:
    """Return the number of processes: as wanted, else one per core; never more than there are fetches."""
    default = min(cores, SQLITE_PROCESSES) if is_sqlite else cores
    return min(wanted or default, concurrency)


def fetches_per_process(
    settings: Settings, processes: int, *, open_files: int | None, say: Callable[[str], None]
) -> list[int]:
    """Share --concurrency among the processes; if files or memory do not suffice, lower it and say so.

    `open_files` is the limit of each process, or None if there is none.
    """
    fetches = settings.concurrency
    if open_files is not None and fetches > processes * fetches_with(open_files):
        fetches = processes * fetches_with(open_files)
        say(
            f"a process may open only {counted(open_files, 'file')} here; "
            f"--concurrency is lowered from {settings.concurrency:,} to {fetches:,}"
        )
    most = processes * fetches_within(settings.max_memory, settings.max_page_size)
    if fetches > most:
        say(
            f"--max-memory {size_text(settings.max_memory)} is too little for "
            f"{counted(fetches, 'fetch', 'fetches')} at once; --concurrency is lowered to {most:,}"
        )
        fetches = most
    return [fetches // processes + (n < fetches % processes) for n in range(processes)]


def raise_open_files() -> int | None:
    """Raise the limit of open files, which workers inherit, as far as possible; return it, None if there is none."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return None if hard == resource.RLIM_INFINITY else hard


def fetches_with(open_files: int) -> int:
    """Return how many fetches a process can have in flight within a limit of open files."""
    return max(1, (open_files - SPARE_FILES) // FILES_PER_FETCH)
