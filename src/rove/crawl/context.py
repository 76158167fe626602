"""The parts and settings that everything in a crawling process shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rove.config import Settings
from rove.crawl.inflight_log import InflightLog
from rove.crawl.long_robots import LongRobots
from rove.crawl.meter import Meter
from rove.crawl.new_domains import NewDomainLimits
from rove.crawl.pressure import Pressure
from rove.crawl.progress import Progress
from rove.crawl.seed_scope import ScopeCheck
from rove.crawl.seen import SeenSet
from rove.crawl.shutdown import Shutdown
from rove.crawl.silence import SilentVisits
from rove.crawl.skip_sample import SkipSample
from rove.fetch.contract import Fetcher
from rove.frontier.contract import Frontier
from rove.policy.gate import Gate
from rove.policy.spread import Spread
from rove.resources.open_files import FileKind
from rove.store.contract import Store
from rove.urls.canonical import UrlForm


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlContext:
    """Everything that the visits, the claimer and the writer of one process share."""

    settings: Settings
    frontier: Frontier
    fetcher: Fetcher
    store: Store
    gate: Gate
    scope: ScopeCheck
    form: UrlForm
    inflight_log: InflightLog
    pressure: Pressure
    silence: SilentVisits
    new_domains: NewDomainLimits
    spread: Spread
    progress: Progress
    meter: Meter
    shutdown: Shutdown
    clock: Callable[[], float]
    """The steady clock of this machine, in seconds."""
    count_files: Callable[[], Counter[FileKind]] = Counter
    """Counts the open files of this process."""
    take_longest_lag: Callable[[], float] = float
    """Returns the longest stop of the event loop since the last call."""
    fetcher_accounts: Callable[[], Mapping[str, str]] = dict
    """What the fetcher holds, for a report."""
    long_robots: LongRobots = field(default_factory=LongRobots)
    seen: SeenSet = field(default_factory=SeenSet)
    """Links that are in the frontier already."""
    skip_sample: SkipSample = field(default_factory=SkipSample)
    """Which of the links that are not taken are kept as examples."""
    batch_size: int = 256
    """Visits written in one batch."""
    batch_seconds: float = 0.1
    """How long a finished visit waits for others to share its batch."""
