"""Counts the visits to domains that do not respond, so that they never hold more than their part of the slots.

A stranger is a domain that did not respond to its last visit, or that was never visited. policy/silence.py decides how
many of them may be claimed.
"""

from __future__ import annotations

from collections.abc import Callable

from rove.crawl.throttle import Throttle
from rove.crawl.visit_record import VisitRecord
from rove.model.visits import Lease
from rove.policy.silence import SILENT_AFTER, most_silent, room_for_strangers, updated_share


class SilentVisits:
    """The visits to strangers in this process that have brought no response yet."""

    def __init__(self, throttle: Throttle, clock: Callable[[], float]) -> None:
        """`throttle` knows how many visits may be in flight."""
        self._throttle = throttle
        self._clock = clock
        self._queued = 0
        """Leases of strangers that wait for a slot."""
        self._young: dict[VisitRecord, float] = {}
        """Visits that have begun within the last SILENT_AFTER seconds and when, oldest first."""
        self._silent: set[VisitRecord] = set()
        self._share = 0.0

    @property
    def count(self) -> int:
        """How many visits to strangers have been silent for so long that they count."""
        self._find_silent()
        return len(self._silent)

    def room(self, responding: int) -> int:
        """Return how many more strangers may be claimed, while this many other domains will soon need a slot."""
        silent, young = self.count, len(self._young) + self._queued
        return room_for_strangers(
            self._throttle.allowed, silent=silent, young=young, share=self._share, responding=responding
        )

    @property
    def are_many(self) -> bool:
        """Whether silent visits hold at least half of the slots that they may hold."""
        return 2 * self.count >= most_silent(self._throttle.allowed)

    def queue(self, lease: Lease) -> None:
        """Note that a lease waits for a slot."""
        self._queued += not lease.pace.is_responding

    def unqueue(self, lease: Lease) -> None:
        """Note that a lease no longer waits for a slot."""
        self._queued -= not lease.pace.is_responding

    def begin(self, record: VisitRecord) -> None:
        """Note that a visit begins."""
        if not record.lease.pace.is_responding:
            self._young[record] = self._clock()

    def end(self, record: VisitRecord) -> None:
        """Note that a visit has brought a response, or has ended."""
        self._find_silent()
        if self._young.pop(record, None) is not None:
            self._note(is_silent=False)
        else:
            self._silent.discard(record)

    def _find_silent(self) -> None:
        """Move the visits from young to silent that have been silent for long enough."""
        latest = self._clock() - SILENT_AFTER
        while self._young:
            record, began = next(iter(self._young.items()))
            if began > latest:
                return
            del self._young[record]
            self._silent.add(record)
            self._note(is_silent=True)

    def _note(self, *, is_silent: bool) -> None:
        self._share = updated_share(self._share, self._throttle.allowed, is_silent=is_silent)
