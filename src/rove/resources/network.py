"""The bytes that this machine has received and sent over the network."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_DEVICES = Path("/proc/net/dev")
_LOOPBACK = "lo"
_RECEIVED, _SENT = 0, 8
"""Columns behind the name of a device."""


class NetworkBytes(NamedTuple):
    """Bytes since the machine was started."""

    received: int
    sent: int


def network_bytes(devices: Path = _DEVICES) -> NetworkBytes | None:
    """Return the bytes of all network devices apart from the loopback device; None if the system does not say."""
    try:
        lines = devices.read_text().splitlines()[2:]
        rows = {name.strip(): columns.split() for name, _, columns in (line.partition(":") for line in lines)}
        others = [row for name, row in rows.items() if name != _LOOPBACK]
        return NetworkBytes(sum(int(row[_RECEIVED]) for row in others), sum(int(row[_SENT]) for row in others))
    except (OSError, ValueError, IndexError):
        return None
