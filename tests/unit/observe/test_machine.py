"""The figures of the machine."""

from __future__ import annotations

from pathlib import Path

from rove.observe.machine import Machine
from rove.resources.network import NetworkBytes


def test_the_network_is_measured_since_the_last_time(tmp_path: Path) -> None:
    counters = iter(
        [NetworkBytes(1_000, 100), NetworkBytes(1_500, 130), NetworkBytes(40, 131), None, NetworkBytes(9, 9)]
    )
    machine = Machine(tmp_path, measure_network=lambda: next(counters))
    taken = [machine.figures() for _ in range(4)]
    assert [(figures.get("network.received"), figures.get("network.sent")) for figures in taken] == [
        (500, 30),
        (0, 1),  # a device was removed
        (None, None),
        (None, None),
    ]


def test_a_directory_that_is_gone_has_no_free_space(tmp_path: Path) -> None:
    assert Machine(tmp_path).figures()["disk.free"] > 0
    assert "disk.free" not in Machine(tmp_path / "gone").figures()
