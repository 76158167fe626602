"""What the kernel says about this process and this machine: memory, and processes killed for memory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_KERNEL_COUNTERS = Path("/proc/vmstat")
_MEMORY = Path("/proc/meminfo")
_STATUS = Path("/proc/self/status")
_MEMORY_KINDS = {
    "resident": "VmRSS:",
    "of it heap and stacks": "RssAnon:",
    "of it files": "RssFile:",
    "of it shared": "RssShmem:",
    "swapped out": "VmSwap:",
    "the most that was ever resident": "VmHWM:",
}
_CGROUP = Path("/proc/self/cgroup")
_CGROUP_ROOT = Path("/sys/fs/cgroup")


def resident_bytes() -> int | None:
    """Return the resident memory of this process, None if the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def available_bytes(machine: Path = _MEMORY, cgroup: Path = _CGROUP, cgroup_root: Path = _CGROUP_ROOT) -> int | None:
    """Return the memory that this machine, or this process's control group, has left; None if neither says."""
    kib = _counter(machine, "MemAvailable:")
    left = [] if kib is None else [kib * 1024]
    for events in _memory_events(cgroup, cgroup_root):
        if events.name == "memory.events":
            limit, used = _number(events.with_name("memory.max")), _number(events.with_name("memory.current"))
            # The kernel gives up file pages that nobody has used lately before it runs out of memory.
            idle = _counter(events.with_name("memory.stat"), "inactive_file") or 0
            if limit is not None and used is not None:
                left.append(max(0, limit - used + idle))
    return min(left, default=None)


def memory_by_kind(status: Path = _STATUS) -> dict[str, int]:
    """Return the memory of this process in bytes, by what it holds; empty if the system does not say."""
    try:
        lines = [line.split() for line in status.read_text().splitlines()]
    except OSError:
        return {}
    kib = {words[0]: int(words[1]) for words in lines if words[-1:] == ["kB"]}
    return {name: 1024 * kib[key] for name, key in _MEMORY_KINDS.items() if key in kib}


def oom_kills(
    kernel: Path = _KERNEL_COUNTERS, cgroup: Path = _CGROUP, cgroup_root: Path = _CGROUP_ROOT
) -> tuple[int, ...]:
    """Return the kernel's counters of processes that it killed because memory ran out: machine and control group.

    Empty if the system does not say. A container sees its own control group, but may not see the machine's counter
    change.
    """
    files = [kernel, *_memory_events(cgroup, cgroup_root)]
    return tuple(count for file in files if (count := _counter(file, "oom_kill")) is not None)


def _memory_events(cgroup: Path, root: Path) -> Iterable[Path]:
    """Return where this process's control group counts its events, for both versions of control groups."""
    try:
        lines = cgroup.read_text().splitlines()
    except OSError:
        return []
    paths = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        name = path.lstrip("/")
        if not controllers:
            paths.append(root / name / "memory.events")
        elif "memory" in controllers.split(","):
            paths.append(root / "memory" / name / "memory.oom_control")
    return paths


def _counter(file: Path, name: str) -> int | None:
    try:
        for line in file.read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value.split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return None


def _number(file: Path) -> int | None:
    """Return the number in a file; None if there is no limit ('max') or no such file."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None
