"""The crawl's clock: the time that politeness is reckoned in.

A wall clock can be set back (the crawl would stall) or forward (delays would be cut short). So the crawl's
time runs with the machine's boot-time clock, which nobody sets and which goes on through a suspend; the
frontier keeps how the two are related. After a reboot, or on another machine, the wall clock says how much
time has passed, but never less than none.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Anchor(msgspec.Struct, frozen=True):
    """How the crawl's time is related to the boot-time clock of one boot of one machine."""

    boot: str
    offset_ms: int


@dataclass(frozen=True, slots=True)
class CrawlClock:
    """Milliseconds of the crawl's time."""

    anchor: Anchor

    def __call__(self) -> int:
        return self.anchor.offset_ms + int(steady_seconds() * 1000)


def steady_seconds() -> float:
    """Seconds of a clock that is never set and that runs in suspend."""
    return time.clock_gettime(_STEADY)


def current_boot() -> str:
    """A name for this boot of this machine."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return f"booted-{round(time.time() - steady_seconds(), -1):.0f}"


def anchor_for(previous: Anchor | None, last_seen_ms: int) -> Anchor:
    """The anchor to go on with: the old one within the same boot, else one that loses no time."""
    boot = current_boot()
    if previous is not None and previous.boot == boot:
        return previous
    resumed_at = max(int(time.time() * 1000), last_seen_ms)
    return Anchor(boot=boot, offset_ms=resumed_at - int(steady_seconds() * 1000))
