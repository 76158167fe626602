"""The bytes that the machine has received and sent."""

from __future__ import annotations

from pathlib import Path

from rove.resources.network import NetworkBytes, network_bytes

DEVICES = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier
    lo: 9000       9    0    0    0     0          0         0     9000       9    0    0    0     0       0          0
  eth0:1000       7    0    0    0     0          0         0      300       5    0    0    0     0       0          0
 wlan0: 20       1    0    0    0     0          0         0        4       1    0    0    0     0       0          0
"""


def test_all_devices_but_loopback_are_added_up(tmp_path: Path) -> None:
    devices = tmp_path / "dev"
    devices.write_text(DEVICES)
    assert network_bytes(devices) == NetworkBytes(received=1020, sent=304)


def test_a_system_that_does_not_say(tmp_path: Path) -> None:
    assert network_bytes(tmp_path / "none") is None
    (tmp_path / "dev").write_text("a\nb\neth0: x\n")
    assert network_bytes(tmp_path / "dev") is None


def test_this_machine_says() -> None:
    found = network_bytes()
    assert found is not None and found.received >= 0
