"""Says where the threads and the coroutines of this process are. Only code is named, never a value.

All of it may be called from another thread than the one that runs the event loop.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

MAX_TASKS = 20_000
MAX_DEPTH = 40
"""Frames of a stack, and coroutines that await each other, beyond which nothing is told."""
TASKS_PER_TURN = 200
"""After this many tasks, the thread that runs the event loop gets a turn."""

Chain = tuple[str, ...]
"""Coroutines that await each other, the task's own first, and what the last of them waits for."""


def thread_stacks() -> Iterator[tuple[str, list[str]]]:
    """Iterate over the threads: the name of each and its stack, the innermost call last."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for number, frame in sys._current_frames().items():
        yield names.get(number, f"thread {number}"), _stack(frame)


def _stack(frame: FrameType | None) -> list[str]:
    calls: list[str] = []
    while frame is not None and len(calls) < MAX_DEPTH:
        code = frame.f_code
        calls.append(f"{_short(code.co_filename)}:{frame.f_lineno} {code.co_qualname}")
        frame = frame.f_back
    return calls[::-1]


def tasks_by_wait(loop: asyncio.AbstractEventLoop, *, max_tasks: int = MAX_TASKS) -> Counter[Chain]:
    """Count the unfinished tasks of an event loop by what they wait for."""
    counts: Counter[Chain] = Counter()
    for number, task in enumerate(asyncio.all_tasks(loop)):
        if number >= max_tasks:
            break
        if number % TASKS_PER_TURN == TASKS_PER_TURN - 1:
            time.sleep(0.001)
        counts[_chain(task.get_coro())] += 1
    return counts


def _chain(awaited: Any) -> Chain:
    """Follow what awaits what, from the coroutine of a task to the future that it waits for."""
    chain: list[str] = []
    while awaited is not None and len(chain) < MAX_DEPTH:
        for frame_name, next_name in (("cr_frame", "cr_await"), ("gi_frame", "gi_yieldfrom"), ("ag_frame", "ag_await")):
            if hasattr(awaited, frame_name):
                frame = getattr(awaited, frame_name)
                line = "" if frame is None else f":{frame.f_lineno}"
                chain.append(f"{awaited.__qualname__}{line}")
                awaited = getattr(awaited, next_name)
                break
        else:
            chain.append(type(awaited).__name__)
            break
    return tuple(chain)


def _short(file: str) -> str:
    """Return the end of a path, which tells one module from another.

    >>> _short("/srv/venv/lib/python3.11/site-packages/rove/crawl/loop.py")
    'rove/crawl/loop.py'
    """
    return "/".join(Path(file).parts[-3:]).lstrip("/")
