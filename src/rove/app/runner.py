"""Runs a crawl either in this process or in several worker processes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from rove.app.process import assembled
from rove.app.recovery import recover_requests, recover_store
from rove.app.supervisor import Supervisor
from rove.app.worker import WorkerOrder
from rove.config import Settings
from rove.crawl.limits import RemainingLimits
from rove.crawl.loop import Loader
from rove.crawl.progress import Progress
from rove.crawl.shutdown import GRACE_SECONDS, Ending
from rove.datadir import DataDir, Remote
from rove.frontier.clock import steady_seconds
from rove.frontier.contract import Backend, Frontier
from rove.policy.outage import OutageRules


class Runner(Protocol):
    """A crawl that can be run: in this process (Crawl) or in several (Supervisor)."""

    @property
    def progress(self) -> Progress:
        """The counters of all its processes."""

    async def run(self, seed_loader: Loader) -> Ending:
        """Load the seeds and crawl until the end."""

    def stop(self, ending: Ending = Ending.STOPPED) -> None:
        """Shut down: fetches in flight get a few seconds."""

    def set_paused(self, is_paused: bool) -> None:
        """Start no new visits, or start them again."""

    def kill(self) -> None:
        """Kill the worker processes, if there are any."""


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
    remaining_limits: RemainingLimits
    fetches: list[int]
    """Fetches in flight for each process."""
    outage_rules: OutageRules
    backoffs_end: float
    """Until then, by this machine's steady clock, the run waits for sites that kept failing in an earlier run."""


def this_process(context: RunContext, *, on_news: Callable[[str], None]) -> AbstractAsyncContextManager[Runner]:
    """Crawl in this process."""
    return assembled(
        data=context.data,
        settings=context.settings,
        frontier=context.frontier,
        catalog=context.backend.catalog,
        concurrency=context.fetches[0],
        name="rove",
        remaining_limits=context.remaining_limits,
        on_news=on_news,
        outage_rules=context.outage_rules,
        backoffs_end=context.backoffs_end,
    )


@asynccontextmanager
async def worker_processes(
    context: RunContext, *, log_level: str, say: Callable[[str], None], on_news: Callable[[str], None]
) -> AsyncIterator[Runner]:
    """Crawl in worker processes, one for each entry of `context.fetches`."""

    async def on_death(process: int) -> None:
        await recover_store(context.data.warc)
        # A worker that died before its first report has no number and left nothing to recover.
        await recover_requests(
            context.frontier,
            context.data.inflight_log,
            delay=context.settings.delay,
            processes=[process] if process else [],
        )

    yield Supervisor(
        [
            WorkerOrder(
                data_dir=os.fsencode(context.data.root),
                remote=context.remote,
                settings=context.settings,
                run=context.run,
                number=number,
                concurrency=fetches,
                seconds_before=context.remaining_limits.seconds_before,
                started=context.remaining_limits.started,
                log_level=log_level,
                outage_rules=context.outage_rules,
                backoffs_end=context.backoffs_end,
            )
            for number, fetches in enumerate(context.fetches, start=1)
        ],
        progress=Progress(started=context.remaining_limits.started),
        clock=steady_seconds,
        on_death=on_death,
        on_stop=lambda: context.frontier.stop_waiting(2 * GRACE_SECONDS),
        say=say,
        on_news=on_news,
        log_of=context.data.log_of,
    )
