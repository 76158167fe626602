"""Slows a crawling process down when memory, disk space or open files run short.

The memory limit applies to the resident set (RSS). Bodies and pages may use the part that everything else leaves. This
part is measured once a second, because caches grow and the allocator holds on to freed memory; resources/memory.py
divides it among the visits. The crawl pauses while there is too little free disk space. When no more files can be
opened, fewer visits run at once for a while. crawl/steering.py decides how many.
"""

from __future__ import annotations

import ctypes
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rove.config import DEFAULT_MAX_PAGE_SIZE, Settings
from rove.crawl.steering import Steering
from rove.model.outcomes import Failed
from rove.model.reasons import PauseCause
from rove.notation.humanize import counted, size_text
from rove.notation.log_line import log_line
from rove.policy.concurrency import Bounds, HeldBy
from rove.resources.memory import SMALL, Memory
from rove.resources.process_state import available_bytes, resident_bytes

BODIES_SET_ASIDE = 20
"""Memory set aside for decoding and parsing one page, in bodies of the largest size, allocator overhead included. With
8, a process reached 544 MiB under a limit of 512 MiB."""
MARGIN_DIVISOR = 32
"""One part in 32 of the memory limit stays unused."""
SLOT_BYTES = 48 * 1024 + SMALL
"""Memory of a fetch with a small body: a libcurl handle, its buffers and its task."""
BASE_BYTES = 64 * 1024 * 1024
"""Memory of a process before it fetches anything."""
LEAST_ROOM = 4
"""Bodies of the largest size for which there is always room."""
TRIM_ABOVE = 0.7
"""Above this part of the memory limit, the allocator is told to return freed memory to the system."""

log = logging.getLogger(__name__)


def free_bytes(directory: Path) -> int | None:
    """Return the free bytes on the disk of a directory, None if the system does not say."""
    try:
        status = os.statvfs(directory)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize


