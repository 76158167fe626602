"""What the machine leaves to a crawling process: memory, room on the disk, open files. At these limits it slows down.

Memory has a ceiling that is about what the operating system counts (RSS). What bodies and pages may take of it is what
everything else leaves, which is measured again and again, since caches grow and the allocator keeps what it was given
back; see memory.py for who may have it. The disk is looked at once a second, and the crawl pauses while there is too
little room. Whoever finds that no file can be opened says so, and fewer fetches are made at once for a while.
"""

from __future__ import annotations

import ctypes
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rove.config import DEFAULT_MAX_PAGE_SIZE, Settings
from rove.crawl.throttle import Throttle
from rove.humanize import size_text
from rove.model.outcomes import Failed
from rove.resources.memory import SMALL, Memory

READING = 20
"""What decoding a page and handing it on to be read takes for a moment, in bodies of the largest size, with what the
allocator makes of it: with 8, 544 MiB were seen under a ceiling of 512."""
MARGIN = 32
"""One such part of the ceiling is left alone."""
SLOT_BYTES = 48 * 1024 + SMALL
"""What a fetch takes besides a body that is not small: a handle of libcurl, its buffers, its task."""
BASE_BYTES = 64 * 1024 * 1024
"""What a process takes before it fetches anything."""
LEAST_ROOM = 4
"""Bodies of the largest size for which there is always room."""
SHORT_OF_MEMORY = 4
"""Want of memory lowers the fetches at once to this part of them."""
MEMORY_SECONDS = 2.0
SHORT_OF_FILES = 0.75
"""What is left of the fetches at once when no file can be opened."""
FILES_SECONDS = 2.0
FILES_REST = 60.0
"""Seconds before more are tried again after that."""
TRIMMED_FROM = 0.7
"""The part of the ceiling from which the allocator is asked to give back what it keeps."""

log = logging.getLogger(__name__)


class Pressure:
    """The limits of one process."""

    def __init__(
        self,
        settings: Settings,
        *,
        concurrency: int,
        directory: Path,
        clock: Callable[[], float],
        on_news: Callable[[str], None],
    ) -> None:
        """`directory` is on the disk that is written to; `on_news` tells a person."""
        self._ceiling = settings.max_memory
        self._set_aside = _set_aside(settings.max_memory, settings.max_page_size)
        self._least_room = _least_room(settings.max_page_size)
        self._disk = DiskWatch(settings.min_free_disk)
        self._directory = directory
        self._on_news = on_news
        self._concurrency = concurrency
        self.throttle = Throttle(concurrency, clock=clock)
        self._least_overhead = (resident_bytes() or BASE_BYTES) + concurrency * SLOT_BYTES
        self.memory = Memory(0, on_short=self._short, on_eased=self.throttle.open)
        self._measure()

    @property
    def is_paused(self) -> bool:
        """Whether nothing new is to be begun: there is too little room on the disk."""
        return self._disk.is_short

    @property
    def trouble(self) -> str:
        """What the crawl is slowed down by, for whoever watches; '' if by nothing."""
        if self._disk.is_short:
            return f"paused: {self._disk_text()}"
        if self.memory.is_short:
            return f"slowed: {self.memory.waiting} fetches wait for memory"
        if self.throttle.allowed < self._concurrency:
            return f"slowed: {self.throttle.allowed} fetches at once"
        return ""

    def look(self) -> None:
        """See how things stand; called about once a second."""
        self._measure()
        free = free_bytes(self._directory)
        if free is not None and self._disk.look(free):
            if self._disk.is_short:
                self._on_news(f"{self._disk_text()}: the crawl pauses until there is room")
            else:
                self._on_news(f"there is room again on {self._directory}: the crawl goes on")

    def note_failure(self, failure: Failed) -> None:
        """Take note of a request that could not be made."""
        if not failure.shortage:
            return
        throttle = self.throttle
        lowered = throttle.lower(
            SHORT_OF_FILES * throttle.allowed, rest=FILES_REST, again=FILES_SECONDS
        )
        if lowered:
            self._on_news(
                f"open files ran out: {throttle.allowed:,} fetches at once from now on "
                f"({failure.detail})"
            )

    def _disk_text(self) -> str:
        return f"less than {size_text(self._disk.least)} is free on {self._directory}"

    def _short(self) -> None:
        """Nothing new is begun; and if bodies wait, there were too many of them at once."""
        if self.memory.waiting:
            self.throttle.lower(self.throttle.allowed / SHORT_OF_MEMORY, again=MEMORY_SECONDS)
        self.throttle.shut()

    def _measure(self) -> None:
        """What bodies and pages may have is what everything else leaves."""
        resident, held = resident_bytes(), self.memory.held
        is_close = resident is not None and resident > TRIMMED_FROM * self._ceiling
        if is_close or self.memory.is_short:
            # What the allocator keeps is neither in use nor to be had by others.
            _give_back()
            resident = resident_bytes()
        overhead = max(self._least_overhead, (resident or 0) - held)
        room = self._ceiling - self._set_aside - overhead
        self.memory.room = max(self._least_room, room)
        log.debug(
            "%s resident, %s held, %s of %s used, %d waiting, %d at once",
            size_text(resident or 0),
            size_text(held),
            size_text(self.memory.used),
            size_text(self.memory.room),
            self.memory.waiting,
            self.throttle.allowed,
        )


class DiskWatch:
    """Whether there is too little room on a disk; once it is so, some more must be free before it is not."""

    def __init__(self, least: int) -> None:
        """`least` is bytes; with 0 there is never too little."""
        self.least = least
        self.is_short = False

    def look(self, free: int) -> bool:
        """Whether it has changed, now that so many bytes are free."""
        enough = self.least
        if self.is_short:
            enough += min(self.least // 20 + (64 << 20), self.least // 2)
        before, self.is_short = self.is_short, free < enough
        return before is not self.is_short


def fetches_within(max_memory: int, max_body: int) -> int:
    """How many fetches at once a process has memory for."""
    left = max_memory - _set_aside(max_memory, max_body) - BASE_BYTES
    return max(1, (left - _least_room(max_body)) // SLOT_BYTES)


def _set_aside(max_memory: int, max_body: int) -> int:
    return READING * max_body + max_memory // MARGIN


def _least_room(max_body: int) -> int:
    return LEAST_ROOM * max(max_body, DEFAULT_MAX_PAGE_SIZE)


def free_bytes(directory: Path) -> int | None:
    """What may still be written to the disk of a directory; None if that cannot be said."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def resident_bytes() -> int | None:
    """What this process has in memory; None where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def _give_back() -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
