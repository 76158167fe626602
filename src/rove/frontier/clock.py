"""The crawl's clock, which decides when a domain may be visited again (SQLite).

The wall clock can be set back, which would stall the crawl, or forward, which would cut delays short. So the crawl's
time follows the machine's boot-time clock, which is never set and runs during suspend. The frontier stores the
offset between the two. After a reboot, or on another machine, the wall clock tells how much time has passed, and the
crawl's clock never goes back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady_seconds() -> float:
    """Read a clock that is never set and that runs during suspend."""
    return time.clock_gettime(_STEADY)


class Anchor(msgspec.Struct, frozen=True):
    """The offset from the boot-time clock of one boot of one machine to the crawl's clock."""

    boot: str
    offset_ms: int


@dataclass(frozen=True, slots=True)
class CrawlClock:
    """Returns the crawl's time in milliseconds."""

    anchor: Anchor
    steady: Callable[[], float] = steady_seconds

    def __call__(self) -> int:
        return self.anchor.offset_ms + int(self.steady() * 1000)


class MachineTime(NamedTuple):
    """The clocks of a machine at one moment."""

    boot: str
    steady: float
    wall: float


def machine_time(boot_id: Path = _BOOT_ID) -> MachineTime:
    """Read the clocks of this machine."""
    steady, wall = steady_seconds(), time.time()
    try:
        boot = boot_id.read_text().strip()
    except OSError:
        boot = boot_by_time(steady, wall)
    return MachineTime(boot, steady, wall)


def boot_by_time(steady: float, wall: float) -> str:
    """Name a boot by its time, where the kernel gives it no name. Rounded, because the wall clock drifts."""
    return f"booted-{round(wall - steady, -1):.0f}"


def anchor_for(previous: Anchor | None, last_seen_ms: int, now: MachineTime | None = None) -> Anchor:
    """Return the previous anchor within the same boot, else one with which the clock does not go back."""
    now = now or machine_time()
    if previous is not None and previous.boot == now.boot:
        return previous
    resumed_at = max(int(now.wall * 1000), last_seen_ms)
    return Anchor(boot=now.boot, offset_ms=resumed_at - int(now.steady * 1000))
