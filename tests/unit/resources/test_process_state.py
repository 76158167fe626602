"""What the kernel says about this process, on a real kernel and on files as other kernels have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rove.resources.process_state import available_bytes, oom_kills, resident_bytes

NOWHERE = Path("/nowhere")


def test_this_process() -> None:
    assert (resident_bytes() or 0) > 1 << 20


def test_the_counter_of_this_machine_is_readable() -> None:
    assert all(count >= 0 for count in oom_kills()) and oom_kills()


@pytest.mark.parametrize(
    ("cgroup", "events", "text"),
    [
        ("0::/user.slice/a.service\n", "user.slice/a.service/memory.events", "oom 4\noom_kill 3\n"),
        ("3:cpu,memory:/a\n", "memory/a/memory.oom_control", "oom_kill_disable 0\noom_kill 3\n"),
    ],
)
def test_both_versions_of_control_groups(tmp_path: Path, cgroup: str, events: str, text: str) -> None:
    kernel, groups = tmp_path / "vmstat", tmp_path / "cgroup"
    kernel.write_text("nr_free_pages 5\noom_kill 11\n")
    groups.write_text(cgroup)
    counter = tmp_path / "root" / events
    counter.parent.mkdir(parents=True)
    counter.write_text(text)
    assert oom_kills(kernel, groups, tmp_path / "root") == (11, 3)
    assert oom_kills(kernel, groups, NOWHERE) == (11,)


def test_a_system_that_says_nothing() -> None:
    assert oom_kills(NOWHERE, NOWHERE, NOWHERE) == ()


def test_this_machine_has_some_memory_left() -> None:
    assert (available_bytes() or 0) > 1 << 20


@pytest.mark.parametrize(
    ("most", "expected"), [("max", 8_000 * 1024), ("1000000", 1_000_000 - 700_000 + 50_000), ("600000", 0)]
)
def test_a_control_group_may_have_less_memory_left_than_the_machine(tmp_path: Path, most: str, expected: int) -> None:
    machine, groups, group = tmp_path / "meminfo", tmp_path / "cgroup", tmp_path / "root" / "a"
    machine.write_text("MemTotal:       10000 kB\nMemAvailable:    8000 kB\n")
    groups.write_text("0::/a\n")
    group.mkdir(parents=True)
    for name, text in {"max": most, "current": "700000", "stat": "anon 5\ninactive_file 50000\n"}.items():
        (group / f"memory.{name}").write_text(text + "\n")
    assert available_bytes(machine, groups, tmp_path / "root") == expected
    assert available_bytes(NOWHERE, NOWHERE, NOWHERE) is None
