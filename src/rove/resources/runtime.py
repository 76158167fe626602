"""How the interpreter and the allocator are set in a crawling process."""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import suppress

LARGE_BLOCK = 1024 * 1024
"""Blocks from this size on are pages of their own, which go back as soon as they are free."""
KEPT_FREE = 16 * 1024 * 1024
"""Free bytes at the end of a heap that the allocator keeps: the next page is read into them."""
ARENAS = 2
SWITCH_SECONDS = 0.001
"""How long the event loop may keep the interpreter while the threads of the frontier and the store wait for it: they
want it often, and for microseconds."""
GARBAGE_THRESHOLDS = (20_000, 20, 50)
"""A page makes hundreds of tuples and no cycles: looking for some after every 700, as Python does of its own, takes a
twentieth of the time in which it is read."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def tune_process() -> None:
    """Set up a crawling process; to be called before it has any thread."""
    _keep_memory_tidy()
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.freeze()  # what was imported is never garbage
    gc.set_threshold(*GARBAGE_THRESHOLDS)


def _keep_memory_tidy() -> None:
    """Have the allocator give large blocks back at once, and not keep a heap for every thread."""
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, LARGE_BLOCK)
        libc.mallopt(_M_TRIM_THRESHOLD, KEPT_FREE)
        libc.mallopt(_M_ARENA_MAX, ARENAS)
