"""The crawl's clock continues within a boot and never goes back across boots."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rove.frontier.clock import Anchor, CrawlClock, MachineTime, anchor_for, boot_by_time, machine_time, steady_seconds


class Machine:
    """A machine whose boot, boot-time clock and wall clock the test sets."""

    def __init__(self) -> None:
        self.boot, self.steady, self.wall = "boot-1", 1_000.0, 1_700_000_000.0

    def anchor(self, previous: Anchor | None, last_seen_ms: int) -> Anchor:
        return anchor_for(previous, last_seen_ms, MachineTime(self.boot, self.steady, self.wall))

    def now(self, anchor: Anchor) -> int:
        return CrawlClock(anchor, lambda: self.steady)()

    def pass_time(self, seconds: float) -> None:
        self.steady += seconds
        self.wall += seconds

    def reboot(self, *, took: float = 60.0, wall: float | None = None) -> None:
        self.boot += "+"
        self.steady = 5.0
        self.wall = self.wall + took if wall is None else wall


def test_the_first_start_takes_the_wall_clock() -> None:
    machine = Machine()
    anchor = machine.anchor(None, 0)
    assert machine.now(anchor) == 1_700_000_000_000
    machine.pass_time(2.5)
    assert machine.now(anchor) == 1_700_000_002_500


@pytest.mark.parametrize("jump", [-86_400.0, -1.0, 0.0, 1.0, 86_400.0])
def test_within_a_boot_the_wall_clock_does_not_matter(jump: float) -> None:
    machine = Machine()
    first = machine.anchor(None, 0)
    machine.pass_time(100)
    machine.wall += jump
    assert machine.anchor(first, 1_700_000_050_000) == first
    assert machine.now(first) == 1_700_000_100_000


def test_after_a_reboot_the_wall_clock_says_how_much_time_has_passed() -> None:
    machine = Machine()
    first = machine.anchor(None, 0)
    machine.pass_time(100)
    last_seen = machine.now(first)
    machine.reboot(took=60)
    second = machine.anchor(first, last_seen)
    assert second.boot != first.boot
    assert machine.now(second) == last_seen + 60_000
    machine.pass_time(1)
    assert machine.now(second) == last_seen + 61_000


def test_after_a_reboot_with_a_clock_set_back_no_time_has_passed() -> None:
    machine = Machine()
    first = machine.anchor(None, 0)
    machine.pass_time(100)
    last_seen = machine.now(first)
    machine.reboot(wall=0.0)
    assert machine.now(machine.anchor(first, last_seen)) == last_seen


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1e6), st.floats(0, 2e9)), max_size=10))
def test_the_clock_never_goes_back(events: list[tuple[bool, float, float]]) -> None:
    machine = Machine()
    anchor, last_seen = machine.anchor(None, 0), 0
    for reboots, seconds, wall in events:
        machine.pass_time(seconds)
        now = machine.now(anchor)
        assert now >= last_seen
        last_seen = now
        if reboots:
            machine.reboot(wall=wall)
        anchor = machine.anchor(anchor, last_seen)


def test_an_anchor_is_stored_as_json() -> None:
    anchor = Anchor(boot="some-boot", offset_ms=-123)
    assert msgspec.json.decode(msgspec.json.encode(anchor), type=Anchor) == anchor


def test_the_kernel_names_the_boot() -> None:
    assert machine_time().boot == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_without_a_name_from_the_kernel_the_time_of_the_boot_names_it() -> None:
    assert machine_time(Path("/nonexistent/boot_id")).boot.startswith("booted-")
    assert boot_by_time(1_000.0, 1_700_000_002.0) == "booted-1699999000"
    assert boot_by_time(1_000.0, 1_700_000_004.0) == "booted-1699999000", "a small drift"


def test_the_steady_clock_runs_during_suspend() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    now = steady_seconds()
    assert before <= now <= time.clock_gettime(time.CLOCK_BOOTTIME)
