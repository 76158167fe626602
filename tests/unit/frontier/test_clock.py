"""The crawl's clock: it goes on within a boot, and never back across boots."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rove.frontier import clock
from rove.frontier.clock import Anchor, CrawlClock, anchor_for


class Machine:
    """What the clock reads: a boot, its steady clock, and the wall clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.boot, self.steady, self.wall = "boot-1", 1_000.0, 1_700_000_000.0
        monkeypatch.setattr(clock, "current_boot", lambda: self.boot)
        monkeypatch.setattr(clock, "steady_seconds", lambda: self.steady)
        monkeypatch.setattr(clock.time, "time", lambda: self.wall)

    def pass_time(self, seconds: float) -> None:
        self.steady += seconds
        self.wall += seconds

    def reboot(self, *, took: float = 60.0, wall: float | None = None) -> None:
        self.boot += "+"
        self.steady = 5.0
        self.wall = self.wall + took if wall is None else wall


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_the_first_start_takes_the_wall_clock(machine: Machine) -> None:
    now = CrawlClock(anchor_for(None, 0))
    assert now() == 1_700_000_000_000
    machine.pass_time(2.5)
    assert now() == 1_700_000_002_500


@pytest.mark.parametrize("jump", [-86_400.0, -1.0, 0.0, 1.0, 86_400.0])
def test_within_a_boot_the_wall_clock_does_not_matter(machine: Machine, jump: float) -> None:
    first = anchor_for(None, 0)
    machine.pass_time(100)
    machine.wall += jump
    assert anchor_for(first, 1_700_000_050_000) == first
    assert CrawlClock(first)() == 1_700_000_100_000


def test_after_a_reboot_the_wall_clock_says_how_much_time_has_passed(machine: Machine) -> None:
    first = anchor_for(None, 0)
    machine.pass_time(100)
    last_seen = CrawlClock(first)()
    machine.reboot(took=60)
    second = anchor_for(first, last_seen)
    assert second.boot != first.boot
    assert CrawlClock(second)() == last_seen + 60_000
    machine.pass_time(1)
    assert CrawlClock(second)() == last_seen + 61_000


def test_after_a_reboot_with_a_clock_set_back_no_time_has_passed(machine: Machine) -> None:
    first = anchor_for(None, 0)
    machine.pass_time(100)
    last_seen = CrawlClock(first)()
    machine.reboot(wall=0.0)
    assert CrawlClock(anchor_for(first, last_seen))() == last_seen


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1e6), st.floats(0, 2e9)), max_size=10))
def test_the_clock_never_goes_back(events: list[tuple[bool, float, float]]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        machine = Machine(monkeypatch)
        anchor, last_seen = anchor_for(None, 0), 0
        for reboots, seconds, wall in events:
            machine.pass_time(seconds)
            now = CrawlClock(anchor)()
            assert now >= last_seen
            last_seen = now
            if reboots:
                machine.reboot(wall=wall)
            anchor = anchor_for(anchor, last_seen)


def test_an_anchor_is_kept_as_json() -> None:
    anchor = Anchor(boot="some-boot", offset_ms=-123)
    assert msgspec.json.decode(msgspec.json.encode(anchor), type=Anchor) == anchor


def test_the_boot_is_named_by_the_kernel_or_by_when_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    assert clock.current_boot() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    monkeypatch.setattr(clock, "_BOOT_ID", Path("/nonexistent/boot_id"))
    monkeypatch.setattr(clock, "steady_seconds", lambda: 1_000.0)
    monkeypatch.setattr(clock.time, "time", lambda: 1_700_000_002.0)
    assert clock.current_boot() == "booted-1699999000"
    monkeypatch.setattr(clock.time, "time", lambda: 1_700_000_004.0)
    assert clock.current_boot() == "booted-1699999000", "a small drift is the same boot"


def test_the_steady_clock_runs_in_suspend() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    now = clock.steady_seconds()
    assert before <= now <= time.clock_gettime(time.CLOCK_BOOTTIME)
