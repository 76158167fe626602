"""Finds out what limits a crawl that runs on this machine, for the panel and the log."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from rove.app.concurrency import available_cores
from rove.app.runner import RunContext
from rove.crawl.limits import RemainingLimits
from rove.crawl.progress import Progress
from rove.errors import RoveError
from rove.frontier.clock import steady_seconds
from rove.frontier.contract import Backend, Frontier
from rove.inspect.nodes import machines_alive
from rove.inspect.seed_loading import seeds_loading
from rove.model.counts import Counts
from rove.model.reasons import PauseCause
from rove.model.samples import Sample, combined
from rove.policy.limiting import Limiting, limiting
from rove.policy.measured import errors_of, load_of, requests_of
from rove.policy.situation import Load, Situation

SAMPLES = 6
"""How many samples are looked at: those of the last minute."""
SURROUNDINGS_SECONDS = 5.0
"""How often the watch asks whether seeds are being loaded and how many machines take part."""
PATIENCE = 5.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What changes slowly and is not counted by this machine's processes."""

    machines: int = 1
    seeds_loading: int | None = None
    """Seeds that were loaded so far, while more are being loaded."""


class LimitWatch:
    """Judges from the counters and samples of this machine and the counts of the whole crawl."""

    def __init__(
        self,
        progress: Progress,
        frontier: Frontier,
        *,
        remaining_limits: RemainingLimits,
        surroundings: Callable[[], Awaitable[Surroundings]],
        cores: int | None = None,
        clock: Callable[[], float] = steady_seconds,
    ) -> None:
        """`cores` are those that the processes may use, by default those of this process."""
        self._progress = progress
        self._frontier = frontier
        self._remaining_limits = remaining_limits
        self._read_surroundings = surroundings
        self._cores = cores or available_cores()
        self._clock = clock
        self.latest: Limiting | None = None
        """What was found at the last look."""
        self._samples: deque[Sample] = deque(maxlen=SAMPLES)
        self._surroundings = Surroundings()
        self._surroundings_at = float("-inf")

    def note_sample(self, sample: Sample) -> None:
        """Take the latest sample of this machine into account."""
        self._samples.append(sample)

    async def look(self, counts: Counts | None, *, patience: float = PATIENCE) -> Limiting:
        """Return what limits the crawl now; `counts` is None if the database does not answer.

        The rest of the figures is waited for no longer than `patience`, in seconds.
        """
        next_due = None
        if counts is not None:
            try:
                async with asyncio.timeout(patience):
                    await self._look_around()
                    next_due = None if counts.domains["ready"] else await self._frontier.next_due()
            except (TimeoutError, RoveError) as error:
                log.debug("could not ask the database about limits: %s", error)
        self.latest = limiting(self._situation(counts, next_due))
        return self.latest

    def _situation(self, counts: Counts | None, next_due: float | None) -> Situation:
        progress, around = self._progress, self._surroundings
        minute = combined(self._samples) if self._samples else None
        troubles = {cause: sentence for cause, sentence in progress.troubles.items() if cause != PauseCause.OPERATOR}
        return Situation(
            is_stopping=progress.is_stopping,
            paused_by=progress.troubles.get(PauseCause.OPERATOR, "").removeprefix("paused "),
            troubles=troubles,
            domains=None if counts is None else counts.domains,
            pending=0 if counts is None else counts.urls_pending,
            next_due=next_due,
            in_flight=progress.in_flight,
            at_once=progress.at_once,
            held_by=progress.held_by,
            unsettled=round(self._samples[-1].figures.get("unsettled", 0)) if self._samples else 0,
            pages_left=None if counts is None else self._remaining_limits.pages_left(counts.pages),
            seconds_left=self._remaining_limits.seconds_left(),
            seeds_loading=around.seeds_loading,
            requests=progress.requests if minute is None else requests_of(minute),
            errors=progress.request_counts.errors if minute is None else errors_of(minute),
            load=Load() if minute is None else load_of(minute, machines=around.machines, cores=self._cores),
        )

    async def _look_around(self) -> None:
        now = self._clock()
        if now - self._surroundings_at < SURROUNDINGS_SECONDS and self._surroundings.seeds_loading is None:
            return
        self._surroundings_at = now
        self._surroundings = await self._read_surroundings()


def limit_watch(context: RunContext, progress: Progress) -> LimitWatch:
    """Return the watch of one run."""

    async def surroundings() -> Surroundings:
        return await surroundings_of(context.backend)

    return LimitWatch(progress, context.frontier, remaining_limits=context.remaining_limits, surroundings=surroundings)


async def surroundings_of(backend: Backend) -> Surroundings:
    """Read the surroundings of a crawl from its database."""
    return Surroundings(
        machines=machines_alive(await backend.reader.participants()),
        seeds_loading=seeds_loading(await backend.catalog.seed_sources()),
    )
