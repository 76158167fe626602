"""Reads single keys from the terminal while a command runs, and leaves the terminal as it was."""

from __future__ import annotations

import asyncio
import os
import signal
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

STDIN = 0
LEAVING = frozenset(b"qQ\x04")
"""q and Ctrl-D."""


@contextmanager
def leaving(leave: Callable[[], None]) -> Iterator[None]:
    """Call `leave` at Ctrl-C, SIGTERM or, in the foreground of a terminal, at the key q, during this block."""
    loop = asyncio.get_running_loop()
    stops = (signal.SIGINT, signal.SIGTERM)
    for number in stops:
        loop.add_signal_handler(number, leave)
    try:
        with _keys(leave):
            yield
    finally:
        for number in stops:
            loop.remove_signal_handler(number)


@contextmanager
def _keys(leave: Callable[[], None]) -> Iterator[None]:
    """Watch the keys, if there is a terminal whose keys are meant for this process."""
    if not _has_keys():
        yield
        return
    before = termios.tcgetattr(STDIN)
    loop = asyncio.get_running_loop()

    def read() -> None:
        try:
            keys = os.read(STDIN, 64)
        except OSError:
            keys = b""
        if not keys:  # the terminal is closed
            loop.remove_reader(STDIN)
        if not keys or LEAVING.intersection(keys):
            leave()

    def go_on() -> None:
        """Set the terminal again after Ctrl-Z and `fg`: the shell has set it in between."""
        if _has_keys():
            tty.setcbreak(STDIN, termios.TCSANOW)

    go_on()
    loop.add_reader(STDIN, read)
    loop.add_signal_handler(signal.SIGCONT, go_on)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGCONT)
        loop.remove_reader(STDIN)
        with suppress(termios.error):
            termios.tcsetattr(STDIN, termios.TCSANOW, before)


def _has_keys() -> bool:
    """Whether standard input is a terminal and this process is in its foreground."""
    try:
        return os.isatty(STDIN) and os.tcgetpgrp(STDIN) == os.getpgrp()
    except OSError:  # a terminal of another session
        return False
