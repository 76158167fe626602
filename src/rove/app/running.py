"""Assembles the runner of a crawl: this process or several worker processes, and the trials of suspects."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from rove.app.control import beside
from rove.app.process import assembled, count_files
from rove.app.process_samples import ProcessSamples
from rove.app.recovery import recover_requests, recover_store
from rove.app.runner import RunContext, Runner
from rove.app.supervisor import Supervisor
from rove.app.suspicions import tell_suspicions
from rove.app.trials import CrawlWithTrials, Trials
from rove.app.worker import WorkerOrder
from rove.app.worker_process import WorkerProcess
from rove.crawl.loop import Crawl
from rove.crawl.meter import Meter, database_figures, files_figures
from rove.crawl.progress import Progress
from rove.crawl.shutdown import GRACE_SECONDS
from rove.frontier.clock import steady_seconds
from rove.frontier.query_times import TimesReader
from rove.model.samples import Sample
from rove.policy.concurrency import Bounds, fixed
from rove.resources.process_state import resident_bytes

OWN = "own"
"""The key of this process's samples."""


class Running:
    """Makes the parts of a runner."""

    def __init__(
        self, context: RunContext, *, log_level: str, say: Callable[[str], None], on_news: Callable[[str], None]
    ) -> None:
        """`say` shows a sentence; `on_news` shows one that several processes may report."""
        self._context = context
        self._log_level = log_level
        self._say = say
        self._on_news = on_news
        self._trials: Trials | None = None
        self._samples = ProcessSamples()
        self._meter = Meter("supervisor", delay=context.settings.delay, clock=steady_seconds)
        self._take_own: Callable[[], Sample] = self._supervisor_sample

    @asynccontextmanager
    async def runner(self) -> AsyncIterator[Runner]:
        """Return the runner of the crawl."""
        async with self._crawl() as crawl:
            if isinstance(crawl, Crawl):
                self._take_own = crawl.take_sample
            self._trials = self._make_trials(crawl)
            async with beside(self._samples.keep_sampling(OWN, self._take_own)):
                yield CrawlWithTrials(crawl, self._trials)

    def take_samples(self) -> list[Sample]:
        """Return what each process of this machine has done since the last call."""
        self._samples.put(OWN, self._take_own())
        return self._samples.take()

    def _supervisor_sample(self) -> Sample:
        """Return what this process has done, if others crawl."""
        frontier = self._context.frontier
        gauges = {
            f"rss.{self._meter.process}": resident_bytes() or 0,
            **database_figures(frontier),
            **files_figures(count_files(self._context.data, frontier)),
        }
        return self._meter.take(gauges, frontier.query_times(TimesReader.SAMPLES))

    def _crawl(self) -> AbstractAsyncContextManager[Runner]:
        context = self._context
        if len(context.bounds) > 1:
            return nullcontext(self._supervisor())
        return assembled(
            data=context.data,
            settings=context.settings,
            frontier=context.frontier,
            catalog=context.backend.catalog,
            bounds=context.bounds[0],
            processes=1,
            name="rove",
            process="1",
            remaining_limits=context.remaining_limits,
            on_news=self._on_news,
            outage_rules=context.outage_rules,
            backoffs_end=context.backoffs_end,
        )

    def _supervisor(self) -> Supervisor:
        context = self._context
        return Supervisor(
            [self._order(number, bounds) for number, bounds in enumerate(context.bounds, start=1)],
            progress=Progress(started=context.remaining_limits.started),
            clock=steady_seconds,
            remaining_limits=context.remaining_limits,
            on_death=self._clean_up,
            on_stop=lambda: context.frontier.stop_waiting(2 * GRACE_SECONDS),
            say=self._say,
            on_news=self._on_news,
            on_sample=self._samples.put,
            log_of=context.data.log_of,
        )

    def _make_trials(self, crawl: Runner) -> Trials:
        return Trials(
            start=self._start_trial,
            reserve=self._context.frontier.reserve_suspects,
            on_death=self._judge,
            count=crawl.count,
            clock=steady_seconds,
        )

    def _start_trial(self) -> WorkerProcess:
        order = self._order(0, fixed(1), is_trial=True)
        log_file = self._context.data.log_of(order.name)
        return WorkerProcess(order, log_file=log_file, on_news=self._on_news, on_sample=self._samples.put)

    async def _clean_up(self, process: int) -> bool:
        """Clean up after a worker that died; return whether it was reading something."""
        return await self._recover(process, is_evidence=False)

    async def _judge(self, process: int, is_evidence: bool) -> None:
        """Clean up after a worker that died in a trial."""
        await self._recover(process, is_evidence=is_evidence)

    async def _recover(self, process: int, *, is_evidence: bool) -> bool:
        context = self._context
        await recover_store(context.data.warc)
        suspicions = await recover_requests(
            context.frontier,
            context.data.inflight_log,
            delay=context.settings.delay,
            # A worker that died before its first report has no number and left nothing to recover.
            processes=[process] if process else [],
            is_evidence=is_evidence,
        )
        tell_suspicions(suspicions, self._say)
        if suspicions and self._trials is not None:
            self._trials.wake()
        return bool(suspicions)

    def _order(self, number: int, bounds: Bounds, *, is_trial: bool = False) -> WorkerOrder:
        context = self._context
        return WorkerOrder(
            data_dir=os.fsencode(context.data.root),
            remote=context.remote,
            settings=context.settings,
            run=context.run,
            number=number,
            bounds=bounds,
            processes=len(context.bounds),
            seconds_before=context.remaining_limits.seconds_before,
            started=context.remaining_limits.started,
            log_level=self._log_level,
            outage_rules=context.outage_rules,
            backoffs_end=context.backoffs_end,
            is_trial=is_trial,
        )
