"""The counters of a running crawl: the crawl updates them, the panel shows them, workers report them."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

import msgspec

from rove.model.ledger import RequestRow
from rove.model.request_counts import RequestCounts, counter_names, request_counts

RATE_WINDOW = 10.0
"""Seconds over which the current rates are measured."""
INTERNAL = "internal"
"""The error of a visit that failed because of a bug of ours."""


class Counters(msgspec.Struct, omit_defaults=True):
    """Counters of one process, or of several together, since they began.

    A new counter is one new field here. Workers report it and the supervisor adds it up without further code.
    """

    pages: int = 0
    visits: int = 0
    bytes: int = 0
    in_flight: int = 0
    at_once: int = 0
    """How many visits may be in flight."""
    held_by: Counter[str] = msgspec.field(default_factory=Counter)
    """Why `at_once` does not grow (policy.concurrency.HeldBy): the number of processes for each reason."""
    queued: int = 0
    internal_errors: int = 0
    """Visits that failed because of a bug of ours."""
    resident: int = 0
    """Resident memory in bytes."""
    open_files: int = 0
    longest_lag: float = 0.0
    """The longest stop of the event loop, in seconds; of several processes, the longest of all."""
    request_counters: Counter[str] = msgspec.field(default_factory=Counter)
    """Requests and errors by kind of request, under the names that the frontier uses too."""
    troubles: dict[str, str] = msgspec.field(default_factory=dict)
    """Why the crawl is slowed down or paused: a sentence for each cause. Empty in an undisturbed crawl."""

    @property
    def request_counts(self) -> RequestCounts:
        """Requests and errors, apart for each kind of request."""
        return request_counts(self.request_counters)

    @property
    def requests(self) -> int:
        """All requests."""
        return self.request_counts.total

    @property
    def errors(self) -> Counter[str]:
        """Everything that failed, by error. A missing robots.txt or a PDF is not a failure."""
        return self.request_counts.errors + Counter({INTERNAL: self.internal_errors})

    def count_requests(self, rows: list[RequestRow]) -> None:
        """Count the requests of a visit that is settled."""
        for row in rows:
            self.bytes += row.size
            for name in counter_names(row.kind, row.error):
                self.request_counters[name] += 1

    def set_trouble(self, cause: str, sentence: str) -> None:
        """Set why the crawl is slowed down or paused by a cause; '' ends it."""
        if sentence:
            self.troubles[cause] = sentence
        else:
            self.troubles.pop(cause, None)

    def __add__(self, other: Counters) -> Counters:
        """Add every counter; of several troubles with the same cause, the first one counts."""
        sums = {name: _sum(value, getattr(other, name)) for name, value in _fields(self)}
        sums["longest_lag"] = max(self.longest_lag, other.longest_lag)
        return Counters(**sums)

    def ended(self) -> Counters:
        """Return the counters after the end of the process: nothing is in flight, queued or in trouble any more."""
        now_over = {
            "in_flight": 0,
            "at_once": 0,
            "held_by": Counter(),
            "queued": 0,
            "resident": 0,
            "open_files": 0,
            "troubles": {},
        }
        return Counters(**dict(_fields(self)) | now_over)


class Progress(Counters, kw_only=True):
    """The counters of this run while it goes on, and the rates they grow at."""

    started: float
    """By the steady clock."""
    last_answer: float = -math.inf
    """When a site last responded to a request of this process, by the steady clock."""
    answered_from: float = -math.inf
    """The latest start of a request that a site responded to, by the steady clock."""
    is_stopping: bool = False
    """No new visit starts, because the crawl ends."""
    marks: deque[tuple[float, int, int]] = msgspec.field(default_factory=deque)
    """Time, pages and visits at recent moments, oldest first."""

    def note_answer(self, started: float, now: float) -> None:
        """Record that a site has just responded to a request that was started at `started`."""
        self.last_answer = now
        self.answered_from = max(self.answered_from, started)

    def snapshot(self) -> Counters:
        """Return a copy of the counters as they are now."""
        copies = {
            "request_counters": self.request_counters.copy(),
            "held_by": self.held_by.copy(),
            "troubles": dict(self.troubles),
        }
        return Counters(**dict(_fields(self)) | copies)

    def update(self, counters: Counters) -> None:
        """Set every counter to its value in `counters`."""
        for name, value in _fields(counters):
            setattr(self, name, value)

    def mark(self, now: float) -> None:
        """Record where the counters stand; called about once a second."""
        self.marks.append((now, self.pages, self.visits))
        while len(self.marks) > 2 and now - self.marks[0][0] > RATE_WINDOW:
            self.marks.popleft()

    def pages_per_second(self) -> float:
        """Return the rate over the last RATE_WINDOW seconds."""
        return self._rate(1)

    def visits_per_second(self) -> float:
        """Return the rate over the last RATE_WINDOW seconds."""
        return self._rate(2)

    def average(self, now: float) -> float:
        """Return the pages per second since the run began."""
        return self.pages / max(now - self.started, 0.001)

    def _rate(self, column: int) -> float:
        if len(self.marks) < 2:
            return 0.0
        first, last = self.marks[0], self.marks[-1]
        return (last[column] - first[column]) / max(last[0] - first[0], 0.001)


def _fields(counters: Counters) -> list[tuple[str, Any]]:
    return [(name, getattr(counters, name)) for name in Counters.__struct_fields__]


def _sum(ours: Any, theirs: Any) -> Any:
    # Counter.__or__ would take the larger count, and a dict cannot be added.
    return theirs | ours if type(ours) is dict else ours + theirs


def ceiling_share(domains: Mapping[str, int]) -> float | None:
    """Return the share of the visits that politeness allows and that rove makes; None if no domain has work.

    A domain that waits for its delay, whatever the reason for the delay, and a domain that is being visited are used as
    much as politeness allows. Only a domain that is ready could be visited more often. If every domain spends the same
    share of its time ready, their share of all domains with work is the share of visits that are missing.
    """
    used = domains["waiting"] + domains["leased"]
    with_work = used + domains["ready"]
    return used / with_work if with_work else None
