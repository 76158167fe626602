"""Describes how a worker process died."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from rove.notation.humanize import size_text

_CRASHES = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE})
"""Signals for which the interpreter writes the stacks of all threads into the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """What is known about the end of a worker."""

    exit_code: int | None
    """Negative for a signal."""
    log_name: str
    resident: int = 0
    """Resident memory at its last report, in bytes; 0 if it never reported."""
    was_killed_by_us: bool = False
    oom_kills_before: Sequence[int] = ()
    """The kernel's counters of processes killed for lack of memory, when the worker started."""
    oom_kills_after: Sequence[int] = ()

    def __str__(self) -> str:
        if self.exit_code == 0:
            return "somebody stopped it"
        if self.exit_code is None or self.exit_code > 0:
            return f"exit code {self.exit_code}; see {self.log_name}"
        number = -self.exit_code
        text = f"killed by {signal_name(number)}"
        if self.resident:
            text += f" with {size_text(self.resident)} of memory"
        if number in _CRASHES:
            return f"{text}; see {self.log_name}"
        return text if number != signal.SIGKILL or self.was_killed_by_us else f"{text}; {self._oom_text()}"

    def _oom_text(self) -> str:
        if not self.oom_kills_after:
            return "the kernel may have run out of memory"
        if any(after > before for before, after in zip(self.oom_kills_before, self.oom_kills_after, strict=False)):
            return "the kernel ran out of memory (OOM killer): lower --max-memory or --processes"
        return "not by the kernel's OOM killer, so somebody sent the signal"


def signal_name(number: int) -> str:
    """Return the name of a signal.

    >>> signal_name(9), signal_name(63)
    ('SIGKILL', 'signal 63')
    """
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
