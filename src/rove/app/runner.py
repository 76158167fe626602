"""A crawl that can be run, and everything that one run of it needs to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from rove.config import Settings
from rove.crawl.limits import RemainingLimits
from rove.crawl.loop import Loader
from rove.crawl.progress import Counters, Progress
from rove.crawl.shutdown import Ending
from rove.datadir import DataDir, Remote
from rove.frontier.contract import Backend, Frontier
from rove.policy.concurrency import Bounds
from rove.policy.outage import OutageRules


class Runner(Protocol):
    """A crawl that can be run: in this process (Crawl) or in several (Supervisor), with trials (CrawlWithTrials)."""

    @property
    def progress(self) -> Progress:
        """The counters of all its processes."""

    async def run(self, seed_loader: Loader) -> Ending:
        """Load the seeds and crawl until the end."""

    def stop(self, ending: Ending = Ending.STOPPED) -> None:
        """Shut down: fetches in flight get a few seconds."""

    def set_paused(self, is_paused: bool) -> None:
        """Start no new visits, or start them again."""

    def accounts(self) -> Mapping[str, str]:
        """Return what this process holds, for a report. Another thread may call this."""

    def kill(self) -> None:
        """Kill the worker processes, if there are any."""

    def count(self, counters: Counters) -> None:
        """Add what another process has done to the progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """One run of a crawl, whose settings stay the same until it ends."""

    data: DataDir
    remote: Remote | None
    backend: Backend
    frontier: Frontier
    settings: Settings
    revision: int
    """The revision of the settings in the catalog."""
    run: int
    """The number of the run in the frontier."""
    is_first_run: bool
    remaining_limits: RemainingLimits
    bounds: list[Bounds]
    """How many fetches each process may have in flight."""
    outage_rules: OutageRules
    backoffs_end: float
    """Until then, by this machine's steady clock, the run waits for sites that kept failing in an earlier run."""
