"""Chooses which of the links that are not taken are kept as examples.

Of each reason, the links with the lowest fingerprints are kept. Fingerprints are keyed hashes, so every URL has the
same chance, however often it is found and by whatever process, and nobody can choose to be an example. Once a process
has seen many links, hardly one of them is lower than the lowest so far, so the examples cost nearly nothing.
"""

from __future__ import annotations

import heapq
from collections import defaultdict

from rove.model.skipped import SAMPLED


class SkipSample:
    """What one process has chosen."""

    def __init__(self, most: int = SAMPLED) -> None:
        """`most`: how many links of each reason are kept."""
        self._most = most
        self._highest: defaultdict[str, list[int]] = defaultdict(list)
        """By reason: the chosen fingerprints, negated, as a heap whose first is the highest."""
        self._chosen: defaultdict[str, set[int]] = defaultdict(set)

    def chooses(self, reason: str, fingerprint: int) -> bool:
        """Return whether to keep a link; False if it was chosen before."""
        heap = self._highest[reason]
        if len(heap) >= self._most and fingerprint >= -heap[0]:
            return False
        chosen = self._chosen[reason]
        if fingerprint in chosen:
            return False
        chosen.add(fingerprint)
        heapq.heappush(heap, -fingerprint)
        if len(heap) > self._most:
            chosen.remove(-heapq.heappop(heap))
        return True
