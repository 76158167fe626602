"""Collects the samples that the processes of this machine send, until they are taken."""

from __future__ import annotations

from collections import deque

from rove.model.samples import Sample, combined

MOST_KEPT = 100
"""Samples kept of each process if nobody takes them: those of some minutes."""


class SampleInbox:
    """The samples of each process since they were last taken."""

    def __init__(self) -> None:
        self._samples: dict[str, deque[Sample]] = {}

    def put(self, process: str, sample: Sample) -> None:
        """Add a sample of a process, which may have ended since."""
        self._samples.setdefault(process, deque(maxlen=MOST_KEPT)).append(sample)

    def take(self) -> list[Sample]:
        """Return one sample for each process that has sent any."""
        taken, self._samples = self._samples, {}
        return [combined(list(samples)) for samples in taken.values()]
