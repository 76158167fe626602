"""How many pages per second politeness allows a crawl."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rove.crawl.progress import ceiling_share
from rove.model.samples import Sample

MEMORY_SECONDS = 300.0
"""The length of a cycle and the pages that a visit brings are moving averages over about this time."""


class Ceiling:
    """Estimates the ceiling from the domains with work and from recent visits.

    A domain with work is visited once in a cycle: the delay after a visit and the visit itself. The visits of this
    machine stand for those of all machines.
    """

    def __init__(self) -> None:
        self._visits = self._pages = self._seconds = 0.0

    def figures(self, sample: Sample, domains: Mapping[str, int]) -> dict[str, float]:
        """Return the figures of the ceiling, given the latest sample and the domains of the crawl by state."""
        self._note(sample)
        used = ceiling_share(domains)
        figures = {} if used is None else {"ceiling.used": used}
        if self._visits and self._seconds:
            with_work = domains["waiting"] + domains["leased"] + domains["ready"]
            figures["ceiling"] = with_work * self._pages / self._seconds
        return figures

    def _note(self, sample: Sample) -> None:
        fading = math.exp(-sample.seconds / MEMORY_SECONDS)
        rests = sample.histograms.get("rest")
        seconds = sum(times.total for name, times in sample.histograms.items() if name.startswith("request."))
        self._visits = self._visits * fading + sample.figures.get("visits", 0)
        self._pages = self._pages * fading + sample.total("pages.")
        self._seconds = self._seconds * fading + seconds + (rests.total if rests is not None else 0.0)