class Pressure:
    """The resource limits of one process, and how close it is to them."""

    def __init__(
        self,
        settings: Settings,
        *,
        bounds: Bounds,
        directory: Path,
        clock: Callable[[], float],
        on_news: Callable[[str], None],
        processes: int = 1,
        lag_seconds: Callable[[], float] = lambda: 0.0,
        longest_lag: Callable[[], float] = lambda: 0.0,
        measure_disk: Callable[[Path], int | None] = free_bytes,
        measure_memory: Callable[[], int | None] = resident_bytes,
        measure_machine: Callable[[], int | None] = available_bytes,
    ) -> None:
        """`bounds` limit the visits in flight of this process; `directory` is on the disk whose free space is watched.

        `processes` share the machine's memory. `lag_seconds` returns the lag of the event loop so far,
        `longest_lag` its longest stop.
        """
        self.longest_lag = longest_lag
        self._max_memory = settings.max_memory
        self._set_aside = _set_aside(settings.max_memory, settings.max_page_size)
        self._least_room = _least_room(settings.max_page_size)
        self._disk = DiskWatch(settings.min_free_disk)
        self._directory = directory
        self._on_news = on_news
        self._processes = processes
        self._measure_disk = measure_disk
        self._measure_memory = measure_memory
        self._measure_machine = measure_machine
        self.steering = Steering(bounds, clock=clock, lag_seconds=lag_seconds)
        self.throttle = self.steering.throttle
        self.resident = 0
        """Resident memory at the last check, in bytes."""
        self._base = measure_memory() or BASE_BYTES
        """Resident memory before anything is fetched."""
        self.memory = Memory(0, on_short=self._slow_down, on_eased=self.throttle.open)
        self._shortage = ""
        """The last failure for lack of open files."""
        self._free = 0
        """Bytes that are left for bodies, pages and further visits; negative if there are too many."""
        self._update_memory()

    @property
    def is_paused(self) -> bool:
        """Whether no new visit may start, because the disk is nearly full."""
        return self._disk.is_short

    def troubles(self) -> dict[str, str]:
        """Return why the crawl is slowed down or paused: for each cause a sentence, '' where there is no trouble."""
        waiting = counted(self.memory.waiting, "fetch", "fetches")
        at_once = counted(self.throttle.limit, "fetch", "fetches")
        is_slowed = self.steering.is_cut and not self.memory.is_short
        return {
            PauseCause.DISK: f"paused: {self._disk_text()}" if self._disk.is_short else "",
            PauseCause.MEMORY: f"slowed: {waiting} waiting for memory" if self.memory.is_short else "",
            PauseCause.FETCHES: f"slowed: {at_once} at once" if is_slowed else "",
        }

    def check(self, *, are_waiting: bool = False) -> None:
        """Measure memory and disk space, and adapt the number of visits in flight; called about once a second.

        `are_waiting`: domains that are ready wait for a slot.
        """
        self._update_memory()
        self._steer(are_waiting=are_waiting)
        free = self._measure_disk(self._directory)
        if free is not None and self._disk.update(free):
            if self._disk.is_short:
                self._on_news(f"{self._disk_text()}: the crawl pauses until there is room")
            else:
                self._on_news(f"there is room again on {self._directory}: the crawl goes on")

    def note_failure(self, failure: Failed) -> None:
        """Note that a request failed, perhaps for lack of open files."""
        if failure.shortage:
            self._shortage = failure.detail
            self.steering.note_file_shortage()

    def _steer(self, *, are_waiting: bool) -> None:
        available = self._measure_machine()
        free = self._free if available is None else min(self._free, available // self._processes)
        before = self.throttle.limit
        state = self.steering.update(are_waiting=are_waiting, free_memory=free)
        if state.limit < before and state.held_by is HeldBy.FILES:
            fetches = counted(state.limit, "fetch", "fetches")
            self._on_news(f"open files ran out: {fetches} at once from now on ({self._shortage})")

    def _disk_text(self) -> str:
        return f"less than {size_text(self._disk.min_free)} is free on {self._directory}"

    def _slow_down(self) -> None:
        """Start no new visit. If bodies wait for memory, too many visits were in flight."""
        if self.memory.waiting:
            self.steering.note_memory_shortage()
        self.throttle.shut()

    def _update_memory(self) -> None:
        """Give bodies and pages the memory that everything else leaves."""
        resident, held = self._measure_memory(), self.memory.held
        is_close = resident is not None and resident > TRIM_ABOVE * self._max_memory
        if is_close or self.memory.is_short:
            # Freed memory that the allocator holds on to counts as resident.
            _trim_allocator()
            resident = self._measure_memory()
        overhead = max(self._base + self.throttle.limit * SLOT_BYTES, (resident or 0) - held)
        room = self._max_memory - self._set_aside - overhead
        self._free = room - self.memory.used
        self.memory.room = max(self._least_room, room)
        self.resident = resident or 0
        if log.isEnabledFor(logging.DEBUG):
            log.debug(
                "%s",
                log_line(
                    "memory",
                    resident=self.resident,
                    held=held,
                    used=self.memory.used,
                    room=self.memory.room,
                    waiting=self.memory.waiting,
                    at_once=self.throttle.allowed,
                ),
            )


class DiskWatch:
    """Tells whether a disk is nearly full. Once it is, it needs some extra room to count as free again."""

    def __init__(self, min_free: int) -> None:
        """`min_free`: bytes that must be free; 0 for no limit."""
        self.min_free = min_free
        self.is_short = False

    def update(self, free: int) -> bool:
        """Update `is_short` from the number of free bytes; return whether it changed."""
        enough = self.min_free
        if self.is_short:
            enough += min(self.min_free // 20 + (64 << 20), self.min_free // 2)
        before, self.is_short = self.is_short, free < enough
        return before is not self.is_short


def fetches_within(max_memory: int, max_body: int) -> int:
    """Return how many fetches at once a process has memory for."""
    left = max_memory - _set_aside(max_memory, max_body) - BASE_BYTES
    return max(1, (left - _least_room(max_body)) // SLOT_BYTES)


def _set_aside(max_memory: int, max_body: int) -> int:
    return BODIES_SET_ASIDE * max_body + max_memory // MARGIN_DIVISOR


def _least_room(max_body: int) -> int:
    return LEAST_ROOM * max(max_body, DEFAULT_MAX_PAGE_SIZE)


def _trim_allocator() -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
