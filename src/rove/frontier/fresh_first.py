"""Decides which claims prefer domains that were never leased.

A domain that was never visited is worth more to a broad crawl than one that has already returned pages. But new domains
may arrive faster than they can be visited. So only every second claim prefers them, and the others take all domains in
the order in which they are due.
"""

from __future__ import annotations

SKIPPED = 8
"""Claims without a preference, after one that found no fresh domain."""


class FreshFirst:
    """The turns of one process."""

    def __init__(self) -> None:
        self._until_turn = 1

    def takes_turn(self) -> bool:
        """Return whether the next claim prefers fresh domains."""
        if self._until_turn:
            self._until_turn -= 1
            return False
        self._until_turn = 1
        return True

    def found(self, fresh: int) -> None:
        """Note how many fresh domains a claim that preferred them returned."""
        if not fresh:
            self._until_turn = SKIPPED
