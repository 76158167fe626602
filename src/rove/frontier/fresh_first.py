"""Whose turn it is when domains are claimed: those that were never leased have a head start, but a bounded one.

A domain that nobody has visited yet is worth more to a broad crawl than one that has given pages already. But there may
be more new ones every second than can be visited: so they come first in every second claim, and in the others all
domains come in the order in which they are due.
"""

from __future__ import annotations

SKIPPED = 8
"""Claims without such a turn, after one that found no fresh domain."""


class FreshFirst:
    """Which claims of one process begin with domains that were never leased."""

    def __init__(self) -> None:
        self._until_turn = 1

    def takes_turn(self) -> bool:
        """Whether the claim to be made now begins with them."""
        if self._until_turn:
            self._until_turn -= 1
            return False
        self._until_turn = 1
        return True

    def found(self, fresh: int) -> None:
        """A claim that began with them brought so many."""
        if not fresh:
            self._until_turn = SKIPPED
