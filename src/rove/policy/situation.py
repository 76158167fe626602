"""The figures from which policy/limiting.py tells what limits a crawl."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What the crawling processes used in an interval, over all machines. None means that it was not measured."""

    seconds: float = 1.0
    """The length of the interval."""
    machines: int = 1
    processes: int = 1
    """Crawling processes on all machines."""
    cores: int | None = None
    """Cores of all machines."""
    sessions: int = 1
    """Statements that one process can run at a time."""
    domains: float | None = None
    """Domains that had something to fetch, on average."""
    visits: int = 0
    """Visits that ended in the interval."""
    received: int | None = None
    """Bytes."""
    cpu_seconds: float | None = None
    store_seconds: float | None = None
    """Time spent on writing pages."""
    statements: Mapping[str, float] = msgspec.field(default_factory=dict)
    """Seconds that each named statement took, over all processes; empty if that was not measured."""

    def per_second(self, amount: float) -> float:
        """Return an amount of the interval per second."""
        return amount / max(self.seconds, 0.001)

    @property
    def usable_cores(self) -> int:
        """How many cores the processes can use: each uses one at most."""
        return max(1, self.processes if self.cores is None else min(self.cores, self.processes))

    @property
    def process_seconds(self) -> float:
        """The interval, as often as there are processes."""
        return max(self.seconds, 0.001) * max(self.processes, 1)

    @property
    def cpu_busy(self) -> float | None:
        """The share of the usable cores that is used."""
        return None if self.cpu_seconds is None else self.per_second(self.cpu_seconds) / self.usable_cores

    @property
    def session_seconds(self) -> float:
        """The interval, as often as there are database sessions."""
        return self.process_seconds * max(self.sessions, 1)

    @property
    def database_busy(self) -> float | None:
        """The share of what the database sessions of the processes can do that is used."""
        return min(1.0, sum(self.statements.values()) / self.session_seconds) if self.statements else None


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a crawl at one moment, over all its processes and machines. None means that one is not known."""

    is_stopping: bool = False
    paused_by: str = ""
    """Who has paused it on all its machines, as a phrase; '' if nobody has."""
    troubles: Mapping[str, str] = msgspec.field(default_factory=dict)
    """What slows it down or pauses it: for each cause a sentence, or '' if only the cause is known."""
    domains: Mapping[str, int] | None = None
    """Domains by state."""
    pending: int = 0
    next_due: float | None = None
    """Seconds until the next domain is due, if none is ready."""
    in_flight: int = 0
    at_once: int = 0
    """How many visits may be in flight."""
    held_by: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Why not more (HeldBy): the number of processes for each reason."""
    unsettled: int = 0
    """Visits that are finished and wait to be written."""
    pages_left: int | None = None
    """Pages until --max-pages."""
    seconds_left: float | None = None
    """Seconds until --max-duration."""
    seeds_loading: int | None = None
    """Seeds that were loaded so far, while more are being loaded."""
    requests: int = 0
    errors: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Requests that were made lately, and those among them that failed, by error."""
    load: Load = Load()
    """How busy the machines are."""

    @property
    def with_work(self) -> int:
        """How many domains have something to fetch."""
        return self.ready + self.waiting + self.leased

    @property
    def ready(self) -> int:
        """How many domains could be visited now."""
        return self._in_state("ready")

    @property
    def waiting(self) -> int:
        """How many domains wait for their delay."""
        return self._in_state("waiting")

    @property
    def leased(self) -> int:
        """How many domains are being visited."""
        return self._in_state("leased")

    def _in_state(self, state: str) -> int:
        return 0 if self.domains is None else self.domains.get(state, 0)
