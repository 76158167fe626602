"""The starts of a crawl and the processes that took part in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One start of a crawl."""

    id: int
    started: float
    """Wall-clock seconds since the epoch."""
    begin: float
    """Seconds of the crawl's clock."""
    end: float
    """Seconds of the crawl's clock: the last sign of life of any of its processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Participant:
    """A process that takes part in a crawl, or did."""

    node: str
    """Its host and data directory."""
    is_here: bool
    """It uses this data directory."""
    process: int
    pid: int
    has_left: bool
    is_paused: bool
    """It starts no new visits, because the owner has paused the crawl."""
    pages: int
    pages_per_second: float
    in_flight: int
    at_once: int
    """How many visits may be in flight."""
    held_by: str
    """Why `at_once` does not grow (policy.concurrency.HeldBy)."""
    since: float
    """Seconds since it began."""
    silent_for: float
    """Seconds since its last sign of life."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """The numbers that a process reports with each heartbeat."""

    pages: int = 0
    """Pages stored since the process began."""
    pages_per_second: float = 0.0
    in_flight: int = 0
    at_once: int = 0
    """How many visits may be in flight."""
    held_by: str = ""
    """Why `at_once` does not grow (policy.concurrency.HeldBy)."""
    is_paused: bool = False
    is_leaving: bool = False
    """The process shuts down cleanly."""


def crawled_seconds(runs: Iterable[Run]) -> float:
    """Return how long the crawl has been running on any machine; runs that overlap count once."""
    total, reached = 0.0, float("-inf")
    for run in sorted(runs, key=lambda run: run.begin):
        total += max(0.0, run.end - max(run.begin, reached))
        reached = max(reached, run.end)
    return total
