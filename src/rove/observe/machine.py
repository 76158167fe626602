"""The figures of the machine itself: disk, memory and network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rove.crawl.pressure import free_bytes
from rove.resources.network import NetworkBytes, network_bytes
from rove.resources.process_state import available_bytes


class Machine:
    """Measures the machine, and its network since the last time."""

    def __init__(self, directory: Path, *, measure_network: Callable[[], NetworkBytes | None] = network_bytes) -> None:
        """`directory` is on the disk that fills up."""
        self._directory = directory
        self._measure_network = measure_network
        self._network = measure_network()

    def figures(self) -> dict[str, float]:
        """Return the figures. Those that the system does not say are absent."""
        figures: dict[str, float] = {}
        disk, memory = free_bytes(self._directory), available_bytes()
        if disk is not None:
            figures["disk.free"] = disk
        if memory is not None:
            figures["memory.free"] = memory
        before, now = self._network, self._measure_network()
        self._network = now
        if before is not None and now is not None:
            # A device that was removed takes its bytes with it.
            figures["network.received"] = max(0, now.received - before.received)
            figures["network.sent"] = max(0, now.sent - before.sent)
        return figures
