"""Tunes the interpreter and the allocator of a crawling process."""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import suppress

MMAP_BYTES = 1024 * 1024
"""The allocator maps blocks of this size separately, so that their memory goes back as soon as they are freed."""
FREE_BYTES = 16 * 1024 * 1024
"""Free bytes at the end of the heap that the allocator keeps, because the next page needs them."""
ARENAS = 2
SWITCH_SECONDS = 0.001
"""How long the event loop may hold the interpreter while the threads of the frontier and the store wait for it. They
need it often, and for microseconds."""
GARBAGE_THRESHOLDS = (20_000, 20, 50)
"""A page creates hundreds of tuples and no cycles. With Python's default of 700, looking for cycles takes 5 % of the
time to read a page."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def tune_process() -> None:
    """Tune a crawling process. Call this before it starts a thread."""
    _tune_allocator()
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.freeze()  # imported modules are never garbage
    gc.set_threshold(*GARBAGE_THRESHOLDS)


def _tune_allocator() -> None:
    """Return large blocks to the system at once, and do not keep a heap for every thread."""
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, MMAP_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, FREE_BYTES)
        libc.mallopt(_M_ARENA_MAX, ARENAS)
